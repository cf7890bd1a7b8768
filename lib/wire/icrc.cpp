#include "wire/icrc.hpp"

#include <cstddef>
#include <cstring>

#include "wire/crc32.hpp"
#include "wire/headers.hpp"

namespace roce::wire {
namespace {

/// zlib's crc32 of eight 0xff bytes, which stand for the absent LRH.
constexpr std::uint32_t kSeed = 0x2144df1c;

constexpr void set_ones(CrcMask& mask, std::size_t from, std::size_t count) {
  for (std::size_t i = from; i < from + count; ++i) mask.bytes[i] = 0xff;
}

/// The variant fields of UDP and BTH behind an IP header of l3 bytes.
constexpr void set_transport(CrcMask& mask, std::size_t l3) {
  set_ones(mask, l3 + offsetof(UdpHeader, checksum), 2);
  set_ones(mask, l3 + sizeof(UdpHeader) + offsetof(Bth, congestion), 1);
  mask.covered = l3 + sizeof(UdpHeader) + sizeof(Bth);
}

constexpr CrcMask kMaskIpv4 = [] {
  CrcMask mask;
  set_ones(mask, offsetof(Ipv4Header, tos), 1);
  set_ones(mask, offsetof(Ipv4Header, ttl), 1);
  set_ones(mask, offsetof(Ipv4Header, checksum), 2);
  set_transport(mask, sizeof(Ipv4Header));
  return mask;
}();

constexpr CrcMask kMaskIpv6 = [] {
  CrcMask mask;
  mask.bytes[0] = 0x0f;  // traffic class and flow label: all of the first word but the version
  set_ones(mask, 1, 3);
  set_ones(mask, offsetof(Ipv6Header, hop_limit), 1);
  set_transport(mask, sizeof(Ipv6Header));
  return mask;
}();

std::uint32_t copy_first(std::uint32_t seed, std::span<std::byte> data, const CrcMask& mask,
                         std::span<const std::byte> tail) {
  if (!tail.empty()) std::memcpy(data.data() + data.size() - tail.size(), tail.data(), tail.size());
  return (folding_available() ? masked_crc_folding : masked_crc_portable)(seed, data, mask);
}

const MaskedCrc kCrc = wide_available()      ? masked_crc_wide
                       : folding_available() ? masked_crc_folding
                                             : masked_crc_portable;
const MaskedCrcCopy kCrcCopy = wide_available() ? masked_crc_copy_wide : copy_first;

const CrcMask& mask_of(std::byte first) {
  return std::to_integer<unsigned>(first) >> 4 == 4 ? kMaskIpv4 : kMaskIpv6;
}

}  // namespace

std::uint32_t icrc(std::span<const std::byte> ip_packet) {
  return kCrc(kSeed, ip_packet, mask_of(ip_packet[0]));
}

std::uint32_t icrc_copying(std::span<std::byte> ip_packet, std::span<const std::byte> payload) {
  return kCrcCopy(kSeed, ip_packet, mask_of(ip_packet[0]), payload);
}

std::uint32_t load_icrc(const std::byte* at) {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void store_icrc(std::byte* at, std::uint32_t icrc) {
  std::memcpy(at, &icrc, sizeof icrc);
}

}  // namespace roce::wire
