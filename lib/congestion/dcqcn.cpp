#include "congestion/dcqcn.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace roce::congestion {
namespace {

constexpr double kQ10 = 1024;
/// Nearer to the maximum than that, a limiter may be released.
constexpr double kReleaseMbps = 1;

/// weight^n by squaring: the same on every machine, unlike pow().
double power(double weight, std::int64_t n) {
  double result = 1;
  for (; n > 0; n >>= 1) {
    if (n & 1) result *= weight;
    weight *= weight;
  }
  return result;
}

/// How many ticks of a period are due up to last, the first one at next.
std::int64_t ticks_until(Instant last, Instant next, Duration period) {
  return next > last ? 0 : (last - next).ns() / period.ns() + 1;
}

}  // namespace

std::string_view name_of(RpEventKind kind) {
  constexpr std::array<std::string_view, 12> kNames = {
      "CNP cut",    "first CNP",  "CNP",        "cut",         "alpha",       "FR (timer)",
      "FR (bytes)", "AI (timer)", "AI (bytes)", "HAI (timer)", "HAI (bytes)", "released"};
  return kNames[static_cast<std::size_t>(kind)];
}

Dcqcn::Dcqcn(const DcqcnConfig& config, Rate line) : config_(config) {
  max_ = config.max_rate.mbps() > 0 ? std::min(config.max_rate, line).mbps() : line.mbps();
  min_ = std::min(config.min_rate.mbps(), max_);
  rc_ = rt_ = max_;
  alpha_ = config.initial_alpha_value / kQ10;
  byte_limit_ =
      config.byte_reset > 0 ? config.byte_reset : std::numeric_limits<std::uint64_t>::max();
}

void Dcqcn::note(Instant at, RpEventKind kind) const {
  if (observer_) observer_.note(observer_.context, {at, kind, rc_, rt_, alpha_, t_, bc_});
}

void Dcqcn::advance(Instant now) {
  run(now);
  rearm();
}

void Dcqcn::settle(Instant now) {
  run(now);
  settle_alpha(now);
  rearm();
}

/// All cuts and increases that fall due up to now, in their order.
void Dcqcn::run(Instant now) {
  while (active_) {
    const bool cut_first = cut_due_ && next_cut_ <= next_increase_;
    const Instant due = cut_first ? next_cut_ : next_increase_;
    if (due > now) break;
    if (cut_first) {
      settle_alpha(due);
      next_cut_ = due + config_.rate_reduce_monitor_period;
      cut_due_ = false;
      cut(due);
      note(due, RpEventKind::CUT);
    } else if (!observer_ && increases_change_nothing() && increases_are_alike()) {
      const Duration tick = Duration::nanoseconds(1);
      skip_increases(cut_due_ ? std::min(now, next_cut_ - tick) : now);
    } else {
      if (observer_) settle_alpha(due);
      increase(due, Source::TIMER);
    }
  }
  if (observer_) settle_alpha(now);
}

void Dcqcn::rearm() {
  next_change_ = increases_change_nothing() ? Instant::never() : next_increase_;
  if (cut_due_ && next_cut_ < next_change_) next_change_ = next_cut_;
}

// --- CNP ---

void Dcqcn::on_cnp(Instant now) {
  run(now);
  ++cnps_;
  const bool first = !active_;
  const bool replaced = first && begin(now);
  if (config_.cut_rule == CutRule::PERIOD) {
    cut_due_ = !replaced;
    // The first CNP starts the periods and does not count in its own: alpha decays at its end.
    if (!first) {
      settle_alpha(now);
      // Periods that ended without a CNP have passed unseen.
      const Duration period = config_.rate_reduce_monitor_period;
      next_cut_ = next_cut_ + period * ticks_until(now, next_cut_, period);
      take_alpha_sample();
    }
    note(now, first ? RpEventKind::FIRST_CNP : RpEventKind::CNP);
  } else {
    settle_alpha(now);
    const bool cuts = !replaced && (first || config_.cut_rule == CutRule::AT_CNP ||
                                    now - last_cut_ >= config_.rate_reduce_monitor_period);
    if (config_.cut_alpha == CutAlpha::NEW) take_alpha_sample();
    if (cuts) cut(now);
    if (config_.cut_alpha == CutAlpha::OLD) take_alpha_sample();
    if (config_.alpha_rule == AlphaRule::ON_SILENCE) next_alpha_ = now + config_.dce_tcp_rtt;
    note(now, cuts ? RpEventKind::CNP_CUT : first ? RpEventKind::FIRST_CNP : RpEventKind::CNP);
  }
  rearm();
}

