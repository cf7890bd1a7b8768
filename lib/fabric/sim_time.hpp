// SimTime: a point of a network's virtual time, in picoseconds, in which every usual link rate has
// a whole number per byte (80 at 100 Gb/s, 10 at 800 Gb/s). Hosts see it as an Instant, in
// nanoseconds.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "base/time.hpp"

namespace roce::fabric {

/// A span of virtual time; 2^63 of them are 106 days.
using Picoseconds = std::int64_t;

[[nodiscard]] constexpr Picoseconds to_ps(Duration d) {
  return d.ns() * 1'000;
}

struct SimTime {
  std::int64_t ps = 0;

  [[nodiscard]] static constexpr SimTime never() {
    return {std::numeric_limits<std::int64_t>::max()};
  }
  /// Instants too far off to be told in picoseconds are never().
  [[nodiscard]] static constexpr SimTime from(Instant t) {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 1'000;
    return t.ns() >= kMost ? never() : SimTime{t.ns() * 1'000};
  }
  /// The nanosecond that it lies in.
  [[nodiscard]] constexpr Instant instant() const { return Instant::from_ns(ps / 1'000); }

  friend constexpr auto operator<=>(SimTime, SimTime) = default;
  friend constexpr SimTime operator+(SimTime t, Picoseconds span) { return {t.ps + span}; }
  friend constexpr SimTime operator-(SimTime t, Picoseconds span) { return {t.ps - span}; }
  friend constexpr Picoseconds operator-(SimTime a, SimTime b) { return a.ps - b.ps; }
};

}  // namespace roce::fabric
