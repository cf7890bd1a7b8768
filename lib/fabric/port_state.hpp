// Port and SwitchPort: the state of one port, of hosts and switches alike, and what only a switch
// keeps beside it. Plain data; Network::Core moves it.
#pragma once

#include <array>
#include <cstdint>

#include "fabric/egress.hpp"
#include "fabric/frame_pool.hpp"
#include "fabric/link.hpp"
#include "fabric/sim_time.hpp"
#include "fabric/switch_buffer.hpp"
#include "fabric/tap.hpp"

namespace roce::fabric {

[[nodiscard]] constexpr std::uint8_t bit_of(std::size_t priority) {
  return static_cast<std::uint8_t>(1u << priority);
}
[[nodiscard]] constexpr bool is_switch(NodeId node) {
  return (node & 1) != 0;
}

/// What a port is on the wire. All that the usual frame needs is on the first cache line, and on
/// that of its queue.
struct alignas(64) Port {
  SimTime busy_until;  ///< its transmitter's
  FrameList flight;    ///< frames on the wire, the first to arrive first
  Serialiser line;
  Picoseconds delay = 0;
  PortId peer = kNone;
  NodeId peer_node = 0;
  bool special = false;      ///< what it sends may meet a fault, a tap or a link that went down
  bool tx_armed = false;     ///< a TX_DONE is under way
  std::uint8_t pfc_due = 0;  ///< classes of which the next PFC frame speaks
  std::uint8_t ignores = 0;  ///< classes whose pauses a watchdog overrides
  Egress egress;

  NodeId node = 0;
  std::uint32_t index = 0;  ///< among the node's ports
  bool up = true;
  bool faulty = false;  ///< some fault rule looks at what it sends
  SimTime went_down{-1};
  Tap* tap = nullptr;

  // Flow control: towards the peer ...
  std::uint8_t xoff = 0;        ///< classes that we have stopped
  std::uint8_t storm = 0;       ///< classes that an injected storm stops
  std::uint8_t pfc_unsaid = 0;  ///< classes that found no frame to be told with
  bool refresh_armed = false;
  std::uint16_t quanta = 0xffff;
  std::uint16_t storm_quanta = 0xffff;
  Picoseconds refresh = 0;
  // ... and from it.
  std::uint8_t honours = 0;
  std::uint8_t pause_armed = 0;  ///< classes with a PAUSE_END under way
  Picoseconds response = 0;
  std::array<SimTime, kPriorities> pause_until{};
  std::array<SimTime, kPriorities> pause_began{};
  LinkConfig link{};
};

/// What a switch keeps of each of its ports.
struct alignas(64) SwitchPort {
  std::uint32_t headroom_limit = 0;
  std::uint8_t stopped = 0;  ///< classes of the peer that are in XOFF for want of buffer
  std::array<IngressClass, kPriorities> ingress{};
  // Watchdog, by priority.
  std::array<SimTime, kPriorities> stalled_since{};
  std::array<SimTime, kPriorities> calm_since{};
  std::uint8_t stalled = 0, calm = 0, storming = 0;
};

}  // namespace roce::fabric
