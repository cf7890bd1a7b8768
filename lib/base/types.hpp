// Numbers of the transport that must not be mixed up: PSN and QPN.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace roce {

/// Packet sequence number: 24 bits, serial arithmetic (IBTA vol. 1, 9.7.1).
class Psn {
 public:
  static constexpr std::uint32_t kMask = 0xff'ffff;

  constexpr Psn() = default;
  /// Takes the low 24 bits.
  explicit constexpr Psn(std::uint32_t value) : value_(value & kMask) {}

  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }

  friend constexpr bool operator==(Psn, Psn) = default;
  friend constexpr Psn operator+(Psn psn, std::uint32_t n) { return Psn{psn.value_ + n}; }
  friend constexpr Psn operator-(Psn psn, std::uint32_t n) { return Psn{psn.value_ - n}; }
  constexpr Psn& operator+=(std::uint32_t n) { return *this = *this + n; }

 private:
  std::uint32_t value_ = 0;
};

/// a - b in serial arithmetic, in [-2^23, 2^23): negative when a is older than b.
[[nodiscard]] constexpr std::int32_t distance(Psn a, Psn b) {
  return static_cast<std::int32_t>((a.value() - b.value()) << 8) >> 8;
}
[[nodiscard]] constexpr bool before(Psn a, Psn b) {
  return distance(a, b) < 0;
}

/// Queue pair number: 24 bits.
class Qpn {
 public:
  static constexpr std::uint32_t kMask = 0xff'ffff;

  constexpr Qpn() = default;
  explicit constexpr Qpn(std::uint32_t value) : value_(value & kMask) {}
  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  friend constexpr auto operator<=>(Qpn, Qpn) = default;

 private:
  std::uint32_t value_ = 0;
};

}  // namespace roce

template <>
struct std::hash<roce::Qpn> {
  std::size_t operator()(roce::Qpn qpn) const noexcept { return qpn.value(); }
};
