// The data validation pattern of docs/data-validation.md, and the verdict on what was received.
//
// Stateless apart from the Verdict. Called by the data planes; allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace roce::traffic::perftest {

/// The byte at an offset of the buffer of the lane (the QP's place in the exchange, from 0).
[[nodiscard]] constexpr std::byte pattern_byte(std::uint32_t seed, std::uint32_t lane,
                                               std::uint64_t offset) {
  return static_cast<std::byte>((offset * 131 + (offset >> 8) * 7 + (offset >> 16) * 13 +
                                 std::uint64_t{lane} * 17 + seed + 0x5a) &
                                0xff);
}

/// Writes the pattern that begins at first_offset.
void fill_pattern(std::span<std::byte> out, std::uint32_t seed, std::uint32_t lane,
                  std::uint64_t first_offset = 0);

/// The index in data of the first byte that is not the pattern; none when all are.
[[nodiscard]] std::optional<std::size_t> find_mismatch(std::span<const std::byte> data,
                                                       std::uint32_t seed, std::uint32_t lane,
                                                       std::uint64_t first_offset = 0);
/// The index of the first byte that is not zero.
[[nodiscard]] std::optional<std::size_t> find_nonzero(std::span<const std::byte> data);

/// What data validation found on one side.
struct Verdict {
  struct Mismatch {
    std::uint32_t lane = 0;
    std::uint64_t message = 0;  ///< on that QP, from 0
    std::uint64_t offset = 0;   ///< in the message (write_bw: in the QP's buffer)
    std::uint64_t expected = 0;
    std::uint64_t found = 0;
    std::string what;  ///< "byte", "message length", "original value", "final value"
  };
  std::uint64_t messages = 0;  ///< checked
  std::uint64_t bytes = 0;     ///< checked
  std::uint64_t lost = 0;      ///< UC, UD: messages, or bytes of write_bw, that never came
  std::uint64_t mismatches = 0;
  std::optional<Mismatch> first;

  [[nodiscard]] bool passed() const { return mismatches == 0; }
  /// Counts a mismatch and keeps the first.
  void add(Mismatch mismatch);
  void merge(const Verdict& other);
  /// One line: "1000 messages, 65536000 bytes checked, no mismatch" or the first mismatch.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace roce::traffic::perftest
