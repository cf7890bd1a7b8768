// MacAddress and IpAddress: addresses as values, in network byte order.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace roce {

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};

  [[nodiscard]] static Result<MacAddress> from_string(std::string_view text);
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] constexpr bool is_multicast() const { return (bytes[0] & 1) != 0; }
  [[nodiscard]] static constexpr MacAddress broadcast() {
    return {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
  }
  friend constexpr auto operator<=>(const MacAddress&, const MacAddress&) = default;
};

/// A 128-bit GID: an IPv6 address, or an IPv4 address mapped as ::ffff:a.b.c.d (RoCEv2, annex
/// A17). One type serves both families, as in verbs.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  [[nodiscard]] static constexpr IpAddress v4(std::uint8_t a, std::uint8_t b, std::uint8_t c,
                                              std::uint8_t d) {
    return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}};
  }
  [[nodiscard]] static Result<IpAddress> from_string(std::string_view text);
  /// Dotted quad for a mapped IPv4 address, else RFC 5952 text.
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] constexpr bool is_v4() const {
    for (int i = 0; i < 10; ++i)
      if (bytes[static_cast<std::size_t>(i)] != 0) return false;
    return bytes[10] == 0xff && bytes[11] == 0xff;
  }
  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

/// An address and the length of its subnet prefix, as in "198.18.0.1/24".
struct IpPrefix {
  IpAddress address;
  std::uint8_t length = 0;  ///< 0..32 for IPv4, 0..128 for IPv6

  [[nodiscard]] static Result<IpPrefix> from_string(std::string_view text);
  /// Whether other lies in the same subnet (false across families).
  [[nodiscard]] bool contains(const IpAddress& other) const;
};

}  // namespace roce
