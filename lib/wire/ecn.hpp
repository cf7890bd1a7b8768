// The ECN field of a frame that is built already (RFC 3168): neither the ICRC nor anything but the
// IPv4 header checksum covers it, which is mended.
#pragma once

#include <cstddef>

#include "wire/headers.hpp"

namespace roce::wire {

enum class Ecn : std::uint8_t { NOT_ECT = 0, ECT_1 = 1, ECT_0 = 2, CE = 3 };

/// frame: an IPv4 or IPv6 one, with or without a VLAN tag, from its Ethernet header on.
inline void set_ecn(std::byte* frame, Ecn ecn) {
  const auto bits = static_cast<std::uint32_t>(ecn);
  std::byte* l3 = frame + sizeof(EthernetHeader);
  std::uint16_t type = view_as<EthernetHeader>(frame)->ether_type.get();
  if (type == kEtherVlan) {
    type = view_as<VlanTag>(l3)->ether_type.get();
    l3 += sizeof(VlanTag);
  }
  if (type == kEtherIpv6) {
    auto& word = view_as<Ipv6Header>(l3)->version_class_flow;
    word.set((word.get() & ~(3u << 20)) | bits << 20);
    return;
  }
  auto& ip = *view_as<Ipv4Header>(l3);
  const std::uint32_t tos = (ip.tos & ~3u) | bits;
  // RFC 1624, equation 3, on the word of version, IHL and TOS: HC' = ~(~HC + ~m + m').
  std::uint32_t sum =
      (~std::uint32_t{ip.checksum.get()} & 0xffff) + (~std::uint32_t{ip.tos} & 0xff) + 0xff00 + tos;
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  ip.checksum.set(static_cast<std::uint16_t>(~sum & 0xffff));
  ip.tos = static_cast<std::uint8_t>(tos);
}

}  // namespace roce::wire
