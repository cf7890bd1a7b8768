// Interface: one emulated endpoint on a port: a MAC, its addresses, and how it reaches others.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/address.hpp"

namespace roce::engine {

/// Who answers ARP, ND and ICMP echo for the addresses.
enum class NeighbourDuty : std::uint8_t {
  OURS,    ///< the worker does
  KERNEL,  ///< the kernel holds the addresses; the worker asks but never answers
};

struct InterfaceConfig {
  MacAddress mac;
  std::vector<IpPrefix> addresses;  ///< at least one
  std::vector<IpAddress> gateways;  ///< at most one per family; used outside the prefixes
  std::optional<std::uint16_t> vlan_tci;
  NeighbourDuty duty = NeighbourDuty::OURS;
};

/// Index of an interface on its worker.
using InterfaceId = std::uint32_t;

}  // namespace roce::engine
