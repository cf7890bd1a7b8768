#include "wire/icrc.hpp"

#include <cstring>

#include <isa-l/crc.h>

#include "wire/headers.hpp"

namespace roce::wire {
namespace {

/// zlib's crc32 of eight 0xff bytes, which stand for the absent LRH.
constexpr std::uint32_t kSeed = 0x2144df1c;

std::uint32_t crc(std::uint32_t seed, const void* data, std::size_t length) {
  // ISA-L's prototype takes a pointer to const; its answer for length 0 is the seed.
  return crc32_gzip_refl(seed, static_cast<const unsigned char*>(data), length);
}

}  // namespace

std::uint32_t icrc(std::span<const std::byte> ip_packet) {
  constexpr std::size_t kMost = sizeof(Ipv6Header) + sizeof(UdpHeader) + sizeof(Bth);
  std::byte masked[kMost];
  const bool v4 = (std::to_integer<unsigned>(ip_packet[0]) >> 4) == 4;
  const std::size_t l3 = v4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
  const std::size_t covered = l3 + sizeof(UdpHeader) + sizeof(Bth);
  std::memcpy(masked, ip_packet.data(), covered);
  if (v4) {
    auto* ip = view_as<Ipv4Header>(masked);
    ip->tos = 0xff;
    ip->ttl = 0xff;
    ip->checksum.set(0xffff);
  } else {
    auto* ip = view_as<Ipv6Header>(masked);
    ip->version_class_flow.set(ip->version_class_flow.get() | 0x0fff'ffff);
    ip->hop_limit = 0xff;
  }
  view_as<UdpHeader>(masked + l3)->checksum.set(0xffff);
  view_as<Bth>(masked + l3 + sizeof(UdpHeader))->congestion = 0xff;
  return crc(crc(kSeed, masked, covered), ip_packet.data() + covered, ip_packet.size() - covered);
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
