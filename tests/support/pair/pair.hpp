// Pair: two connected QPs in virtual time with a faulty wire between them.
//
// Posts work, moves frames, breaks what the test wants broken, and judges: completions once and in
// order, memory as expected to the byte, every frame called for. No real time passes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/pair/legality.hpp"
#include "support/pair/side.hpp"

namespace roce::test {

enum class Way : std::uint8_t { A_TO_B = 0, B_TO_A = 1 };

/// What the wire does to one frame.
struct Treatment {
  bool drop = false;
  bool corrupt = false;  ///< one bit flips; the ICRC must catch it
  int copies = 1;
  Duration delay{};  ///< on top of the wire's own, so that later frames overtake
};

/// A frame about to cross: which way, and its number on that way from 0.
struct Crossing {
  Way way{};
  std::uint32_t index = 0;
  const wire::Packet* packet = nullptr;
};
using Wire = std::function<Treatment(const Crossing&)>;

struct PairConfig {
  verbs::QpType type = verbs::QpType::RC;
  verbs::Mtu mtu = verbs::Mtu::MTU_256;
  Psn psn_a{0}, psn_b{0x123456};
  std::uint8_t timeout = 8;  ///< 1.05 ms
  std::uint8_t retry_cnt = 7, rnr_retry = 7, min_rnr_timer = 1;
  std::uint8_t rd_atomic = 4;
  std::uint32_t depth = 64;
  std::size_t arena_bytes = 64 * 1024;
  std::uint64_t seed = 1;
  bool trace = false;
};

struct PostOptions {
  bool signalled = true;
  bool fence = false;
  bool solicited = false;
  bool inline_data = false;
  std::uint32_t pieces = 1;  ///< SGEs that the local buffer is cut into
};

class Pair {
 public:
  static constexpr Duration kWireDelay = Duration::microseconds(2);
  static constexpr Duration kFrameTime = Duration::nanoseconds(100);

  explicit Pair(const PairConfig& config, Wire wire = {});

  /// Posts a message of A (or B) with fresh places on both sides; fails the pair when refused.
  /// A receive must have been posted for kinds that take one, unless the test wants RNR.
  void post(Way way, Kind kind, std::uint32_t length, const PostOptions& options = {});
  /// Posts a receive of `length` bytes on the side that `way` leads to.
  void post_receive(Way way, std::uint32_t length);

  /// Moves on until nothing is in flight and no timer runs, or `limit` of virtual time has passed.
  void run(Duration limit = Duration::seconds(100));

  /// Judges what is left: all completions there, memory as expected. Call it after run() when every
  /// posted message should have succeeded.
  void expect_all_done();

  /// Empty while all is well; else the first rule broken, with the trace when one is kept.
  [[nodiscard]] const std::string& verdict() const { return verdict_; }
  [[nodiscard]] std::uint64_t digest() const { return digest_; }
  [[nodiscard]] std::uint32_t frames(Way way) const {
    return count_[static_cast<std::size_t>(way)];
  }
  [[nodiscard]] std::string trace_text() const;

  Side a, b;
  Instant now = Instant::from_ns(1'000);

 private:
  struct Flight {
    Way way;
    std::vector<std::byte> bytes;
    bool damaged;
  };

  [[nodiscard]] Side& from(Way way) { return way == Way::A_TO_B ? a : b; }
  [[nodiscard]] Side& to(Way way) { return way == Way::A_TO_B ? b : a; }
  void connect(Side& side, const Side& peer, Psn sq_psn, Psn rq_psn);
  void fail(const std::string& what);
  bool pull(Way way);
  void launch(Way way, std::span<const std::byte> frame);
  void land(const Flight& flight);
  void collect(Side& side, const Side& peer);
  void take_sent(Side& side, const verbs::Wc& wc);
  void take_received(Side& side, const Side& peer, const verbs::Wc& wc);
  void mix(std::uint64_t value);
  void note(const std::string& line);
  void check_receive(Side& side, const Op& op, const Receive& receive, const verbs::Wc& wc);

  PairConfig config_;
  Wire wire_;
  Prng prng_;
  Legality a_to_b_, b_to_a_;
  std::multimap<Instant, Flight> flights_;
  std::array<Instant, 2> line_free_{};
  std::array<std::uint32_t, 2> count_{};
  std::string verdict_;
  std::uint64_t digest_ = 0xcbf29ce484222325;
  std::vector<std::string> trace_;
};

}  // namespace roce::test
