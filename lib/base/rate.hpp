// Rate: bits per second, the only way a rate crosses a module edge.
#pragma once

#include <compare>
#include <limits>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace roce {

/// A rate in bits per second, kept as megabits per second in a double: the unit in which NICs are
/// configured, exact for every integer of it.
class Rate {
 public:
  constexpr Rate() = default;
  [[nodiscard]] static constexpr Rate mbps(double megabits_per_second) {
    return Rate{megabits_per_second};
  }
  [[nodiscard]] static constexpr Rate gbps(double gigabits_per_second) {
    return Rate{gigabits_per_second * 1e3};
  }
  [[nodiscard]] static constexpr Rate bps(double bits_per_second) {
    return Rate{bits_per_second / 1e6};
  }
  /// "40Gbps", "2.5 Gbps": a number and one of bps, kbps, Mbps, Gbps, Tbps. Fails on anything else,
  /// on a missing unit too.
  [[nodiscard]] static Result<Rate> from_string(std::string_view text);
  /// Above every real rate: nothing limits.
  [[nodiscard]] static constexpr Rate unlimited() {
    return Rate{std::numeric_limits<double>::infinity()};
  }

  [[nodiscard]] constexpr double mbps() const { return mbps_; }
  [[nodiscard]] constexpr double gbps() const { return mbps_ / 1e3; }
  [[nodiscard]] constexpr double bps() const { return mbps_ * 1e6; }
  [[nodiscard]] constexpr bool is_unlimited() const { return *this == unlimited(); }

  /// Bytes that pass in a span of time. Not for unlimited().
  [[nodiscard]] constexpr double bytes_in(Duration span) const {
    return mbps_ * static_cast<double>(span.ns()) / 8e3;
  }
  /// Nanoseconds that bytes take. 0 for unlimited().
  [[nodiscard]] constexpr double ns_for(double bytes) const { return bytes * 8e3 / mbps_; }

  friend constexpr auto operator<=>(Rate, Rate) = default;

 private:
  explicit constexpr Rate(double mbps) : mbps_(mbps) {}
  double mbps_ = 0;
};

}  // namespace roce
