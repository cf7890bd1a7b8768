// Plan: what one perftest run does, on one side, with every default filled in.
//
// Made by options.hpp from a command line or by roce-endpoint for a service; read by the data
// planes and by run.hpp. It holds no state of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "verbs/enums.hpp"

namespace roce::traffic::perftest {

/// The eight tests, by the names of perftest's programs without "ib_".
enum class Test : std::uint8_t {
  WRITE_BW,
  WRITE_LAT,
  READ_BW,
  READ_LAT,
  SEND_BW,
  SEND_LAT,
  ATOMIC_BW,
  ATOMIC_LAT,
};
inline constexpr std::size_t kTests = 8;
enum class Verb : std::uint8_t { WRITE, READ, SEND, ATOMIC };
enum class Measure : std::uint8_t { BANDWIDTH, LATENCY };

struct TestInfo {
  Test test{};
  std::string_view name;   ///< "write_bw"
  std::string_view title;  ///< as perftest heads its output: "RDMA_Write BW Test"
  Verb verb{};
  Measure measure{};
};
[[nodiscard]] const TestInfo& info_of(Test test);
/// Null when there is no such test. Takes "write_bw" and "ib_write_bw" alike.
[[nodiscard]] const TestInfo* find_test(std::string_view name);

enum class Role : std::uint8_t { SERVER, CLIENT };
enum class Direction : std::uint8_t { ONE_WAY, BOTH_WAYS };
/// When a run is over.
enum class Until : std::uint8_t {
  ITERATIONS,  ///< after Plan::iterations messages on each QP
  DURATION,    ///< after Plan::duration; measured without its margins
  PEER_ENDS,   ///< when the peer says so: a server that does not know the client's -n
};
enum class AtomicType : std::uint8_t { FETCH_AND_ADD, CMP_AND_SWAP };
enum class Switch : std::uint8_t { OFF, ON };

inline constexpr std::uint64_t kMaxSize = 8'388'608;  ///< the largest message of -a
inline constexpr std::uint32_t kCycleBuffer = 4096;   ///< perftest's ring for small messages
inline constexpr std::uint32_t kCacheLine = 64;
inline constexpr std::uint32_t kUdQkey = 0x11111111;
inline constexpr std::uint64_t kGrhBytes = 40;  ///< in front of each received UD message
/// perftest finds the peak rate only up to that many iterations.
inline constexpr std::uint64_t kMaxPeakIterations = 20'000;

struct Plan {
  Test test = Test::WRITE_BW;
  Role role = Role::SERVER;
  verbs::QpType transport = verbs::QpType::RC;
  Direction direction = Direction::ONE_WAY;
  std::uint32_t qps = 1;  ///< 0: a server that takes as many as its client brings

  Until until = Until::ITERATIONS;
  std::uint64_t iterations = 1000;  ///< per QP
  Duration duration{};
  Duration margin = Duration::seconds(2);  ///< not measured, at either end of the duration

  Switch all_sizes = Switch::OFF;  ///< -a: 2, 4, ... kMaxSize, each one run
  std::uint64_t size = 65536;      ///< bytes of a message; with all_sizes the largest

  std::uint32_t tx_depth = 128;
  std::uint32_t rx_depth = 512;
  std::uint32_t cq_mod = 100;    ///< one completion per so many messages
  std::uint32_t post_list = 1;   ///< messages posted in one go
  std::uint32_t inline_max = 0;  ///< messages up to that long go inline
  AtomicType atomic = AtomicType::FETCH_AND_ADD;

  verbs::Mtu mtu = verbs::Mtu::MTU_1024;  ///< most that this side can do; the smaller of both wins
  std::uint8_t out_reads = 16;            ///< READs and atomics outstanding, each way
  std::uint8_t qp_timeout = 14;           ///< 4.096 us * 2^n; 0 waits for ever
  std::uint8_t retry_cnt = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t min_rnr_timer = 12;
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 255;  ///< perftest asks for 255

  Switch peak = Switch::ON;         ///< find the peak rate
  Switch validation = Switch::OFF;  ///< docs/data-validation.md
  std::uint32_t pattern_seed = 0;

  [[nodiscard]] const TestInfo& info() const { return info_of(test); }
  [[nodiscard]] bool is_bw() const { return info().measure == Measure::BANDWIDTH; }
  [[nodiscard]] Verb verb() const { return info().verb; }
  /// Whether this side posts sends, or receives what the peer sends.
  [[nodiscard]] bool sends() const {
    return role == Role::CLIENT || direction == Direction::BOTH_WAYS;
  }
  [[nodiscard]] bool receives() const {
    return role == Role::SERVER || direction == Direction::BOTH_WAYS;
  }
  [[nodiscard]] bool validates() const { return validation == Switch::ON; }
};

/// perftest's defaults of a test (ib_*_bw and ib_*_lat of 4.5).
[[nodiscard]] Plan default_plan(Test test, Role role);

/// perftest's own adjustments: depths not above the iterations, CQ moderation not above the depth
/// and none for large messages, no peak rate for long runs, 8 bytes for atomics.
/// explicit_cq_mod: the user gave -Q.
void adjust(Plan& plan, Switch explicit_cq_mod);

/// What cannot be run: READ and atomics need RC, UD does SENDs only, and the like. The error's
/// place is the option that is wrong.
[[nodiscard]] Result<void> check(const Plan& plan);

/// Sets the path MTU: `wanted`, or the largest that fits an interface of port_mtu by Linux's rule.
/// UD messages become no longer than that. Fails when `wanted` does not fit.
[[nodiscard]] Result<void> fit_to_port(Plan& plan, std::optional<verbs::Mtu> wanted,
                                       std::uint32_t port_mtu);

/// The message sizes of a plan in order: one, or 2, 4, ... up to its size with all_sizes.
[[nodiscard]] std::vector<std::uint64_t> sizes_of(const Plan& plan);

/// Bytes from one message to the next inside the ring: a multiple of a cache line.
[[nodiscard]] constexpr std::uint64_t ring_step(std::uint64_t size) {
  return (size + kCacheLine - 1) / kCacheLine * kCacheLine;
}
/// Places that messages of a size take turns in; 1 above half the ring.
[[nodiscard]] constexpr std::uint64_t ring_slots(std::uint64_t size) {
  return size > kCycleBuffer / 2 || size == 0 ? 1 : kCycleBuffer / ring_step(size);
}
/// Where message n of a QP lies in the QP's buffer.
[[nodiscard]] constexpr std::uint64_t ring_offset(std::uint64_t n, std::uint64_t size) {
  const std::uint64_t slots = ring_slots(size);
  return slots == 1 ? 0 : n % slots * ring_step(size);
}
/// Bytes of one QP's buffer.
[[nodiscard]] constexpr std::uint64_t buffer_bytes(std::uint64_t size) {
  return size > kCycleBuffer ? size : kCycleBuffer;
}

}  // namespace roce::traffic::perftest
