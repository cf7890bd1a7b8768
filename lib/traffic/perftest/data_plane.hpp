// The data planes of the eight tests as non-blocking steppers: each step() polls the CQs, posts
// what may be posted, and returns. One object is one run over one message size.
//
// They use the QPs and buffers of a QpSet, on the worker's thread, with the instants they are
// given. They never wait, never touch TCP, and never print.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "traffic/perftest/meter.hpp"
#include "traffic/perftest/pattern.hpp"
#include "traffic/perftest/plan.hpp"
#include "traffic/perftest/qp_set.hpp"

namespace roce::traffic::perftest {

enum class Step : std::uint8_t { RUNNING, DONE, FAILED };

/// What the steppers share.
struct RunState {
  RunState(QpSet& set, const Plan& run_plan) : qps(set), plan(run_plan), clock(run_plan) {}

  QpSet& qps;
  Plan plan;  ///< size is that of this run
  RunClock clock;
  Verdict verdict;
  std::optional<Error> failure;
  bool peer_silent = false;  ///< the failure is that the peer stopped answering
  bool peer_ended = false;   ///< the peer has said that it is done

  /// Notes a completion in error; returns FAILED.
  Step fail(const verbs::Wc& wc, std::uint32_t lane);
  /// Notes a WR that was not taken; returns FAILED.
  Step fail(transport::PostResult result, std::uint32_t lane);
  /// Checks a received message against the pattern from first_offset on.
  void check_message(std::uint32_t lane, std::uint64_t message, std::span<const std::byte> data,
                     std::uint64_t first_offset);
  /// Checks a SEND in its receive buffer (with the GRH area of UD) and its length.
  void check_received(std::uint32_t lane, std::uint64_t message, std::span<const std::byte> place,
                      std::uint32_t byte_len);
  /// Checks the original value that atomic operation number `message` has brought.
  void check_original(std::uint32_t lane, std::uint64_t message, std::span<const std::byte> word);

  /// A ping-pong's end by time or by the peer; nothing while it goes on.
  [[nodiscard]] std::optional<Step> ended(Instant now, RunClock::Phase phase);
  void progress(Instant now) { last_progress = now; }
  /// UC and UD resend nothing, so that a ping-pong which lost a message stands still for ever: true
  /// when it has for kPatience; the failure is noted.
  [[nodiscard]] bool stalled(Instant now);
  static constexpr Duration kPatience = Duration::seconds(10);

  std::optional<Instant> last_progress;
  std::optional<Instant> peer_ended_at;
};

/// Posts WRITEs, READs, SENDs or atomics on all QPs, tx_depth deep (every bandwidth test's client;
/// both sides with -b).
class BwSender {
 public:
  explicit BwSender(RunState& run);
  Step step(Instant now);
  [[nodiscard]] BandwidthResult result() const { return meter_.result(); }

 private:
  struct Flow {
    std::uint64_t posted = 0;
    std::uint64_t completed = 0;
    bool flushed = false;  ///< duration: a last, signalled message has been posted
  };
  Step poll(Instant now, RunClock::Phase phase);
  Step post(Instant now, std::uint32_t lane);
  Step post_one(std::uint32_t lane, std::uint64_t message, bool last);
  [[nodiscard]] bool may_post(const Flow& flow) const;
  Step drain(Instant now);
  void check(std::uint32_t lane, std::uint64_t message);
  [[nodiscard]] std::uint64_t local_offset(std::uint64_t message) const;
  [[nodiscard]] std::uint64_t remote_offset(std::uint64_t message) const;

  RunState& run_;
  BandwidthMeter meter_;
  std::vector<Flow> flows_;
  std::uint64_t local_places_;  ///< places that READs and atomics take turns in
  std::uint32_t depth_;
  std::uint32_t cq_mod_;
  std::uint64_t open_flows_;
  std::optional<Instant> drain_until_;
};

/// Keeps receives posted and counts what arrives (the server of send_bw; both sides with -b).
class BwReceiver {
 public:
  explicit BwReceiver(RunState& run);
  /// Posts the first receives; before the peer may send. Call it once.
  Step prepare();
  Step step(Instant now);
  [[nodiscard]] BandwidthResult result() const { return meter_.result(); }

 private:
  struct Flow {
    std::uint64_t posted = 0;
    std::uint64_t received = 0;
  };
  Step post(std::uint32_t lane);
  Step take(Instant now, const verbs::Wc& wc);
  [[nodiscard]] Step verdict(Instant now);

