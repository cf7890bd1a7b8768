// NotificationPoint: when a receiver answers a CE mark by a CNP.
//
// One per port (per worker), told of each marked packet of a known QP. Moderates CNPs per QP,
// source, pair of addresses or port. Never does: build a CNP, read a clock, allocate but in the
// constructor.
#pragma once

#include <cstdint>
#include <vector>

#include "base/address.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "congestion/knob_value.hpp"

namespace roce::congestion {

/// What shares one CNP interval. NICs differ: see docs/dcqcn.md.
enum class NpScope : std::uint8_t { QP, SOURCE_IP, IP_PAIR, PORT };

/// What becomes of a mark within the interval.
enum class NpRule : std::uint8_t {
  GATE,    ///< forgotten (CoNEXT 2016)
  WINDOW,  ///< makes for a CNP at the interval's end (SIGCOMM 2015)
};

/// Names and units are those of mlx5's np_ knobs where those exist.
struct NpConfig {
  bool enabled = true;
  NpScope scope = NpScope::QP;
  NpRule rule = NpRule::GATE;
  Duration min_time_between_cnps = Duration::microseconds(4);
  std::uint8_t cnp_dscp = 48;
  std::uint8_t cnp_ecn = 2;         ///< the ECN field of CNPs; ECT(0), as ConnectX sends it
  std::uint8_t cnp_prio = 6;        ///< PCP of the tag when the CNP is tagged
  bool cnp_prio_of_packet = false;  ///< np_cnp_prio_mode: keep the marked packet's PCP instead
  bool cnp_on_nak = false;          ///< each NAK for a sequence error brings a CNP, not moderated
  std::uint32_t max_keys = 1024;    ///< scopes remembered at a time
};
[[nodiscard]] Result<void> validate(const NpConfig& config);

/// Sets a knob by its name, np_cnp_dscp or without "np_", from a number in its unit or one of its
/// words; fails on what is unknown or out of range, naming what would be right.
[[nodiscard]] Result<void> set_knob(NpConfig& config, std::string_view name, std::string_view text);
/// All knobs in a fixed order; set_knob() takes each of them back.
[[nodiscard]] std::vector<KnobValue> knob_values(const NpConfig& config);

/// A marked packet: whom to tell and how to reach it.
struct NpFlow {
  Qpn qpn;   ///< it came to this QP of ours
  Qpn peer;  ///< the QP that has to slow down
  IpAddress source, destination;
  MacAddress source_mac, destination_mac;
  std::uint16_t vlan_tci = 0;  ///< 0 when untagged
};

/// marked = sent_for_marks + suppressed + those that still wait for their window's end.
struct NpCounters {
  std::uint64_t marked = 0;  ///< marks told
  std::uint64_t cnps_for_marks = 0;
  std::uint64_t cnps_for_naks = 0;
  std::uint64_t suppressed = 0;  ///< marks that brought no CNP of their own
  std::uint64_t displaced = 0;   ///< intervals cut short because max_keys were in use
};

class NotificationPoint {
 public:
  explicit NotificationPoint(const NpConfig& config);

  /// A packet with CE came. Returns whether a CNP is to go out now. now never goes back.
  [[nodiscard]] bool on_marked(Instant now, const NpFlow& flow);
  /// A NAK for a sequence error goes out. Returns whether a CNP goes with it.
  [[nodiscard]] bool on_nak();

  /// No later than when take_due() next has something; never() under NpRule::GATE.
  [[nodiscard]] Instant next_deadline() const;
  /// A window that has ended and held marks: flow is the last one marked, and a CNP is to go out.
  /// Call until it returns false.
  [[nodiscard]] bool take_due(Instant now, NpFlow& flow);

  [[nodiscard]] const NpConfig& config() const { return config_; }
  [[nodiscard]] const NpCounters& counters() const { return counters_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kWays = 8;

  struct Key {
    Qpn qpn;
    IpAddress source, destination;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Entry {
    Key key;
    NpFlow last;     ///< WINDOW: the last marked
    Instant ends{};  ///< no CNP before
    bool used = false;
    bool pending = false;  ///< WINDOW: a mark waits for the end
    bool queued = false;   ///< WINDOW: in the order of ends
    std::uint32_t previous = kNone, next = kNone;
  };

  [[nodiscard]] Key key_of(const NpFlow& flow) const;
  [[nodiscard]] std::uint32_t find_or_take(Instant now, const Key& key);
  void open(std::uint32_t index, Instant now);
  void unlink(std::uint32_t index);

  NpConfig config_;
  NpCounters counters_;
  std::vector<Entry> entries_;  ///< sets of kWays, chosen by the key's hash
  std::uint32_t set_mask_;
  // WINDOW: all intervals are equally long, so they end in the order in which they began.
  std::uint32_t first_ = kNone, last_ = kNone;
};

}  // namespace roce::congestion