/// The first CNP. Returns whether it set a rate instead of cutting.
bool Dcqcn::begin(Instant now) {
  active_ = true;
  if (config_.first_cnp_sets_alpha) alpha_ = config_.initial_alpha_value / kQ10;
  cnp_sampled_ = false;
  next_alpha_ = now + config_.dce_tcp_rtt;
  next_cut_ = now + config_.rate_reduce_monitor_period + config_.first_cut_extra;
  reset_increase(now);
  const double first_rate = config_.rate_to_set_on_first_cnp.mbps();
  if (first_rate <= 0) return false;
  rc_ = rt_ = std::min(first_rate, max_);
  return config_.first_rate_replaces_cut;
}

/// A CNP raises alpha: at once, or when the alpha period ends.
void Dcqcn::take_alpha_sample() {
  if (config_.alpha_rule == AlphaRule::PERIODIC) {
    cnp_sampled_ = true;
    return;
  }
  const double weight = config_.dce_tcp_g / kQ10;
  alpha_ = std::min(weight * alpha_ + (1 - weight), config_.alpha_cap / kQ10);
}

void Dcqcn::cut(Instant now) {
  const bool clamp = config_.rt_on_cut == RtOnCut::ALWAYS ||
                     (config_.rt_on_cut == RtOnCut::AFTER_INCREASE && (t_ > 0 || bc_ > 0)) ||
                     (config_.rt_on_cut == RtOnCut::AFTER_BYTES && bc_ > 0);
  if (clamp) rt_ = rc_;
  const double share = std::ldexp(alpha_, 10 - static_cast<int>(config_.gd));
  const double most = rc_ * (100.0 - config_.min_dec_fac) / 100;
  rc_ = std::max(min_, rc_ - std::min(rc_ * share, most));
  ++cuts_;
  last_cut_ = now;
  reset_increase(now);
}

void Dcqcn::reset_increase(Instant now) {
  hyper_ = false;
  t_ = bc_ = bytes_ = 0;
  byte_limit_ =
      config_.byte_reset > 0 ? config_.byte_reset : std::numeric_limits<std::uint64_t>::max();
  next_increase_ = now + config_.time_reset;
}

// --- alpha ---

/// All alpha ticks up to now, in one step unless each has to be told.
void Dcqcn::settle_alpha(Instant now) {
  if (!active_) return;
  const std::int64_t ticks = ticks_until(now, next_alpha_, config_.dce_tcp_rtt);
  if (ticks == 0) return;
  if (config_.alpha_rule == AlphaRule::ON_SILENCE && observer_) {
    for (std::int64_t i = 0; i < ticks; ++i) {
      decay_alpha(1);
      note(next_alpha_, RpEventKind::ALPHA);
      next_alpha_ = next_alpha_ + config_.dce_tcp_rtt;
    }
    return;
  }
  decay_alpha(1);
  if (cnp_sampled_) {
    alpha_ = std::min(alpha_ + (kQ10 - config_.dce_tcp_g) / kQ10, config_.alpha_cap / kQ10);
    cnp_sampled_ = false;
  }
  decay_alpha(ticks - 1);
  next_alpha_ = next_alpha_ + config_.dce_tcp_rtt * ticks;
}

void Dcqcn::decay_alpha(std::int64_t ticks) {
  const double weight = config_.dce_tcp_g / kQ10;
  if (config_.alpha_resolution == AlphaResolution::REAL) {
    alpha_ *= power(weight, ticks);
    return;
  }
  // Rounding down makes each step lose a 1024th at least: it ends at 0 before long.
  double q10 = alpha_ * kQ10;
  for (; ticks > 0 && q10 > 0; --ticks) q10 = std::floor(q10 * weight);
  alpha_ = q10 / kQ10;
}

