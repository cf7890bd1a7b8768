// The measuring side of a run: RunClock says what is measured, BandwidthMeter and LatencyMeter
// turn instants into perftest's figures.
//
// Used by the data planes with the instants they are given; reads no clock. LatencyMeter allocates
// at construction only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/histogram.hpp"
#include "base/time.hpp"
#include "traffic/perftest/plan.hpp"

namespace roce::traffic::perftest {

/// Phases of a run by duration: margin, sample, margin. A run by iterations is all SAMPLE.
class RunClock {
 public:
  enum class Phase : std::uint8_t { WARM_UP, SAMPLE, COOL_DOWN, OVER };

  explicit RunClock(const Plan& plan)
      : until_(plan.until), duration_(plan.duration), margin_(plan.margin) {}
  /// The first call starts the run.
  [[nodiscard]] Phase phase(Instant now);
  [[nodiscard]] bool started() const { return start_.has_value(); }
  [[nodiscard]] std::optional<Instant> start() const { return start_; }

 private:
  Until until_;
  Duration duration_, margin_;
  std::optional<Instant> start_;
};

/// The unit in which a side prints rates, and reports them to its peer.
enum class RateUnit : std::uint8_t { MIB_PER_S, GBIT_PER_S };
/// Bytes a second in that unit.
[[nodiscard]] double in_rate_unit(double bytes_per_s, RateUnit unit);

struct BandwidthResult {
  std::uint64_t size = 0;        ///< bytes of a message
  std::uint64_t iterations = 0;  ///< perftest's column; ours counts the messages of all QPs
  std::uint64_t messages = 0;    ///< of all QPs, measured
  std::optional<double> peak_bytes_per_s;  ///< none when not asked for
  double average_bytes_per_s = 0;
  double messages_per_s = 0;
  Duration elapsed{};  ///< between the first post (or arrival) and the last completion
};

/// Counts messages as they are posted and completed (or arrive).
class BandwidthMeter {
 public:
  explicit BandwidthMeter(const Plan& plan);

  void posted(Instant now, std::uint64_t messages);
  /// messages: completed now. phase: only those in SAMPLE count.
  void completed(Instant now, std::uint64_t messages, RunClock::Phase phase) {
    completed(now, messages, messages * plan_.size, phase);
  }
  /// bytes: of all these messages, for a receiver that does not know their size.
  void completed(Instant now, std::uint64_t messages, std::uint64_t bytes, RunClock::Phase phase);
  [[nodiscard]] std::uint64_t counted() const { return counted_; }
  [[nodiscard]] BandwidthResult result() const;

 private:
  /// posts_[i]: messages posted before that instant. completions_[i]: completed by it.
  struct Point {
    Instant at;
    std::uint64_t messages;
  };
  static constexpr std::size_t kMostPoints = 4096;
  /// Keeps every other point when there are too many: a coarser peak, never a wrong one.
  static void add(std::vector<Point>& points, Point point, std::size_t& stride, std::size_t& seen);
  [[nodiscard]] double peak_messages_per_ns() const;

  Plan plan_;
  std::vector<Point> posts_, completions_;
  std::size_t post_stride_ = 1, post_seen_ = 0;
  std::size_t completion_stride_ = 1, completion_seen_ = 0;
  std::optional<Instant> first_, last_;
  std::uint64_t posted_ = 0, completed_ = 0, counted_ = 0;
  std::uint64_t bytes_ = 0;  ///< of those counted
  std::uint64_t bytes_at_start_ = 0;
  std::uint64_t at_start_ = 0;  ///< arrived at the very instant that began the measurement
};

struct LatencyResult {
  std::uint64_t size = 0;
  std::uint64_t iterations = 0;  ///< measured
  double min_us = 0, max_us = 0, typical_us = 0, average_us = 0, stdev_us = 0;
  double p99_us = 0, p999_us = 0;
  double transactions_per_s = 0;     ///< round trips (half of them for READ and atomics: all)
  std::vector<double> samples_us{};  ///< in the order of time; only by iterations
};

/// Records when each message was posted. A latency is the time from one post to the next, halved
/// for ping-pongs, as in perftest.
class LatencyMeter {
 public:
  explicit LatencyMeter(const Plan& plan);

  void posted(Instant now, RunClock::Phase phase);
  /// READs and atomics: the answer to the last post has come. Ping-pongs do not call it.
  void completed(Instant now, RunClock::Phase phase);
  [[nodiscard]] LatencyResult result() const;
  [[nodiscard]] const Histogram& histogram() const { return histogram_; }  ///< nanoseconds

 private:
  void record(Duration latency);

  Plan plan_;
  std::uint64_t divisor_;            ///< 2 for ping-pongs
  std::vector<std::int64_t> exact_;  ///< nanoseconds, undivided; only by iterations
  Histogram histogram_;              ///< nanoseconds, divided
  std::optional<Instant> previous_;
};

}  // namespace roce::traffic::perftest
