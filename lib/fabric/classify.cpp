#include "fabric/classify.hpp"

#include <cstring>

#include "wire/headers.hpp"

namespace roce::fabric {
namespace {

using namespace roce::wire;

/// Finalizer of MurmurHash3 (Appleby): each bit of the input moves about half of the output's.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccd;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53;
  return value ^ (value >> 33);
}

std::uint64_t load(const void* at, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

std::uint32_t fold(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

/// Ports behind an IP header, when it is UDP or TCP and they are there.
std::uint64_t ports(std::span<const std::byte> l4, std::uint8_t protocol) {
  if ((protocol != kIpUdp && protocol != kIpTcp) || l4.size() < 4) return protocol;
  return load(l4.data(), 4) << 8 | protocol;
}

void classify_ipv4(std::span<const std::byte> ip, FrameMeta& meta) {
  if (ip.size() < sizeof(Ipv4Header)) return;
  const auto& header = *view_as<Ipv4Header>(ip.data());
  const std::size_t bytes = (header.version_ihl & 0x0fu) * 4u;
  if (header.version_ihl >> 4 != 4 || bytes < sizeof(Ipv4Header) || bytes > ip.size()) return;
  meta.traffic_class = header.tos;
  meta.is_v6 = false;
  meta.l3_at = static_cast<std::uint8_t>(meta.pcp == FrameMeta::kUntagged ? 14 : 18);
  const std::uint64_t addresses = load(ip.data() + offsetof(Ipv4Header, source), 8);
  const std::uint64_t rest =
      header.is_fragment() ? header.protocol : ports(ip.subspan(bytes), header.protocol);
  meta.flow_hash = fold(mix(mix(addresses) ^ rest));
}

void classify_ipv6(std::span<const std::byte> ip, FrameMeta& meta) {
  if (ip.size() < sizeof(Ipv6Header)) return;
  const auto& header = *view_as<Ipv6Header>(ip.data());
  if (header.version_class_flow.get() >> 28 != 6) return;
  meta.traffic_class = header.traffic_class();
  meta.is_v6 = true;
  meta.l3_at = static_cast<std::uint8_t>(meta.pcp == FrameMeta::kUntagged ? 14 : 18);
  std::uint64_t hash = 0;
  const std::byte* addresses = ip.data() + offsetof(Ipv6Header, source);
  for (std::size_t at = 0; at < 32; at += 8) hash = mix(hash ^ load(addresses + at, 8));
  meta.flow_hash = fold(mix(hash ^ ports(ip.subspan(sizeof(Ipv6Header)), header.next_header)));
}

}  // namespace

MacAddress host_mac(std::uint32_t host, std::uint16_t interface) {
  return {{0x02, 0x52, static_cast<std::uint8_t>(host >> 8), static_cast<std::uint8_t>(host),
           static_cast<std::uint8_t>(interface >> 8), static_cast<std::uint8_t>(interface)}};
}

std::uint32_t host_of(const MacAddress& mac) {
  if (mac.bytes[0] != 0x02 || mac.bytes[1] != 0x52) return kNone;
  return static_cast<std::uint32_t>(mac.bytes[2] << 8 | mac.bytes[3]);
}

void classify(std::span<const std::byte> frame, FrameMeta& meta) {
  meta.length = static_cast<std::uint16_t>(frame.size());
  meta.destination = kNone;
  meta.flow_hash = 0;
  meta.traffic_class = meta.l3_at = 0;
  meta.pcp = FrameMeta::kUntagged;
  meta.is_v6 = meta.flow_control = false;
  if (frame.size() < sizeof(EthernetHeader)) return;
  const auto& ethernet = *view_as<EthernetHeader>(frame.data());
  meta.destination = host_of(ethernet.destination);
  meta.flow_hash = fold(mix(load(frame.data(), 8) ^ mix(load(ethernet.source.bytes.data(), 6))));
  std::uint16_t type = ethernet.ether_type.get();
  auto rest = frame.subspan(sizeof(EthernetHeader));
  if (type == kEtherVlan) {
    if (rest.size() < sizeof(VlanTag)) return;
    const auto& tag = *view_as<VlanTag>(rest.data());
    meta.pcp = tag.pcp();
    type = tag.ether_type.get();
    rest = rest.subspan(sizeof(VlanTag));
  }
  if (type == kEtherIpv4) classify_ipv4(rest, meta);
  if (type == kEtherIpv6) classify_ipv6(rest, meta);
  meta.flow_control = type == kEtherFlowControl;
}

}  // namespace roce::fabric
