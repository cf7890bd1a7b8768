#include "traffic/perftest/meter.hpp"

#include <algorithm>
#include <cmath>

namespace roce::traffic::perftest {
namespace {

/// Beyond that many samples the histogram has to do.
constexpr std::uint64_t kMostExact = 4'000'000;

}  // namespace

double in_rate_unit(double bytes_per_s, RateUnit unit) {
  return unit == RateUnit::GBIT_PER_S ? bytes_per_s * 8 / 1e9 : bytes_per_s / (1024.0 * 1024.0);
}

RunClock::Phase RunClock::phase(Instant now) {
  if (!start_) start_ = now;
  if (until_ != Until::DURATION) return Phase::SAMPLE;
  const Duration elapsed = now - *start_;
  if (elapsed < margin_) return Phase::WARM_UP;
  if (elapsed < duration_ - margin_) return Phase::SAMPLE;
  return elapsed < duration_ ? Phase::COOL_DOWN : Phase::OVER;
}

BandwidthMeter::BandwidthMeter(const Plan& plan) : plan_(plan) {
  if (plan.peak == Switch::OFF) return;
  posts_.reserve(kMostPoints);
  completions_.reserve(kMostPoints);
}

void BandwidthMeter::add(std::vector<Point>& points, Point point, std::size_t& stride,
                         std::size_t& seen) {
  if (seen++ % stride != 0) return;
  if (points.size() == kMostPoints) {
    for (std::size_t i = 0; i < kMostPoints / 2; ++i) points[i] = points[2 * i];
    points.resize(kMostPoints / 2);
    stride *= 2;
  }
  points.push_back(point);
}

void BandwidthMeter::posted(Instant now, std::uint64_t messages) {
  if (!first_ && plan_.until != Until::DURATION) first_ = now;
  // Several posts at one instant began when the first did.
  const bool same_instant = !posts_.empty() && posts_.back().at == now;
  if (plan_.peak == Switch::ON && !same_instant)
    add(posts_, {now, posted_}, post_stride_, post_seen_);
  posted_ += messages;
}

void BandwidthMeter::completed(Instant now, std::uint64_t messages, std::uint64_t bytes,
                               RunClock::Phase phase) {
  completed_ += messages;
  if (phase != RunClock::Phase::SAMPLE) return;
  if (!first_) first_ = now;
  if (*first_ == now) {
    at_start_ += messages;
    bytes_at_start_ += bytes;
  }
  last_ = now;
  counted_ += messages;
  bytes_ += bytes;
  if (plan_.peak == Switch::OFF) return;
  // Several completions at one instant ended together.
  if (!completions_.empty() && completions_.back().at == now)
    completions_.back().messages = completed_;
  else
    add(completions_, {now, completed_}, completion_stride_, completion_seen_);
}

double BandwidthMeter::peak_messages_per_ns() const {
  double best = 0;
  for (const Point& begin : posts_) {
    for (const Point& end : completions_) {
      if (end.at <= begin.at || end.messages <= begin.messages) continue;
      best = std::max(best, static_cast<double>(end.messages - begin.messages) /
                                static_cast<double>((end.at - begin.at).ns()));
    }
  }
  return best;
}

BandwidthResult BandwidthMeter::result() const {
  BandwidthResult result;
  result.size = counted_ == 0 ? plan_.size : bytes_ / counted_;
  result.messages = counted_;
  result.iterations = counted_;
  if (first_ && last_) result.elapsed = *last_ - *first_;
  std::uint64_t during = counted_ - at_start_;
  std::uint64_t bytes_during = bytes_ - bytes_at_start_;
  // A run by duration counts what completed within the sample, whose length is known.
  if (plan_.until == Until::DURATION && counted_ != 0) {
    result.elapsed = plan_.duration - plan_.margin * 2;
    during = counted_;
    bytes_during = bytes_;
  }
  if (result.elapsed.ns() > 0) {
    result.messages_per_s = static_cast<double>(during) / result.elapsed.s();
    result.average_bytes_per_s = static_cast<double>(bytes_during) / result.elapsed.s();
  }
  if (plan_.peak == Switch::ON)
    result.peak_bytes_per_s =
        std::max(peak_messages_per_ns() * 1e9 * static_cast<double>(result.size),
                 result.average_bytes_per_s);
  return result;
}

LatencyMeter::LatencyMeter(const Plan& plan)
    : plan_(plan), divisor_(plan.verb() == Verb::WRITE || plan.verb() == Verb::SEND ? 2 : 1) {
  if (plan.until == Until::ITERATIONS && plan.iterations <= kMostExact)
    exact_.reserve(plan.iterations);
}

void LatencyMeter::record(Duration latency) {
  const std::int64_t ns = std::max<std::int64_t>(latency.ns(), 0);
  if (exact_.capacity() != 0) exact_.push_back(ns);
  histogram_.record(static_cast<std::uint64_t>(ns) / divisor_);
}

void LatencyMeter::posted(Instant now, RunClock::Phase phase) {
  if (divisor_ == 2 && previous_ && phase == RunClock::Phase::SAMPLE) record(now - *previous_);
  previous_ = now;
}

void LatencyMeter::completed(Instant now, RunClock::Phase phase) {
  if (previous_ && phase == RunClock::Phase::SAMPLE) record(now - *previous_);
}

LatencyResult LatencyMeter::result() const {
  LatencyResult result;
  result.size = plan_.size;
  result.iterations = histogram_.count();
  if (histogram_.count() == 0) return result;
  result.average_us = histogram_.mean() / 1e3;
  if (result.average_us > 0)
    result.transactions_per_s = 1e6 / (result.average_us * static_cast<double>(divisor_));
  if (exact_.empty()) {
    result.min_us = static_cast<double>(histogram_.min()) / 1e3;
    result.max_us = static_cast<double>(histogram_.max()) / 1e3;
    result.typical_us = static_cast<double>(histogram_.quantile(0.5)) / 1e3;
    result.p99_us = static_cast<double>(histogram_.quantile(0.99)) / 1e3;
    result.p999_us = static_cast<double>(histogram_.quantile(0.999)) / 1e3;
    return result;
  }
  const double scale = 1.0 / (1e3 * static_cast<double>(divisor_));
  for (const std::int64_t ns : exact_) result.samples_us.push_back(static_cast<double>(ns) * scale);
  std::vector<double> sorted = result.samples_us;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double share) {
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
  };
  result.min_us = sorted.front();
  result.max_us = sorted.back();
  result.typical_us = at(0.5);
  result.p99_us = at(0.99);
  result.p999_us = at(0.999);
  double sum = 0;
  for (const double us : sorted) sum += us;
  result.average_us = sum / static_cast<double>(sorted.size());
  double squares = 0;
  for (const double us : sorted) squares += (us - result.average_us) * (us - result.average_us);
  result.stdev_us = std::sqrt(squares / static_cast<double>(sorted.size()));
  return result;
}

}  // namespace roce::traffic::perftest
