// ReactionPoint: how fast one QP may send. State and events in, a rate out.
//
// One per QP, owned by the worker (or a simulation), called from one thread. Which algorithm is a
// variant: no limit, a fixed rate, or DCQCN. Never does: read a clock, allocate, pace; the owner
// does the pacing and asks again at next_change().
#pragma once

#include <string>
#include <variant>

#include "base/rate.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "congestion/dcqcn.hpp"
#include "congestion/dcqcn_config.hpp"
#include "congestion/rp_event.hpp"

namespace roce::congestion {

/// Nothing limits the QP; CNPs are ignored.
struct NoControl {};
/// One rate for ever; CNPs are ignored.
struct FixedRate {
  Rate rate;
};
using RpConfig = std::variant<NoControl, FixedRate, DcqcnConfig>;

/// "none", "fixed", or the name of a DCQCN preset.
[[nodiscard]] std::string_view name_of(const RpConfig& config);
/// Whether config makes sense on a port of this rate.
[[nodiscard]] Result<void> validate(const RpConfig& config, Rate line);

/// What reports show of a reaction point.
struct RpSnapshot {
  Rate rc, rt;
  double alpha = 0;
  std::uint64_t t = 0, bc = 0;  ///< stage counters
  std::uint64_t cnps = 0;       ///< acted upon, that is: not ignored
  std::uint64_t cuts = 0;
  bool limited = false;  ///< a limiter is allocated
};

class ReactionPoint {
 public:
  ReactionPoint() = default;
  /// config: validated for line, the rate of the port.
  ReactionPoint(const RpConfig& config, Rate line);

  // now never goes back from call to call.

  /// The rate to send at; unlimited() when nothing limits.
  [[nodiscard]] Rate rate(Instant now) {
    if (Dcqcn* dcqcn = std::get_if<Dcqcn>(&state_)) return dcqcn->rate(now);
    if (const FixedRate* fixed = std::get_if<FixedRate>(&state_)) return fixed->rate;
    return Rate::unlimited();
  }
  /// A CNP (or a packet with BECN set) came from the peer. Returns whether it means anything here.
  bool on_cnp(Instant now) {
    Dcqcn* dcqcn = std::get_if<Dcqcn>(&state_);
    if (dcqcn != nullptr) dcqcn->on_cnp(now);
    return dcqcn != nullptr;
  }
  /// A packet of so many bytes, counted as the owner counts against the rate, was sent.
  void on_sent(Instant now, std::uint32_t bytes) {
    if (Dcqcn* dcqcn = std::get_if<Dcqcn>(&state_)) dcqcn->on_sent(now, bytes);
  }
  /// When rate() changes by itself; Instant::never() when only events change it.
  [[nodiscard]] Instant next_change() const {
    const Dcqcn* dcqcn = std::get_if<Dcqcn>(&state_);
    return dcqcn != nullptr ? dcqcn->next_change() : Instant::never();
  }

  [[nodiscard]] RpSnapshot snapshot(Instant now);
  /// observer is told of each event from now on. It costs: see RpObserver.
  void observe(RpObserver observer) {
    if (Dcqcn* dcqcn = std::get_if<Dcqcn>(&state_)) dcqcn->observe(observer);
  }
  /// Brings everything up to date and tells the observer what fell due.
  void settle(Instant now) {
    if (Dcqcn* dcqcn = std::get_if<Dcqcn>(&state_)) dcqcn->settle(now);
  }

 private:
  std::variant<NoControl, FixedRate, Dcqcn> state_;
};

}  // namespace roce::congestion
