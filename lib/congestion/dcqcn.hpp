// Dcqcn: the DCQCN reaction point of one QP (Zhu et al., SIGCOMM 2015; the variants of
// DcqcnConfig).
//
// Owns: rates, alpha, stage counters and timers. Called by ReactionPoint only. Never does: read a
// clock, allocate, or tick. Timers are evaluated when somebody asks: alpha over any number of
// periods in one step, increases that change nothing in one step too, so that an idle QP is free.
//
// What is due at an instant happens before what is told at that instant, in the order alpha, cut,
// increase.
#pragma once

#include <cstdint>

#include "base/rate.hpp"
#include "base/time.hpp"
#include "congestion/dcqcn_config.hpp"
#include "congestion/rp_event.hpp"

namespace roce::congestion {

class Dcqcn {
 public:
  /// config: validated for line.
  Dcqcn(const DcqcnConfig& config, Rate line);

  /// Rc. now: never before an earlier one, here and below.
  [[nodiscard]] Rate rate(Instant now) {
    if (now >= next_change_) advance(now);
    return Rate::mbps(rc_);
  }
  void on_cnp(Instant now);
  void on_sent(Instant now, std::uint32_t bytes) {
    if (!active_) return;
    if (now >= next_change_) advance(now);
    bytes_ += bytes;
    if (bytes_ >= byte_limit_) count_bytes(now);
  }
  /// When the rate next changes if no CNP comes and nothing is sent; never() when it does not.
  [[nodiscard]] Instant next_change() const { return next_change_; }

  /// Brings everything up to date, for queries.
  void settle(Instant now);

  [[nodiscard]] const DcqcnConfig& config() const { return config_; }
  [[nodiscard]] Rate maximum() const { return Rate::mbps(max_); }
  [[nodiscard]] bool active() const { return active_; }
  // As of the last call that took a time; settle() first.
  [[nodiscard]] Rate rc() const { return Rate::mbps(rc_); }
  [[nodiscard]] Rate rt() const { return Rate::mbps(rt_); }
  [[nodiscard]] double alpha() const { return alpha_; }
  [[nodiscard]] std::uint64_t t() const { return t_; }
  [[nodiscard]] std::uint64_t bc() const { return bc_; }
  [[nodiscard]] std::uint64_t cnps() const { return cnps_; }
  [[nodiscard]] std::uint64_t cuts() const { return cuts_; }

  void observe(RpObserver observer) { observer_ = observer; }

 private:
  enum class Source : std::uint8_t { TIMER, BYTES };
  enum class Phase : std::uint8_t { FAST_RECOVERY, ADDITIVE, HYPER };
  struct Step {
    Phase phase;
    double mbps;  ///< that Rt gains
  };

  void advance(Instant now);
  void run(Instant now);
  void rearm();
  void count_bytes(Instant now);
  [[nodiscard]] bool begin(Instant now);
  void take_alpha_sample();
  void cut(Instant now);
  void reset_increase(Instant now);
  void settle_alpha(Instant now);
  void decay_alpha(std::int64_t ticks);
  void increase(Instant now, Source source);
  [[nodiscard]] Step next_step() const;
  [[nodiscard]] bool increases_change_nothing() const;
  [[nodiscard]] bool increases_are_alike() const;
  [[nodiscard]] Duration increase_period() const;
  void skip_increases(Instant last);
  void note(Instant at, RpEventKind kind) const;

  // Hot: rate(), next_change(), on_sent().
  Instant next_change_ = Instant::never();
  double rc_;  ///< Mb/s, as all rates here
  std::uint64_t bytes_ = 0;
  std::uint64_t byte_limit_;
  bool active_ = false;       ///< the limiter is allocated
  bool cut_due_ = false;      ///< a CNP came in this monitor period
  bool cnp_sampled_ = false;  ///< a CNP came in this alpha period
  bool hyper_ = false;        ///< the last increase was a hyper increase

  double rt_;
  double alpha_;
  double max_;
  double min_;
  std::uint64_t t_ = 0, bc_ = 0;
  Instant next_alpha_ = Instant::never();
  Instant next_cut_ = Instant::never();
  Instant next_increase_ = Instant::never();
  Instant last_cut_{};
  std::uint64_t cnps_ = 0, cuts_ = 0;
  RpObserver observer_;
  DcqcnConfig config_;
};

}  // namespace roce::congestion