// --- increase ---

void Dcqcn::count_bytes(Instant now) {
  run(now);
  while (active_ && bytes_ >= byte_limit_) {
    bytes_ -= byte_limit_;
    increase(now, Source::BYTES);
  }
  rearm();
}

/// What an increase event does, by the stage counters as they stand.
Dcqcn::Step Dcqcn::next_step() const {
  const std::uint64_t high = std::max(t_, bc_), low = std::min(t_, bc_), f = config_.threshold;
  if (config_.fast_recovery == FastRecovery::UP_TO ? high <= f : high < f)
    return {Phase::FAST_RECOVERY, 0};
  std::uint64_t depth = 0;  // of hyper increase
  switch (config_.hyper_rule) {
    case HyperRule::BOTH_ABOVE:
      depth = low > f ? low - f : 0;
      break;
    case HyperRule::BOTH_REACHED:
      depth = low >= f ? low - f + 1 : 0;
      break;
    case HyperRule::EITHER_ABOVE:
      depth = high > f ? high - f : 0;
      break;
  }
  if (depth == 0) return {Phase::ADDITIVE, config_.ai_rate.mbps()};
  const double factor = config_.hai_scaled ? static_cast<double>(depth) : 1.0;
  return {Phase::HYPER, config_.hai_rate.mbps() * factor};
}

/// From one timer event to the next.
Duration Dcqcn::increase_period() const {
  return config_.hyper_halves && hyper_ ? config_.time_reset / 2 : config_.time_reset;
}

void Dcqcn::increase(Instant now, Source source) {
  const bool timer = source == Source::TIMER;
  // Where periods halve, it is the events within hyper increase that start short ones.
  if (timer) next_increase_ = now + increase_period();
  if (!timer && config_.hyper_halves) byte_limit_ = config_.byte_reset / (hyper_ ? 2 : 1);
  std::uint64_t& counter = timer ? t_ : bc_;
  if (config_.count_first) ++counter;
  const Step step = next_step();
  hyper_ = step.phase == Phase::HYPER;
  if (config_.rt_eighths && (t_ == 1 || bc_ == 1) && rt_ > 10 * rc_)
    rt_ /= 8;
  else
    rt_ += step.mbps;
  if (config_.cap_rt) rt_ = std::min(rt_, max_);
  rc_ = std::min((rc_ + rt_) / 2, max_);
  if (!config_.count_first) ++counter;
  note(now, static_cast<RpEventKind>(static_cast<unsigned>(RpEventKind::FAST_RECOVERY_TIMER) +
                                     2 * static_cast<unsigned>(step.phase) + (timer ? 0u : 1u)));
  if (config_.release && max_ - rc_ < kReleaseMbps) {
    rc_ = rt_ = max_;
    active_ = cut_due_ = false;
    next_alpha_ = next_cut_ = next_increase_ = Instant::never();
    note(now, RpEventKind::RELEASED);
  }
}

/// Whether timer events move the counters and a hidden Rt only: Rc is as high as it goes.
bool Dcqcn::increases_change_nothing() const {
  return rt_ >= max_ && std::min((rc_ + rt_) / 2, max_) == rc_;
}

/// Whether all timer events to come add the same: nothing to Rt, or T no longer decides how much.
bool Dcqcn::increases_are_alike() const {
  return (config_.cap_rt && !config_.hyper_halves) ||
         t_ > std::max<std::uint64_t>(config_.threshold, bc_);
}

/// The timer events up to last, none of which changes Rc and which are all alike.
void Dcqcn::skip_increases(Instant last) {
  const Duration period = increase_period();
  const std::int64_t ticks = ticks_until(last, next_increase_, period);
  next_increase_ = next_increase_ + period * ticks;
  if (!config_.cap_rt) rt_ += next_step().mbps * static_cast<double>(ticks);
  t_ += static_cast<std::uint64_t>(ticks);
}

}  // namespace roce::congestion
