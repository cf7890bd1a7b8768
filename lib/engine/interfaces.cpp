#include "engine/interfaces.hpp"

namespace roce::engine {

std::uint64_t Interfaces::number_of(const MacAddress& mac) {
  std::uint64_t number = 0;
  std::memcpy(&number, mac.bytes.data(), mac.bytes.size());
  return number;
}

InterfaceId Interfaces::add(const InterfaceConfig& config) {
  const auto id = static_cast<InterfaceId>(all_.size());
  all_.push_back(config);
  macs_.insert(number_of(config.mac));
  for (const IpPrefix& prefix : config.addresses) by_address_[prefix.address].push_back(id);
  return id;
}

const InterfaceConfig* Interfaces::owner_of(const IpAddress& ip, std::uint16_t vid) const {
  const auto found = by_address_.find(ip);
  if (found == by_address_.end()) return nullptr;
  for (const InterfaceId id : found->second)
    if (vid_of(all_[id].vlan_tci) == vid) return &all_[id];
  return nullptr;
}

bool Interfaces::look_up(const wire::Packet& packet) {
  const auto found = by_address_.find(packet.destination_ip());
  if (found == by_address_.end()) return false;
  for (const InterfaceId id : found->second) {
    const InterfaceConfig& interface = all_[id];
    const Endpoint endpoint{interface.mac, vid_of(interface.vlan_tci), true, !found->first.is_v4(),
                            found->first};
    if (!endpoint.matches(packet)) continue;
    last_ = endpoint;
    return true;
  }
  return false;
}

}  // namespace roce::engine
