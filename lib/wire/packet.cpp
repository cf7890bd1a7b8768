#include "wire/packet.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "wire/checksum.hpp"
#include "wire/icrc.hpp"

namespace roce::wire {
namespace {

constexpr std::array<std::string_view, kVerdicts> kNames = {"roce",
                                                            "arp",
                                                            "icmp",
                                                            "icmpv6",
                                                            "flow_control",
                                                            "other",
                                                            "frame_too_short",
                                                            "ip_version",
                                                            "ip_options",
                                                            "ip_fragment",
                                                            "ip_length",
                                                            "ip_checksum",
                                                            "udp_length",
                                                            "bth_too_short",
                                                            "unknown_opcode",
                                                            "transport_version",
                                                            "packet_length",
                                                            "payload_not_allowed",
                                                            "icrc"};

/// From the UDP header on, without the ICRC. udp holds exactly what the IP length announces.
Verdict parse_udp(std::span<const std::byte> udp, Packet& packet) {
  if (udp.size() < sizeof(UdpHeader)) return Verdict::IP_LENGTH;
  const auto& header = *view_as<UdpHeader>(udp.data());
  if (header.destination_port.get() != kRoceUdpPort) return Verdict::OTHER;
  if (header.length.get() != udp.size()) return Verdict::UDP_LENGTH;
  const auto transport = udp.subspan(sizeof(UdpHeader));
  if (transport.size() < sizeof(Bth) + kIcrcBytes) return Verdict::BTH_TOO_SHORT;

  packet.bth = view_as<Bth>(transport.data());
  packet.opcode = static_cast<Opcode>(packet.bth->opcode);
  const OpcodeInfo& info = packet.info();
  if (!info.known()) return Verdict::UNKNOWN_OPCODE;
  if (packet.bth->transport_version() != 0) return Verdict::TRANSPORT_VERSION;
  const std::size_t fixed = sizeof(Bth) + info.extension_bytes + kIcrcBytes;
  const std::size_t pad = packet.bth->pad_count();
  if (transport.size() < fixed + pad || transport.size() % 4 != 0) return Verdict::PACKET_LENGTH;
  const std::size_t payload = transport.size() - fixed - pad;
  if (info.payload == PayloadRule::NONE && payload + pad != 0) return Verdict::PAYLOAD_NOT_ALLOWED;

  packet.extensions = transport.data() + sizeof(Bth);
  packet.payload = {packet.extensions + info.extension_bytes, payload};
  return Verdict::ROCE;
}

/// The last and dearest test.
Verdict check_icrc(IcrcCheck check, const Packet& packet) {
  if (check == IcrcCheck::SKIP) return Verdict::ROCE;
  const std::size_t covered = packet.l3_bytes - kIcrcBytes;
  return icrc({packet.l3, covered}) == load_icrc(packet.l3 + covered) ? Verdict::ROCE
                                                                      : Verdict::ICRC;
}

Verdict parse_ipv4(std::span<const std::byte> bytes, IcrcCheck check, Packet& packet) {
  if (bytes.size() < sizeof(Ipv4Header)) return Verdict::FRAME_TOO_SHORT;
  const auto& ip = *view_as<Ipv4Header>(bytes.data());
  if (ip.version_ihl >> 4 != 4) return Verdict::IP_VERSION;
  const std::size_t header = (ip.version_ihl & 0x0fu) * 4u;
  if (ip.protocol == kIpIcmp) return Verdict::ICMP;
  if (ip.protocol != kIpUdp) return Verdict::OTHER;
  // Only what could be RoCE is judged; other UDP with options or fragments is not our business, but
  // without the UDP header one cannot tell, so it counts here.
  if (header != sizeof(Ipv4Header)) return Verdict::IPV4_OPTIONS;
  if (ip.is_fragment()) return Verdict::IP_FRAGMENT;
  const std::size_t total = ip.total_length.get();
  if (total < sizeof(Ipv4Header) || total > bytes.size()) return Verdict::IP_LENGTH;
  packet.l3_bytes = static_cast<std::uint32_t>(total);
  packet.traffic_class = ip.tos;
  packet.is_v6 = false;
  const Verdict verdict =
      parse_udp(bytes.subspan(sizeof(Ipv4Header), total - sizeof(Ipv4Header)), packet);
  if (verdict != Verdict::ROCE) return verdict;
  if (internet_checksum(bytes.first(sizeof(Ipv4Header))) != 0) return Verdict::IPV4_CHECKSUM;
  return check_icrc(check, packet);
}

Verdict parse_ipv6(std::span<const std::byte> bytes, IcrcCheck check, Packet& packet) {
  if (bytes.size() < sizeof(Ipv6Header)) return Verdict::FRAME_TOO_SHORT;
  const auto& ip = *view_as<Ipv6Header>(bytes.data());
  if (ip.version_class_flow.get() >> 28 != 6) return Verdict::IP_VERSION;
  if (ip.next_header == kIpIcmpv6) return Verdict::ICMPV6;
  if (ip.next_header != kIpUdp) return Verdict::OTHER;
  const std::size_t length = ip.payload_length.get();
  if (length > bytes.size() - sizeof(Ipv6Header)) return Verdict::IP_LENGTH;
  packet.l3_bytes = static_cast<std::uint32_t>(sizeof(Ipv6Header) + length);
  packet.traffic_class = ip.traffic_class();
  packet.is_v6 = true;
  const Verdict verdict = parse_udp(bytes.subspan(sizeof(Ipv6Header), length), packet);
  return verdict == Verdict::ROCE ? check_icrc(check, packet) : verdict;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  return kNames[static_cast<std::size_t>(verdict)];
}

IpAddress Packet::source_ip() const {
  IpAddress ip = IpAddress::v4(0, 0, 0, 0);
  if (is_v6)
    std::memcpy(ip.bytes.data(), view_as<Ipv6Header>(l3)->source, 16);
  else
    std::memcpy(&ip.bytes[12], view_as<Ipv4Header>(l3)->source, 4);
  return ip;
}

IpAddress Packet::destination_ip() const {
  IpAddress ip = IpAddress::v4(0, 0, 0, 0);
  if (is_v6)
    std::memcpy(ip.bytes.data(), view_as<Ipv6Header>(l3)->destination, 16);
  else
    std::memcpy(&ip.bytes[12], view_as<Ipv4Header>(l3)->destination, 4);
  return ip;
}

Verdict parse_ip(std::span<const std::byte> ip, IcrcCheck icrc, Packet& packet) {
  if (ip.empty()) return Verdict::FRAME_TOO_SHORT;
  packet.l3 = ip.data();
  switch (std::to_integer<unsigned>(ip[0]) >> 4) {
    case 4:
      return parse_ipv4(ip, icrc, packet);
    case 6:
      return parse_ipv6(ip, icrc, packet);
    default:
      return Verdict::IP_VERSION;
  }
}

Verdict parse(std::span<const std::byte> frame, IcrcCheck icrc, Packet& packet) {
  if (frame.size() < sizeof(EthernetHeader)) return Verdict::FRAME_TOO_SHORT;
  packet.l2 = frame.data();
  packet.vlan_tci = 0;
  std::uint16_t ether_type = view_as<EthernetHeader>(frame.data())->ether_type.get();
  auto rest = frame.subspan(sizeof(EthernetHeader));
  if (ether_type == kEtherVlan) {
    if (rest.size() < sizeof(VlanTag)) return Verdict::FRAME_TOO_SHORT;
    const auto& tag = *view_as<VlanTag>(rest.data());
    packet.vlan_tci = tag.tci.get();
    ether_type = tag.ether_type.get();
    rest = rest.subspan(sizeof(VlanTag));
  }
  packet.l3 = rest.data();
  switch (ether_type) {
    case kEtherIpv4:
      return parse_ipv4(rest, icrc, packet);
    case kEtherIpv6:
      return parse_ipv6(rest, icrc, packet);
    case kEtherArp:
      return Verdict::ARP;
    case kEtherFlowControl:
      return Verdict::FLOW_CONTROL;
    default:
      return Verdict::OTHER;
  }
}

}  // namespace roce::wire