  RunState& run_;
  BandwidthMeter meter_;
  std::vector<Flow> flows_;
  std::uint64_t grh_;         ///< bytes in front of the message
  std::uint64_t place_step_;  ///< bytes from one receive buffer to the next
  std::uint64_t places_;
  std::uint64_t received_ = 0;
  std::optional<Instant> last_arrival_;
};

/// WRITE ping-pong: each side waits for the last byte of its buffer to become the count. The server
/// begins, as in perftest.
class WriteLat {
 public:
  explicit WriteLat(RunState& run);
  Step step(Instant now);
  [[nodiscard]] LatencyResult result() const { return meter_.result(); }
  [[nodiscard]] const Histogram& histogram() const { return meter_.histogram(); }

 private:
  [[nodiscard]] bool arrived();
  Step post(Instant now, RunClock::Phase phase);
  Step poll();
  [[nodiscard]] bool finished() const;

  RunState& run_;
  LatencyMeter meter_;
  std::uint64_t sent_ = 0, completed_ = 0, received_ = 0;
};

/// SEND ping-pong. The client begins.
class SendLat {
 public:
  explicit SendLat(RunState& run);
  Step prepare();
  Step step(Instant now);
  [[nodiscard]] LatencyResult result() const { return meter_.result(); }
  [[nodiscard]] const Histogram& histogram() const { return meter_.histogram(); }

 private:
  Step post_receive();
  Step receive(Instant now);
  Step post(Instant now, RunClock::Phase phase);
  Step poll_sends();
  [[nodiscard]] bool my_turn() const;

  RunState& run_;
  LatencyMeter meter_;
  std::uint64_t grh_, place_step_, places_;
  std::uint64_t posted_ = 0, received_ = 0, sent_ = 0, completed_ = 0;
  std::uint64_t reply_bytes_;
};

/// One READ or atomic after the other (the client of read_lat and atomic_lat).
class ReadLat {
 public:
  explicit ReadLat(RunState& run);
  Step step(Instant now);
  [[nodiscard]] LatencyResult result() const { return meter_.result(); }
  [[nodiscard]] const Histogram& histogram() const { return meter_.histogram(); }

 private:
  Step post(Instant now, RunClock::Phase phase);
  void check(std::uint64_t message);

  RunState& run_;
  LatencyMeter meter_;
  std::uint64_t posted_ = 0, completed_ = 0;
};

/// One run of a plan's test and role.
class DataPlane {
 public:
  /// plan: of the whole test. size: of this run's messages. The QPs are in RTS.
  DataPlane(QpSet& qps, const Plan& plan, std::uint64_t size);
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;

  /// Posts receives; before the exchange that lets the peer begin.
  Step prepare();
  Step step(Instant now);
  /// The peer has told over TCP that it is done: what has not come will not come.
  void peer_ended() { run_.peer_ended = true; }
  /// Checks the exposed buffer of WRITE and atomics; after the peer is done. operations: how many
  /// the peer says it did, when it does; on each QP or on all, as perftest's versions differ.
  void check_exposed(std::optional<std::uint64_t> operations);

  /// None where there is nothing to measure: the server of a one-way one-sided test.
  [[nodiscard]] std::optional<BandwidthResult> bandwidth() const;
  [[nodiscard]] std::optional<LatencyResult> latency() const;
  /// Nanoseconds; null where there is no latency().
  [[nodiscard]] const Histogram* histogram() const;
  [[nodiscard]] const Verdict& verdict() const { return run_.verdict; }
  [[nodiscard]] const std::optional<Error>& failure() const { return run_.failure; }
  [[nodiscard]] bool peer_is_silent() const { return run_.peer_silent; }

 private:
  void check_write(std::uint32_t lane, std::optional<std::uint64_t> operations);
  void check_atomic(std::uint32_t lane, std::optional<std::uint64_t> operations);
  void check_place(std::uint32_t lane, std::uint64_t begin, std::span<const std::byte> place);
  void check_untouched(std::uint32_t lane, std::uint64_t begin, std::span<const std::byte> place);
  void check_lossy_byte(std::uint32_t lane, std::uint64_t offset, std::byte found);
  void mismatch(std::uint32_t lane, std::uint64_t offset, std::byte expected, std::byte found,
                std::string what);

  RunState run_;
  std::optional<BwSender> sender_;
  std::optional<BwReceiver> receiver_;
  std::variant<std::monostate, WriteLat, SendLat, ReadLat> ping_pong_;
  Step sender_state_ = Step::DONE;
  Step receiver_state_ = Step::DONE;
};

}  // namespace roce::traffic::perftest
