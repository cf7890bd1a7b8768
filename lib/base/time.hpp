// Instant and Duration: the only way time crosses a module edge. Nothing here reads a clock;
// the worker reads one per turn, the simulation counts its own.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace roce {

/// A signed span of time in nanoseconds.
class Duration {
 public:
  constexpr Duration() = default;
  [[nodiscard]] static constexpr Duration nanoseconds(std::int64_t n) { return Duration{n}; }
  [[nodiscard]] static constexpr Duration microseconds(std::int64_t n) {
    return Duration{n * 1'000};
  }
  [[nodiscard]] static constexpr Duration milliseconds(std::int64_t n) {
    return Duration{n * 1'000'000};
  }
  [[nodiscard]] static constexpr Duration seconds(std::int64_t n) {
    return Duration{n * 1'000'000'000};
  }

  [[nodiscard]] constexpr std::int64_t ns() const { return ns_; }
  [[nodiscard]] constexpr double us() const { return static_cast<double>(ns_) / 1e3; }
  [[nodiscard]] constexpr double s() const { return static_cast<double>(ns_) / 1e9; }

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return Duration{a.ns_ + b.ns_}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return Duration{a.ns_ - b.ns_}; }
  friend constexpr Duration operator*(Duration a, std::int64_t k) { return Duration{a.ns_ * k}; }
  friend constexpr Duration operator/(Duration a, std::int64_t k) { return Duration{a.ns_ / k}; }

 private:
  explicit constexpr Duration(std::int64_t ns) : ns_(ns) {}
  std::int64_t ns_ = 0;
};

/// A point on some monotonic clock, in nanoseconds since that clock's own start.
class Instant {
 public:
  constexpr Instant() = default;
  [[nodiscard]] static constexpr Instant from_ns(std::int64_t ns) { return Instant{ns}; }
  /// Later than every real instant: "no deadline".
  [[nodiscard]] static constexpr Instant never() {
    return Instant{std::numeric_limits<std::int64_t>::max()};
  }

  [[nodiscard]] constexpr std::int64_t ns() const { return ns_; }
  [[nodiscard]] constexpr bool is_never() const { return *this == never(); }

  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant t, Duration d) { return Instant{t.ns_ + d.ns()}; }
  friend constexpr Instant operator-(Instant t, Duration d) { return Instant{t.ns_ - d.ns()}; }
  friend constexpr Duration operator-(Instant a, Instant b) {
    return Duration::nanoseconds(a.ns_ - b.ns_);
  }

 private:
  explicit constexpr Instant(std::int64_t ns) : ns_(ns) {}
  std::int64_t ns_ = 0;
};

}  // namespace roce
