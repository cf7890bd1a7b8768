// ICMP and ICMPv6 echo; declared in neighbour.hpp.
#include <cstring>

#include "wire/checksum.hpp"
#include "wire/link_layer.hpp"
#include "wire/neighbour.hpp"

namespace roce::wire {
namespace {

/// Echo request and reply of both families (RFC 792; RFC 4443, 4.1).
struct EchoHeader {
  std::uint8_t type, code;
  Be16 checksum;
  Be16 identifier, sequence;

  static constexpr std::uint8_t kRequest4 = 8, kReply4 = 0, kRequest6 = 128, kReply6 = 129;
};
static_assert(sizeof(EchoHeader) == 8);

constexpr std::uint8_t kReplyHopLimit = 64;

bool is_request(std::span<const std::byte> message, std::uint8_t type) {
  if (message.size() < sizeof(EchoHeader)) return false;
  const auto& header = *view_as<EchoHeader>(message.data());
  return header.type == type && header.code == 0;
}

std::optional<EchoRequest> parse_v4(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Ipv4Header)) return std::nullopt;
  const auto& ip = *view_as<Ipv4Header>(bytes.data());
  const std::size_t total = ip.total_length.get();
  if (ip.version_ihl != 0x45 || ip.protocol != kIpIcmp || ip.is_fragment() ||
      total < sizeof(Ipv4Header) || total > bytes.size() ||
      internet_checksum(bytes.first(sizeof(Ipv4Header))) != 0)
    return std::nullopt;
  EchoRequest request;
  request.message = bytes.subspan(sizeof(Ipv4Header), total - sizeof(Ipv4Header));
  if (!is_request(request.message, EchoHeader::kRequest4) ||
      internet_checksum(request.message) != 0)
    return std::nullopt;
  request.source = request.destination = IpAddress::v4(0, 0, 0, 0);
  std::memcpy(&request.source.bytes[12], ip.source, 4);
  std::memcpy(&request.destination.bytes[12], ip.destination, 4);
  request.traffic_class = ip.tos;
  return request;
}

std::optional<EchoRequest> parse_v6(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Ipv6Header)) return std::nullopt;
  const auto& ip = *view_as<Ipv6Header>(bytes.data());
  const std::size_t length = ip.payload_length.get();
  if (ip.version_class_flow.get() >> 28 != 6 || ip.next_header != kIpIcmpv6 ||
      length > bytes.size() - sizeof(Ipv6Header))
    return std::nullopt;
  EchoRequest request;
  request.message = bytes.subspan(sizeof(Ipv6Header), length);
  std::memcpy(request.source.bytes.data(), ip.source, 16);
  std::memcpy(request.destination.bytes.data(), ip.destination, 16);
  // A mapped address on the wire would be taken for IPv4 later on (RFC 4291, 2.5.5.2).
  if (request.source.is_v4() || request.destination.is_v4()) return std::nullopt;
  request.traffic_class = ip.traffic_class();
  const auto sum = ipv6_pseudo_header_sum(request.source, request.destination,
                                          static_cast<std::uint32_t>(length), kIpIcmpv6);
  if (!is_request(request.message, EchoHeader::kRequest6) ||
      internet_checksum(request.message, sum) != 0)
    return std::nullopt;
  return request;
}

void write_v4(std::byte* at, const EchoRequest& request) {
  auto& ip = *view_as<Ipv4Header>(at);
  ip = {};
  ip.version_ihl = 0x45;
  ip.tos = request.traffic_class;
  ip.total_length.set(static_cast<std::uint16_t>(sizeof(Ipv4Header) + request.message.size()));
  ip.flags_fragment.set(Ipv4Header::kDontFragment);
  ip.ttl = kReplyHopLimit;
  ip.protocol = kIpIcmp;
  std::memcpy(ip.source, &request.destination.bytes[12], 4);
  std::memcpy(ip.destination, &request.source.bytes[12], 4);
  ip.checksum.set(internet_checksum({at, sizeof(Ipv4Header)}));
}

void write_v6(std::byte* at, const EchoRequest& request) {
  auto& ip = *view_as<Ipv6Header>(at);
  ip.version_class_flow.set(6u << 28 | std::uint32_t{request.traffic_class} << 20);
  ip.payload_length.set(static_cast<std::uint16_t>(request.message.size()));
  ip.next_header = kIpIcmpv6;
  ip.hop_limit = kReplyHopLimit;
  std::memcpy(ip.source, request.destination.bytes.data(), 16);
  std::memcpy(ip.destination, request.source.bytes.data(), 16);
}

}  // namespace

std::optional<EchoRequest> parse_echo_request(std::span<const std::byte> frame) {
  const auto link = read_link_layer(frame);
  if (!link) return std::nullopt;
  std::optional<EchoRequest> request;
  if (link->ether_type == kEtherIpv4)
    request = parse_v4(link->payload);
  else if (link->ether_type == kEtherIpv6)
    request = parse_v6(link->payload);
  if (!request) return std::nullopt;
  request->frame_source = link->ethernet->source;
  request->vlan_tci = link->vlan_tci;
  return request;
}

std::size_t build_echo_reply(std::span<std::byte> slot, const MacAddress& own_mac,
                             const EchoRequest& request) {
  const bool v4 = request.source.is_v4();
  const std::size_t headers =
      link_layer_bytes(request.vlan_tci) + (v4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header));
  if (slot.size() < kMinFrameBytes || slot.size() < headers + request.message.size()) return 0;
  std::byte* at = write_link_layer(slot, request.frame_source, own_mac, request.vlan_tci,
                                   v4 ? kEtherIpv4 : kEtherIpv6);
  if (v4)
    write_v4(at, request);
  else
    write_v6(at, request);
  std::byte* message = slot.data() + headers;
  std::memcpy(message, request.message.data(), request.message.size());
  auto& header = *view_as<EchoHeader>(message);
  header.type = v4 ? EchoHeader::kReply4 : EchoHeader::kReply6;
  header.checksum.set(0);
  const auto length = static_cast<std::uint32_t>(request.message.size());
  const std::uint32_t sum =
      v4 ? 0 : ipv6_pseudo_header_sum(request.destination, request.source, length, kIpIcmpv6);
  header.checksum.set(internet_checksum({message, request.message.size()}, sum));
  return pad_frame(slot, headers + request.message.size());
}

}  // namespace roce::wire
