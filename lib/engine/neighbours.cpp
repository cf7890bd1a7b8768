#include "engine/neighbours.hpp"

#include <algorithm>
#include <cstring>

namespace roce::engine {
namespace {

const MacAddress& destination_of(std::span<const std::byte> frame) {
  return wire::view_as<wire::EthernetHeader>(frame.data())->destination;
}

bool is_multicast(const IpAddress& ip) {
  return ip.is_v4() ? (ip.bytes[12] & 0xf0) == 0xe0 : ip.bytes[0] == 0xff;
}

bool is_link_local(const IpAddress& ip) {
  return !ip.is_v4() && ip.bytes[0] == 0xfe && (ip.bytes[1] & 0xc0) == 0x80;
}

/// Whom to ask for the MAC that leads to destination.
IpAddress next_hop(const InterfaceConfig& interface, const IpAddress& destination) {
  const bool on_link = is_link_local(destination) ||
                       std::ranges::any_of(interface.addresses, [&](const IpPrefix& prefix) {
                         return prefix.contains(destination);
                       });
  if (!on_link)
    for (const IpAddress& gateway : interface.gateways)
      if (gateway.is_v4() == destination.is_v4()) return gateway;
  // Without a gateway the host itself is asked for: on the same link it answers all the same.
  return destination;
}

/// Our address to ask from: of the target's subnet if there is one (RFC 1122, 3.3.4.3), else any of
/// its family.
const IpAddress* source_for(const InterfaceConfig& interface, const IpAddress& target) {
  const IpAddress* any = nullptr;
  for (const IpPrefix& prefix : interface.addresses) {
    if (prefix.contains(target)) return &prefix.address;
    if (any == nullptr && prefix.address.is_v4() == target.is_v4()) any = &prefix.address;
  }
  return any;
}

}  // namespace

Neighbours::Neighbours(const Interfaces& interfaces, WorkerCounters& counters,
                       std::uint32_t capacity, std::uint32_t most_due, std::uint64_t secret)
    : interfaces_(interfaces), counters_(counters), table_(capacity, secret), due_(most_due) {}

std::optional<MacAddress> Neighbours::resolve(InterfaceId id, const IpAddress& destination,
                                              Instant now) {
  if (is_multicast(destination)) return wire::multicast_mac(destination);
  if (destination == IpAddress::v4(255, 255, 255, 255)) return MacAddress::broadcast();
  const InterfaceConfig& interface = interfaces_[id];
  const std::uint16_t vid = vid_of(interface.vlan_tci);
  const IpAddress hop = next_hop(interface, destination);
  if (const InterfaceConfig* own = interfaces_.owner_of(hop, vid)) return own->mac;

  Neighbour& neighbour = table_.insert(vid, hop, Heat::HOT);
  counters_.neighbours_displaced = table_.displaced();
  if (neighbour.fixed || (neighbour.mac && now - neighbour.learnt < kReachable))
    return neighbour.mac;
  if (!neighbour.asked || now - *neighbour.asked >= kRetry) {
    // The old answer is asked first where it lives (RFC 4861, 7.3.3), then everybody.
    const bool probe = neighbour.mac && neighbour.unanswered == 0;
    if (neighbour.unanswered >= kMostUnanswered) neighbour.mac.reset();
    if (ask(interface, hop, probe ? neighbour.mac : std::nullopt)) {
      neighbour.asked = now;
      if (neighbour.unanswered < kMostUnanswered) ++neighbour.unanswered;
    }
  }
  return neighbour.mac;
}

void Neighbours::add(InterfaceId id, const IpAddress& destination, const MacAddress& mac) {
  Neighbour& neighbour = table_.insert(vid_of(interfaces_[id].vlan_tci), destination, Heat::HOT);
  neighbour = {};
  neighbour.mac = mac;
  neighbour.fixed = true;
  counters_.neighbours_displaced = table_.displaced();
}

bool Neighbours::ask(const InterfaceConfig& interface, const IpAddress& target,
                     std::optional<MacAddress> probe) {
  const IpAddress* source = source_for(interface, target);
  if (source == nullptr) return false;
  DueFrame* frame = take_due_slot();
  if (frame == nullptr) return false;
  const wire::NeighbourSelf self{interface.mac, *source, interface.vlan_tci};
  frame->length = wire::build_solicitation(frame->bytes, self, target, probe);
  ++sent_counter(target);
  return true;
}

Neighbours::DueFrame* Neighbours::take_due_slot() {
  if (!due_.full()) return &due_.push_slot();
  ++counters_.control_drops;
  return nullptr;
}

void Neighbours::learn(Instant now, const wire::NeighbourMessage& message, Heat heat) {
  Neighbour& neighbour = table_.insert(vid_of(message.vlan_tci), message.sender, heat);
  if (neighbour.fixed) return;
  neighbour.mac = message.sender_mac;
  neighbour.learnt = now;
  neighbour.asked.reset();
  neighbour.unanswered = 0;
  counters_.neighbours_displaced = table_.displaced();
}

void Neighbours::on_neighbour(Instant now, std::span<const std::byte> frame) {
  const auto message = wire::parse_neighbour(frame);
  if (!message) return;
  ++(message->target.is_v4() ? counters_.arp_rx : counters_.nd_rx);
  const std::uint16_t vid = vid_of(message->vlan_tci);
  const InterfaceConfig* owner = interfaces_.owner_of(message->target, vid);
  // Learnt is what is said to us, and what anybody says of a host that we know already; other talk
  // on the link would only fill the table (RFC 826's merge rule).
  if (message->teaches() && message->sender_mac &&
      interfaces_.owner_of(message->sender, vid) == nullptr &&
      (owner != nullptr || table_.find(vid, message->sender) != nullptr))
    learn(now, *message, Heat::COLD);
  if (owner != nullptr && owner->duty == NeighbourDuty::OURS &&
      message->kind == wire::NeighbourKind::SOLICITATION)
    answer(*owner, *message);
}

void Neighbours::answer(const InterfaceConfig& owner, const wire::NeighbourMessage& message) {
  DueFrame* frame = take_due_slot();
  if (frame == nullptr) return;
  const wire::NeighbourSelf self{owner.mac, message.target, owner.vlan_tci};
  frame->length = wire::build_advertisement(frame->bytes, self, message);
  ++sent_counter(message.target);
}

void Neighbours::on_echo(std::span<const std::byte> frame) {
  const auto request = wire::parse_echo_request(frame);
  if (!request) return;
  const InterfaceConfig* owner =
      interfaces_.owner_of(request->destination, vid_of(request->vlan_tci));
  if (owner == nullptr || owner->duty != NeighbourDuty::OURS) return;
  ++counters_.icmp_echo_rx;
  // An echo to all is no way to find hosts, only to make them shout (RFC 1122, 3.2.2.6).
  if (destination_of(frame) != owner->mac) return;
  DueFrame* reply = take_due_slot();
  if (reply == nullptr) return;
  reply->length = wire::build_echo_reply(reply->bytes, owner->mac, *request);
  if (reply->length > 0) ++counters_.icmp_echo_tx;
}

void Neighbours::on_frame(Instant now, wire::Verdict verdict, std::span<const std::byte> frame) {
  if (verdict != wire::Verdict::ARP && verdict != wire::Verdict::ICMP &&
      verdict != wire::Verdict::ICMPV6)
    return;
  const MacAddress& destination = destination_of(frame);
  if (!destination.is_multicast() && !interfaces_.has_mac(destination)) {
    ++counters_.not_our_address;
    return;
  }
  if (verdict != wire::Verdict::ICMP) on_neighbour(now, frame);
  if (verdict != wire::Verdict::ARP) on_echo(frame);
}

std::size_t Neighbours::build_next(std::span<std::byte> slot) {
  while (!due_.empty()) {
    const DueFrame& frame = due_.front();
    const std::size_t length = frame.length;
    if (length > 0) std::memcpy(slot.data(), frame.bytes.data(), length);
    due_.pop();
    if (length > 0) return length;
  }
  return 0;
}

}  // namespace roce::engine
