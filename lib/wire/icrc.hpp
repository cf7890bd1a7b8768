// The invariant CRC of RoCEv2 (IBTA vol. 1, 7.8 and annex A17): CRC-32 of zlib's kind over eight
// 0xff bytes, the IP and UDP headers and the BTH with their variant fields set to ones, and
// everything behind them up to the ICRC itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace roce::wire {

/// Computes the ICRC of a RoCEv2 packet.
/// ip_packet: from the first byte of the IPv4 (IHL 5) or IPv6 header up to and without the ICRC; at
/// least IP + UDP + BTH long. Stored least significant byte first on the wire.
[[nodiscard]] std::uint32_t icrc(std::span<const std::byte> ip_packet);

/// The same for a packet whose payload is not there yet: copies it to the end of ip_packet on the
/// way. payload: a multiple of four bytes (no pad), not overlapping ip_packet.
[[nodiscard]] std::uint32_t icrc_copying(std::span<std::byte> ip_packet,
                                         std::span<const std::byte> payload);

/// Reads and writes the four ICRC bytes as they stand on the wire.
[[nodiscard]] std::uint32_t load_icrc(const std::byte* at);
void store_icrc(std::byte* at, std::uint32_t icrc);

}  // namespace roce::wire
