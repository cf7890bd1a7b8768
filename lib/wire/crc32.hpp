// CRC-32 (the polynomial of Ethernet and zlib) over bytes some of which count as ones. Several ways
// to the same number; icrc.cpp takes the fastest that the CPU has.
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

/// The same, after the last bytes of data have been copied from tail, which does not overlap them.
/// At least 16 and mask.covered bytes stand before them.
using MaskedCrcCopy = std::uint32_t (*)(std::uint32_t seed, std::span<std::byte> data,
                                        const CrcMask& mask, std::span<const std::byte> tail);

/// By ISA-L alone; works on every CPU.
[[nodiscard]] std::uint32_t masked_crc_portable(std::uint32_t seed, std::span<const std::byte> data,
                                                const CrcMask& mask);

/// By carry-less multiplication (PCLMULQDQ), which masks in registers and costs a fifth on short
/// packets; the rest of long ones goes to ISA-L. Only if folding_available().
[[nodiscard]] std::uint32_t masked_crc_folding(std::uint32_t seed, std::span<const std::byte> data,
                                               const CrcMask& mask);
[[nodiscard]] bool folding_available();

/// The same with 512-bit registers (VPCLMULQDQ, AVX-512), which copies for nothing besides. Only if
/// wide_available().
[[nodiscard]] std::uint32_t masked_crc_wide(std::uint32_t seed, std::span<const std::byte> data,
                                            const CrcMask& mask);
[[nodiscard]] std::uint32_t masked_crc_copy_wide(std::uint32_t seed, std::span<std::byte> data,
                                                 const CrcMask& mask,
                                                 std::span<const std::byte> tail);
[[nodiscard]] bool wide_available();

}  // namespace roce::wire
