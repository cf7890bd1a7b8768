// What a host owes its neighbours: ARP (RFC 826), IPv6 neighbour discovery (RFC 4861) and the
// answer to ICMP echo (RFC 792, RFC 4443). Pure functions from frame to value and value to frame;
// who is asked, answered or remembered is the engine's affair. One vocabulary serves both families.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/address.hpp"

namespace roce::wire {

/// SOLICITATION: ARP request or neighbour solicitation. ADVERTISEMENT: ARP reply or neighbour
/// advertisement.
enum class NeighbourKind : std::uint8_t { SOLICITATION, ADVERTISEMENT };

struct NeighbourMessage {
  NeighbourKind kind = NeighbourKind::SOLICITATION;
  /// The address that the sender says is its own: ARP's sender address, the source of a
  /// solicitation, the target of an advertisement. All zeros (0.0.0.0 or ::) when it is only
  /// probing whether target is taken; then nothing is to be learnt.
  IpAddress sender;
  /// Where sender can be reached; empty when a message of IPv6 carries no link-layer option.
  std::optional<MacAddress> sender_mac;
  IpAddress target;  ///< SOLICITATION: whose MAC is wanted; ADVERTISEMENT: to whom it is told
  MacAddress frame_source;  ///< from the Ethernet header
  std::optional<std::uint16_t> vlan_tci;

  /// Whether sender and sender_mac may go into a table.
  [[nodiscard]] bool teaches() const;
};

/// Reads an ARP, neighbour solicitation or neighbour advertisement frame. Empty when it is anything
/// else or breaks a rule of RFC 826 or RFC 4861, 7.1 (lengths, checksum, hop limit 255, options).
[[nodiscard]] std::optional<NeighbourMessage> parse_neighbour(std::span<const std::byte> frame);

/// The sender's side of the frames below.
struct NeighbourSelf {
  MacAddress mac;
  IpAddress address;
  std::optional<std::uint16_t> vlan_tci;
};

/// Bytes that a slot must have for the two functions below.
inline constexpr std::size_t kNeighbourFrameBytes = 14 + 4 + 40 + 32;

/// Asks who has target (same family as self.address): to all, or to one MAC as a reachability
/// probe. Writes the frame and returns its length without FCS, at least the Ethernet minimum.
[[nodiscard]] std::size_t build_solicitation(std::span<std::byte> slot, const NeighbourSelf& self,
                                             const IpAddress& target,
                                             std::optional<MacAddress> probe = std::nullopt);

/// Answers a solicitation for self.address (to all when the asker has no address yet). Length as
/// above. solicitation.kind must be SOLICITATION and of the same family.
[[nodiscard]] std::size_t build_advertisement(std::span<std::byte> slot, const NeighbourSelf& self,
                                              const NeighbourMessage& solicitation);

/// An ICMP or ICMPv6 echo request whose checksums are right. Points into the frame.
struct EchoRequest {
  IpAddress source;
  IpAddress destination;
  MacAddress frame_source;
  std::optional<std::uint16_t> vlan_tci;
  std::uint8_t traffic_class = 0;
  std::span<const std::byte> message;  ///< ICMP header (8 bytes) and data
};

/// Reads an echo request. Empty when the frame is anything else, has IP options, is a fragment, or
/// has a wrong length or checksum.
[[nodiscard]] std::optional<EchoRequest> parse_echo_request(std::span<const std::byte> frame);

/// Answers request from its destination address; own_mac becomes the Ethernet source. Returns the
/// frame length, or 0 when slot is too small.
[[nodiscard]] std::size_t build_echo_reply(std::span<std::byte> slot, const MacAddress& own_mac,
                                           const EchoRequest& request);

/// ff02::1:ffXX:XXXX of an IPv6 address (RFC 4291, 2.7.1), to which solicitations go.
[[nodiscard]] IpAddress solicited_node(const IpAddress& address);
/// Ethernet address of a multicast address: 01:00:5e with 23 bits (RFC 1112), 33:33 with 32 (RFC
/// 2464).
[[nodiscard]] MacAddress multicast_mac(const IpAddress& group);

}  // namespace roce::wire
