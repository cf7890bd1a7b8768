#include "wire/checksum.hpp"

#include <cstring>

namespace roce::wire {
namespace {

std::uint64_t sum_words(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  std::size_t i = 0;
  for (; i + 2 <= bytes.size(); i += 2)
    sum += std::to_integer<std::uint32_t>(bytes[i]) << 8 |
           std::to_integer<std::uint32_t>(bytes[i + 1]);
  if (i < bytes.size()) sum += std::to_integer<std::uint32_t>(bytes[i]) << 8;
  return sum;
}

}  // namespace

std::uint16_t internet_checksum(std::span<const std::byte> bytes, std::uint32_t initial) {
  std::uint64_t sum = sum_words(bytes) + initial;
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

std::uint32_t ipv6_pseudo_header_sum(const IpAddress& source, const IpAddress& destination,
                                     std::uint32_t length, std::uint8_t protocol) {
  const auto bytes_of = [](const IpAddress& ip) { return std::as_bytes(std::span{ip.bytes}); };
  return static_cast<std::uint32_t>(sum_words(bytes_of(source)) + sum_words(bytes_of(destination)) +
                                    (length >> 16) + (length & 0xffff) + protocol);
}

}  // namespace roce::wire
