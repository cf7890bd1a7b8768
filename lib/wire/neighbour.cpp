#include "wire/neighbour.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "wire/checksum.hpp"
#include "wire/link_layer.hpp"

namespace roce::wire {
namespace {

/// ARP over Ethernet for IPv4 (RFC 826).
struct ArpPacket {
  Be16 hardware_type, protocol_type;
  std::uint8_t hardware_length, protocol_length;
  Be16 operation;
  MacAddress sender_mac;
  std::uint8_t sender_ip[4];
  MacAddress target_mac;
  std::uint8_t target_ip[4];

  static constexpr std::uint16_t kEthernet = 1, kRequest = 1, kReply = 2;
};
static_assert(sizeof(ArpPacket) == 28);

/// Neighbour solicitation or advertisement without options (RFC 4861, 4.3 and 4.4).
struct NeighbourDiscovery {
  std::uint8_t type, code;
  Be16 checksum;
  std::uint8_t flags;  ///< advertisement: router 0x80, solicited 0x40, override 0x20
  std::uint8_t reserved[3];
  std::uint8_t target[16];

  static constexpr std::uint8_t kSolicitation = 135, kAdvertisement = 136;
  static constexpr std::uint8_t kSolicited = 0x40, kOverride = 0x20;
};
static_assert(sizeof(NeighbourDiscovery) == 24);

/// Source or target link-layer address option (RFC 4861, 4.6.1); length counts 8 bytes.
struct LinkLayerOption {
  std::uint8_t type, length;
  MacAddress mac;

