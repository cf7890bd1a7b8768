// CRC-32 (the polynomial of Ethernet and zlib) over bytes some of which count as ones. Two ways to
// the same number; icrc.cpp takes the fastest that the CPU has.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace roce::wire {

/// Which of the first bytes of a packet count as 0xff: their mask byte is 0xff, all others are 0.
struct CrcMask {
  std::array<std::uint8_t, 80> bytes{};  ///< longer than covered, so that 16 can be read from it
  std::size_t covered = 0;               ///< no mask byte from here on; at most 64
};

/// CRC-32 as zlib's crc32(seed, data), of data | mask.
/// data: at least 16 and mask.covered bytes, and a multiple of four.
using MaskedCrc = std::uint32_t (*)(std::uint32_t seed, std::span<const std::byte> data,
                                    const CrcMask& mask);

/// By ISA-L alone; works on every CPU.
[[nodiscard]] std::uint32_t masked_crc_portable(std::uint32_t seed, std::span<const std::byte> data,
                                                const CrcMask& mask);

/// By carry-less multiplication (PCLMULQDQ), which masks in registers and costs half as much on
/// short packets; the long rest goes to ISA-L. Needs carry_less_multiply_available().
[[nodiscard]] std::uint32_t masked_crc_folding(std::uint32_t seed, std::span<const std::byte> data,
                                               const CrcMask& mask);
[[nodiscard]] bool carry_less_multiply_available();

}  // namespace roce::wire
