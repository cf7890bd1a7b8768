// Faults of a network: what can be done to it, and the log of what was done, against which an
// analyser of captures can be checked.
#pragma once

#include <cstdint>
#include <optional>

#include "base/address.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "fabric/fault_rule.hpp"
#include "fabric/sim_time.hpp"
#include "fabric/tap.hpp"

namespace roce::fabric {

/// PFC frames that a port sends without reason.
struct StormConfig {
  std::uint8_t classes = 1u << 3;
  std::uint16_t quanta = 0xffff;
  Instant start{};
  Duration duration{};
  double refresh = 0.5;  ///< part of the quanta's time after which the next frame goes; above 0
};

enum class FaultKind : std::uint8_t { PACKET, LINK_DOWN, LINK_UP, STORM_BEGIN, STORM_END };

/// One fault that was applied.
struct FaultRecord {
  SimTime time;  ///< PACKET: when its first bit would have left the port
  FaultKind kind = FaultKind::PACKET;
  PortId port = 0;         ///< that sent it; of a link, the first one
  std::uint32_t rule = 0;  ///< PACKET: number of the rule, in the order of add_fault()
  FaultAction action = FaultAction::DROP;  ///< PACKET
  std::uint8_t opcode = 0;                 ///< PACKET
  Qpn dest_qpn;                            ///< PACKET
  Psn psn;                                 ///< PACKET
  IpAddress source, destination;           ///< PACKET
};

}  // namespace roce::fabric