  static constexpr std::uint8_t kSource = 1, kTarget = 2;
};
static_assert(sizeof(LinkLayerOption) == 8);

constexpr std::uint8_t kNdHopLimit = 255;
constexpr IpAddress kAllNodes{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
constexpr IpAddress kNone4 = IpAddress::v4(0, 0, 0, 0);
constexpr IpAddress kNone6{};

IpAddress v6_address(const std::uint8_t (&bytes)[16]) {
  IpAddress ip;
  std::copy(std::begin(bytes), std::end(bytes), ip.bytes.begin());
  return ip;
}

bool is_v6_multicast(const IpAddress& ip) {
  return ip.bytes[0] == 0xff;
}

/// Multicast, reserved or broadcast: nobody's own address (RFC 1122, 3.2.1.3).
bool is_v4_group(const IpAddress& ip) {
  return ip.is_v4() && ip.bytes[12] >= 224;
}

std::optional<NeighbourMessage> parse_arp(const LinkLayer& link) {
  if (link.payload.size() < sizeof(ArpPacket)) return std::nullopt;
  const auto& arp = *view_as<ArpPacket>(link.payload.data());
  const std::uint16_t operation = arp.operation.get();
  if (arp.hardware_type.get() != ArpPacket::kEthernet || arp.protocol_type.get() != kEtherIpv4 ||
      arp.hardware_length != sizeof(MacAddress) || arp.protocol_length != 4 ||
      (operation != ArpPacket::kRequest && operation != ArpPacket::kReply))
    return std::nullopt;
  const auto v4 = [](const std::uint8_t(&ip)[4]) {
    return IpAddress::v4(ip[0], ip[1], ip[2], ip[3]);
  };
  NeighbourMessage message;
  message.kind =
      operation == ArpPacket::kRequest ? NeighbourKind::SOLICITATION : NeighbourKind::ADVERTISEMENT;
  message.sender = v4(arp.sender_ip);
  message.sender_mac = arp.sender_mac;
  message.target = v4(arp.target_ip);
  return message;
}

/// The link-layer address option of the given type. Sets bad when an option is malformed.
std::optional<MacAddress> link_layer_option(std::span<const std::byte> options, std::uint8_t type,
                                            bool& bad) {
  std::optional<MacAddress> mac;
  while (!options.empty()) {
    const std::size_t length =
        options.size() < 2 ? 0 : std::to_integer<std::size_t>(options[1]) * 8;
    if (length == 0 || length > options.size()) {
      bad = true;
      return std::nullopt;
    }
    const auto& option = *view_as<LinkLayerOption>(options.data());
    if (option.type == type && length == sizeof(LinkLayerOption)) mac = option.mac;
    options = options.subspan(length);
  }
  return mac;
}

/// nd: exactly the ICMPv6 message. The rules are those of RFC 4861, 7.1.1 and 7.1.2.
std::optional<NeighbourMessage> parse_discovery(const Ipv6Header& ip,
                                                std::span<const std::byte> nd) {
  if (nd.size() < sizeof(NeighbourDiscovery) || ip.hop_limit != kNdHopLimit) return std::nullopt;
  const IpAddress source = v6_address(ip.source);
  const IpAddress destination = v6_address(ip.destination);
  const auto length = static_cast<std::uint32_t>(nd.size());
  if (internet_checksum(nd, ipv6_pseudo_header_sum(source, destination, length, kIpIcmpv6)) != 0)
    return std::nullopt;
  const auto& header = *view_as<NeighbourDiscovery>(nd.data());
  const bool asks = header.type == NeighbourDiscovery::kSolicitation;
  if (header.code != 0 || (!asks && header.type != NeighbourDiscovery::kAdvertisement))
    return std::nullopt;
  const IpAddress target = v6_address(header.target);
  // Nobody speaks as a group (RFC 4291, 2.7); a mapped address on the wire would be taken for IPv4
  // later on (2.5.5.2).
  if (is_v6_multicast(target) || is_v6_multicast(source) || target.is_v4() || source.is_v4() ||
      destination.is_v4())
    return std::nullopt;
  bool bad = false;
  const auto mac =
      link_layer_option(nd.subspan(sizeof(NeighbourDiscovery)),
                        asks ? LinkLayerOption::kSource : LinkLayerOption::kTarget, bad);
  if (bad) return std::nullopt;
  if (asks && source == kNone6 && (mac || destination != solicited_node(target)))
    return std::nullopt;
  if (!asks && is_v6_multicast(destination) && (header.flags & NeighbourDiscovery::kSolicited) != 0)
    return std::nullopt;
  NeighbourMessage message;
  message.kind = asks ? NeighbourKind::SOLICITATION : NeighbourKind::ADVERTISEMENT;
  message.sender = asks ? source : target;
  message.sender_mac = mac;
  message.target = asks ? target : destination;
  return message;
}

std::optional<NeighbourMessage> parse_ipv6(const LinkLayer& link) {
  if (link.payload.size() < sizeof(Ipv6Header)) return std::nullopt;
  const auto& ip = *view_as<Ipv6Header>(link.payload.data());
  const std::size_t length = ip.payload_length.get();
  if (ip.version_class_flow.get() >> 28 != 6 || ip.next_header != kIpIcmpv6 ||
      length > link.payload.size() - sizeof(Ipv6Header))
    return std::nullopt;
  return parse_discovery(ip, link.payload.subspan(sizeof(Ipv6Header), length));
}

std::size_t build_arp(std::span<std::byte> slot, const NeighbourSelf& self, std::uint16_t operation,
                      const MacAddress& frame_destination, const MacAddress& target_mac,
                      const IpAddress& target) {
  std::byte* at = write_link_layer(slot, frame_destination, self.mac, self.vlan_tci, kEtherArp);
  auto& arp = *view_as<ArpPacket>(at);
  arp.hardware_type.set(ArpPacket::kEthernet);
  arp.protocol_type.set(kEtherIpv4);
  arp.hardware_length = sizeof(MacAddress);
  arp.protocol_length = 4;
  arp.operation.set(operation);
  arp.sender_mac = self.mac;
  std::memcpy(arp.sender_ip, &self.address.bytes[12], 4);
  arp.target_mac = target_mac;
  std::memcpy(arp.target_ip, &target.bytes[12], 4);
  return pad_frame(slot, link_layer_bytes(self.vlan_tci) + sizeof(ArpPacket));
}

/// What differs between solicitation and advertisement.
struct DiscoveryFields {
  std::uint8_t type;
  std::uint8_t flags;
  std::uint8_t option;
  IpAddress destination;
  MacAddress frame_destination;
  IpAddress target;
};

std::size_t build_discovery(std::span<std::byte> slot, const NeighbourSelf& self,
                            const DiscoveryFields& fields) {
  constexpr std::size_t kLength = sizeof(NeighbourDiscovery) + sizeof(LinkLayerOption);
  std::byte* at =
      write_link_layer(slot, fields.frame_destination, self.mac, self.vlan_tci, kEtherIpv6);
  auto& ip = *view_as<Ipv6Header>(at);
  ip.version_class_flow.set(6u << 28);
  ip.payload_length.set(kLength);
  ip.next_header = kIpIcmpv6;
  ip.hop_limit = kNdHopLimit;
  std::copy(self.address.bytes.begin(), self.address.bytes.end(), ip.source);
  std::copy(fields.destination.bytes.begin(), fields.destination.bytes.end(), ip.destination);
  std::byte* nd = at + sizeof(Ipv6Header);
  auto& header = *view_as<NeighbourDiscovery>(nd);
  header = {};
  header.type = fields.type;
  header.flags = fields.flags;
  std::copy(fields.target.bytes.begin(), fields.target.bytes.end(), header.target);
  auto& option = *view_as<LinkLayerOption>(nd + sizeof(NeighbourDiscovery));
  option = {fields.option, 1, self.mac};
  header.checksum.set(internet_checksum(
      {nd, kLength}, ipv6_pseudo_header_sum(self.address, fields.destination, kLength, kIpIcmpv6)));
  return link_layer_bytes(self.vlan_tci) + sizeof(Ipv6Header) + kLength;
}

}  // namespace

bool NeighbourMessage::teaches() const {
  return sender_mac && !sender_mac->is_multicast() && *sender_mac != MacAddress{} &&
         sender != kNone4 && sender != kNone6 && !is_v6_multicast(sender) && !is_v4_group(sender);
}

std::optional<NeighbourMessage> parse_neighbour(std::span<const std::byte> frame) {
  const auto link = read_link_layer(frame);
  if (!link) return std::nullopt;
  std::optional<NeighbourMessage> message;
  if (link->ether_type == kEtherArp)
    message = parse_arp(*link);
  else if (link->ether_type == kEtherIpv6)
    message = parse_ipv6(*link);
  if (!message) return std::nullopt;
  message->frame_source = link->ethernet->source;
  message->vlan_tci = link->vlan_tci;
  return message;
}

std::size_t build_solicitation(std::span<std::byte> slot, const NeighbourSelf& self,
                               const IpAddress& target, std::optional<MacAddress> probe) {
  ROCE_CHECK(slot.size() >= kNeighbourFrameBytes && self.address.is_v4() == target.is_v4());
  if (target.is_v4())
    return build_arp(slot, self, ArpPacket::kRequest, probe.value_or(MacAddress::broadcast()),
                     MacAddress{}, target);
  const IpAddress group = solicited_node(target);
  return build_discovery(slot, self,
                         {NeighbourDiscovery::kSolicitation, 0, LinkLayerOption::kSource,
                          probe ? target : group, probe.value_or(multicast_mac(group)), target});
}

std::size_t build_advertisement(std::span<std::byte> slot, const NeighbourSelf& self,
                                const NeighbourMessage& solicitation) {
  ROCE_CHECK(slot.size() >= kNeighbourFrameBytes &&
             solicitation.kind == NeighbourKind::SOLICITATION &&
             self.address.is_v4() == solicitation.target.is_v4());
  const MacAddress asker = solicitation.sender_mac.value_or(solicitation.frame_source);
  if (self.address.is_v4())
    return build_arp(slot, self, ArpPacket::kReply, asker, asker, solicitation.sender);
  const bool to_all = solicitation.sender == kNone6;
  const auto flags = static_cast<std::uint8_t>(NeighbourDiscovery::kOverride |
                                               (to_all ? 0 : NeighbourDiscovery::kSolicited));
  return build_discovery(slot, self,
                         {NeighbourDiscovery::kAdvertisement, flags, LinkLayerOption::kTarget,
                          to_all ? kAllNodes : solicitation.sender,
                          to_all ? multicast_mac(kAllNodes) : asker, self.address});
}

IpAddress solicited_node(const IpAddress& address) {
  IpAddress group{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0}};
  std::copy(address.bytes.begin() + 13, address.bytes.end(), group.bytes.begin() + 13);
  return group;
}

MacAddress multicast_mac(const IpAddress& group) {
  const auto& b = group.bytes;
  if (group.is_v4()) return {{1, 0, 0x5e, static_cast<std::uint8_t>(b[13] & 0x7f), b[14], b[15]}};
  return {{0x33, 0x33, b[12], b[13], b[14], b[15]}};
}

}  // namespace roce::wire
