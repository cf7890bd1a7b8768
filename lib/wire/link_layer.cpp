#include "wire/link_layer.hpp"

#include <cstring>

namespace roce::wire {

std::optional<LinkLayer> read_link_layer(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(EthernetHeader)) return std::nullopt;
  LinkLayer link;
  link.ethernet = view_as<EthernetHeader>(frame.data());
  link.ether_type = link.ethernet->ether_type.get();
  link.payload = frame.subspan(sizeof(EthernetHeader));
  if (link.ether_type != kEtherVlan) return link;
  if (link.payload.size() < sizeof(VlanTag)) return std::nullopt;
  const auto& tag = *view_as<VlanTag>(link.payload.data());
  link.vlan_tci = tag.tci.get();
  link.ether_type = tag.ether_type.get();
  link.payload = link.payload.subspan(sizeof(VlanTag));
  return link;
}

std::byte* write_link_layer(std::span<std::byte> slot, const MacAddress& destination,
                            const MacAddress& source, std::optional<std::uint16_t> vlan_tci,
                            std::uint16_t ether_type) {
  auto& ethernet = *view_as<EthernetHeader>(slot.data());
  ethernet.destination = destination;
  ethernet.source = source;
  ethernet.ether_type.set(vlan_tci ? std::uint16_t{kEtherVlan} : ether_type);
  std::byte* at = slot.data() + sizeof(EthernetHeader);
  if (!vlan_tci) return at;
  auto& tag = *view_as<VlanTag>(at);
  tag.tci.set(*vlan_tci);
  tag.ether_type.set(ether_type);
  return at + sizeof(VlanTag);
}

std::size_t pad_frame(std::span<std::byte> slot, std::size_t length) {
  if (length >= kMinFrameBytes) return length;
  std::memset(slot.data() + length, 0, kMinFrameBytes - length);
  return kMinFrameBytes;
}

}  // namespace roce::wire
