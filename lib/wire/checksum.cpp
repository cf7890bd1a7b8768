#include "wire/checksum.hpp"

#include <bit>
#include <cstring>

namespace roce::wire {
namespace {

/// Sum of the 16-bit words as this host reads them: RFC 1071 allows any byte order as long as the
/// result is swapped back. An odd last byte counts as the first of a word.
std::uint64_t sum_native(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  std::size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4) {
    std::uint32_t two_words;
    std::memcpy(&two_words, bytes.data() + i, 4);
    sum += two_words;
  }
  std::uint32_t rest = 0;
  for (unsigned shift = 0; i < bytes.size(); ++i, shift += 8)
    rest |= std::to_integer<std::uint32_t>(bytes[i]) << shift;
  return sum + rest;
}

std::uint16_t fold(std::uint64_t sum) {
  sum = (sum & 0xffff'ffff) + (sum >> 32);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

/// The sum as big-endian words give it.
std::uint32_t sum_words(std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  return __builtin_bswap16(fold(sum_native(bytes)));
}

}  // namespace

std::uint16_t internet_checksum(std::span<const std::byte> bytes, std::uint32_t initial) {
  return static_cast<std::uint16_t>(~fold(std::uint64_t{initial} + sum_words(bytes)));
}

std::uint32_t ipv6_pseudo_header_sum(const IpAddress& source, const IpAddress& destination,
                                     std::uint32_t length, std::uint8_t protocol) {
  const auto bytes_of = [](const IpAddress& ip) { return std::as_bytes(std::span{ip.bytes}); };
  return sum_words(bytes_of(source)) + sum_words(bytes_of(destination)) + (length >> 16) +
         (length & 0xffff) + protocol;
}

}  // namespace roce::wire
