// Ethernet and one optional VLAN tag, read and written for the control frames of this module.
// The datapath has its own in packet.cpp and build.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/headers.hpp"

namespace roce::wire {

struct LinkLayer {
  const EthernetHeader* ethernet = nullptr;
  std::optional<std::uint16_t> vlan_tci;
  std::uint16_t ether_type = 0;        ///< behind the tag, if there is one
  std::span<const std::byte> payload;  ///< with whatever padding the frame has
};

/// Empty when the frame is too short for its headers.
[[nodiscard]] std::optional<LinkLayer> read_link_layer(std::span<const std::byte> frame);

/// Bytes that write_link_layer() will write.
[[nodiscard]] constexpr std::size_t link_layer_bytes(std::optional<std::uint16_t> vlan_tci) {
  return sizeof(EthernetHeader) + (vlan_tci ? sizeof(VlanTag) : 0);
}

/// Writes Ethernet and tag at the front of slot, which must have room; returns where to go on.
[[nodiscard]] std::byte* write_link_layer(std::span<std::byte> slot, const MacAddress& destination,
                                          const MacAddress& source,
                                          std::optional<std::uint16_t> vlan_tci,
                                          std::uint16_t ether_type);

/// Zero-fills a frame of length bytes up to the Ethernet minimum; returns its length then. slot
/// must hold kMinFrameBytes.
[[nodiscard]] std::size_t pad_frame(std::span<std::byte> slot, std::size_t length);

}  // namespace roce::wire
