// The Internet checksum (RFC 1071), for IPv4, ICMP and ICMPv6 headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"

namespace roce::wire {

/// One's complement of the one's complement sum, ready to be stored big-endian; 0 over bytes that
/// hold a right checksum. initial: a partial sum (not complemented) to start from.
[[nodiscard]] std::uint16_t internet_checksum(std::span<const std::byte> bytes,
                                              std::uint32_t initial = 0);

/// Partial sum of the IPv6 pseudo-header (RFC 8200, 8.1), to pass as initial.
[[nodiscard]] std::uint32_t ipv6_pseudo_header_sum(const IpAddress& source,
                                                   const IpAddress& destination,
                                                   std::uint32_t length, std::uint8_t protocol);

}  // namespace roce::wire
