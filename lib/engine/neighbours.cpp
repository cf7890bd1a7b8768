#include "engine/neighbours.hpp"

#include <algorithm>
#include <cstring>

#include "wire/neighbour.hpp"

namespace roce::engine {
namespace {

/// VLAN id alone: priority does not decide who an address belongs to.
std::uint16_t vid_of(std::optional<std::uint16_t> tci) {
  return tci ? *tci & 0xfff : 0;
}

}  // namespace

std::size_t Neighbours::IpHash::operator()(const IpAddress& ip) const noexcept {
  std::uint64_t high, low;
  std::memcpy(&high, ip.bytes.data(), 8);
  std::memcpy(&low, ip.bytes.data() + 8, 8);
  return (high * 0x9e3779b97f4a7c15 ^ low) * 0xbf58476d1ce4e5b9 >> 16;
}

Neighbours::Neighbours(WorkerCounters& counters) : counters_(counters) {}

InterfaceId Neighbours::add(const InterfaceConfig& config) {
  const auto id = static_cast<InterfaceId>(interfaces_.size());
  interfaces_.push_back(config);
  for (const IpPrefix& prefix : config.addresses) by_address_[prefix.address].push_back(id);
  return id;
}

bool Neighbours::is_ours(const wire::Packet& packet) const {
  const MacAddress& mac = wire::view_as<wire::EthernetHeader>(packet.l2)->destination;
  const IpAddress ip = packet.destination_ip();
  // One endpoint is the common case and needs no hashing.
  if (interfaces_.size() == 1) {
    const InterfaceConfig& only = interfaces_.front();
    return only.mac == mac &&
           std::ranges::any_of(only.addresses, [&](const IpPrefix& p) { return p.address == ip; });
  }
  const auto found = by_address_.find(ip);
  return found != by_address_.end() && std::ranges::any_of(found->second, [&](InterfaceId id) {
           return interfaces_[id].mac == mac;
         });
}

const InterfaceConfig* Neighbours::owner_of(const IpAddress& ip,
                                            std::optional<std::uint16_t> vlan_tci) const {
  const auto found = by_address_.find(ip);
  if (found == by_address_.end()) return nullptr;
  for (const InterfaceId id : found->second)
    if (vid_of(interfaces_[id].vlan_tci) == vid_of(vlan_tci)) return &interfaces_[id];
  return nullptr;
}

Neighbours::Entry& Neighbours::entry_of(const IpAddress& ip) {
  const auto found = entries_.find(ip);
  if (found != entries_.end()) return found->second;
  if (entries_.size() >= kMostEntries) {
    entries_.erase(entries_.begin());
    ++counters_.neighbour_drops;
  }
  return entries_[ip];
}

void Neighbours::learn(Instant now, const IpAddress& ip, const MacAddress& mac) {
  entry_of(ip) = Entry{mac, now, std::nullopt};
}

IpAddress Neighbours::next_hop(const InterfaceConfig& interface,
                               const IpAddress& destination) const {
  for (const IpPrefix& prefix : interface.addresses)
    if (prefix.contains(destination)) return destination;
  for (const IpAddress& gateway : interface.gateways)
    if (gateway.is_v4() == destination.is_v4()) return gateway;
  // Without a gateway the neighbour is asked for directly: a peer on the same link still answers.
  return destination;
}

std::optional<MacAddress> Neighbours::resolve(InterfaceId id, const IpAddress& destination,
                                              Instant now) {
  const InterfaceConfig& interface = interfaces_[id];
  const IpAddress hop = next_hop(interface, destination);
  if (const InterfaceConfig* own = owner_of(hop, interface.vlan_tci)) return own->mac;
  Entry& entry = entry_of(hop);
  const bool fresh = entry.mac && now - entry.learnt < kReachable;
  if (fresh) return entry.mac;
  if (!entry.asked || now - *entry.asked >= kRetry) {
    entry.asked = now;
    ask(interface, hop, entry.mac);
  }
  // A stale answer serves until the new one is here, as RFC 4861 has it (state STALE).
  return entry.mac;
}

void Neighbours::ask(const InterfaceConfig& interface, const IpAddress& target,
                     std::optional<MacAddress> probe) {
  const auto same_family = [&](const IpPrefix& p) { return p.address.is_v4() == target.is_v4(); };
  const auto source = std::ranges::find_if(interface.addresses, same_family);
  if (source == interface.addresses.end()) return;
  const wire::NeighbourSelf self{interface.mac, source->address, interface.vlan_tci};
  DueFrame& frame = due_slot();
  frame.length = wire::build_solicitation(frame.bytes, self, target, probe);
  ++(target.is_v4() ? counters_.arp_tx : counters_.nd_tx);
}

Neighbours::DueFrame& Neighbours::due_slot() {
  if (due_.full()) {
    due_.pop();
    ++counters_.neighbour_drops;
  }
  return due_.push_slot();
}

void Neighbours::on_neighbour(Instant now, std::span<const std::byte> frame) {
  const auto message = wire::parse_neighbour(frame);
  if (!message) return;
  ++(message->target.is_v4() ? counters_.arp_rx : counters_.nd_rx);
  const InterfaceConfig* owner = owner_of(message->target, message->vlan_tci);
  // Learnt are answers to what we asked and what is addressed to us; other talk on the link would
  // fill the table (RFC 826's merge rule).
  if (message->teaches() && message->sender_mac &&
      (owner != nullptr || entries_.contains(message->sender)))
    learn(now, message->sender, *message->sender_mac);
  if (owner == nullptr || owner->duty != NeighbourDuty::OURS ||
      message->kind != wire::NeighbourKind::SOLICITATION)
    return;
  const wire::NeighbourSelf self{owner->mac, message->target, owner->vlan_tci};
  DueFrame& answer = due_slot();
  answer.length = wire::build_advertisement(answer.bytes, self, *message);
  ++(message->target.is_v4() ? counters_.arp_tx : counters_.nd_tx);
}

void Neighbours::on_echo(std::span<const std::byte> frame) {
  const auto request = wire::parse_echo_request(frame);
  if (!request) return;
  const InterfaceConfig* owner = owner_of(request->destination, request->vlan_tci);
  if (owner == nullptr || owner->duty != NeighbourDuty::OURS) return;
  ++counters_.icmp_echo_rx;
  if (frame.size() > kMostFrame) return;
  DueFrame& reply = due_slot();
  reply.length = wire::build_echo_reply(reply.bytes, owner->mac, *request);
  counters_.icmp_echo_tx += reply.length > 0 ? 1 : 0;
}

void Neighbours::on_frame(Instant now, wire::Verdict verdict, std::span<const std::byte> frame) {
  switch (verdict) {
    case wire::Verdict::ARP:
      on_neighbour(now, frame);
      break;
    case wire::Verdict::ICMPV6:
      on_neighbour(now, frame);
      on_echo(frame);
      break;
    case wire::Verdict::ICMP:
      on_echo(frame);
      break;
    default:
      break;
  }
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
