#include "traffic/perftest/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace roce::traffic::perftest {
namespace {

/// Within 256 bytes from a multiple of 256 only the lowest term of the pattern varies.
constexpr std::size_t kBlock = 256;
constexpr std::array<std::uint8_t, kBlock> kLow = [] {
  std::array<std::uint8_t, kBlock> table{};
  for (std::size_t i = 0; i < kBlock; ++i) table[i] = static_cast<std::uint8_t>(i * 131);
  return table;
}();

std::uint8_t base_of(std::uint32_t seed, std::uint32_t lane, std::uint64_t offset) {
  return std::to_integer<std::uint8_t>(pattern_byte(seed, lane, offset / kBlock * kBlock));
}

/// Calls f(begin, end) for the parts of [0, size) that lie in one block each, until it is false.
template <class F>
void for_each_block(std::size_t size, std::uint64_t first_offset, F f) {
  for (std::size_t begin = 0; begin < size;) {
    const std::size_t room = kBlock - ((first_offset + begin) & (kBlock - 1));
    const std::size_t end = std::min(size, begin + room);
    if (!f(begin, end)) return;
    begin = end;
  }
}

}  // namespace

void fill_pattern(std::span<std::byte> out, std::uint32_t seed, std::uint32_t lane,
                  std::uint64_t first_offset) {
  for_each_block(out.size(), first_offset, [&](std::size_t begin, std::size_t end) {
    const std::uint8_t base = base_of(seed, lane, first_offset + begin);
    const std::uint8_t* table = kLow.data() + ((first_offset + begin) & 0xff);
    for (std::size_t i = begin; i < end; ++i)
      out[i] = static_cast<std::byte>(table[i - begin] + base);
    return true;
  });
}

std::optional<std::size_t> find_mismatch(std::span<const std::byte> data, std::uint32_t seed,
                                         std::uint32_t lane, std::uint64_t first_offset) {
  std::optional<std::size_t> found;
  for_each_block(data.size(), first_offset, [&](std::size_t begin, std::size_t end) {
    const std::uint8_t base = base_of(seed, lane, first_offset + begin);
    const std::uint8_t* table = kLow.data() + ((first_offset + begin) & 0xff);
    std::uint8_t difference = 0;
    for (std::size_t i = begin; i < end; ++i)
      difference = static_cast<std::uint8_t>(difference |
                                             (std::to_integer<std::uint8_t>(data[i]) ^
                                              static_cast<std::uint8_t>(table[i - begin] + base)));
    if (difference == 0) return true;
    for (std::size_t i = begin; !found; ++i)
      if (data[i] != pattern_byte(seed, lane, first_offset + i)) found = i;
    return false;
  });
  return found;
}

std::optional<std::size_t> find_nonzero(std::span<const std::byte> data) {
  for (std::size_t i = 0; i < data.size(); ++i)
    if (data[i] != std::byte{0}) return i;
  return std::nullopt;
}

void Verdict::add(Mismatch mismatch) {
  if (mismatches++ == 0) first = std::move(mismatch);
}

void Verdict::merge(const Verdict& other) {
  messages += other.messages;
  bytes += other.bytes;
  lost += other.lost;
  if (mismatches == 0 && other.first) first = other.first;
  mismatches += other.mismatches;
}

std::string Verdict::to_string() const {
  if (passed()) {
    const std::string missing = lost == 0 ? "" : fmt::format(", {} lost on the way", lost);
    return messages == 0 && bytes == 0 ? "nothing to check on this side" + missing
                                       : fmt::format("{} messages, {} bytes checked, no mismatch{}",
                                                     messages, bytes, missing);
  }
  return fmt::format(
      "{} mismatches in {} messages; the first: QP {}, message {}, offset {}: {} is {:#x}, "
      "expected {:#x}",
      mismatches, messages, first->lane, first->message, first->offset, first->what, first->found,
      first->expected);
}

}  // namespace roce::traffic::perftest
