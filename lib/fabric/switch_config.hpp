// SwitchConfig and HostConfig: what a node of a network is made with. Plain values;
// Network::build() checks them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "fabric/link.hpp"

namespace roce::fabric {

inline constexpr std::size_t kPriorities = 8;

/// How a frame's priority is found.
enum class TrustMode : std::uint8_t {
  DSCP,  ///< from the IP header by dscp_map; what is not IP by pcp_map, untagged gets 0
  PCP,   ///< from the VLAN tag by pcp_map; untagged gets 0
};

struct PriorityMap {
  TrustMode trust = TrustMode::DSCP;
  /// Default: the class selector, so that DSCP 26 is priority 3 and 48 is 6.
  std::array<std::uint8_t, 64> dscp = [] {
    std::array<std::uint8_t, 64> map{};
    for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<std::uint8_t>(i >> 3);
    return map;
  }();
  std::array<std::uint8_t, kPriorities> pcp = {0, 1, 2, 3, 4, 5, 6, 7};
};

/// Weight of a queue: 0 serves it strictly, before all weighted ones, the highest priority first;
/// others share by deficit weighted round robin over wire bytes.
struct Scheduling {
  std::array<std::uint16_t, kPriorities> weight = {1, 1, 1, 1, 1, 1, 0, 0};
};

/// Marking line of a queue: never at or below kmin_bytes, then linear up to pmax at kmax_bytes,
/// always above. Bytes without FCS that stand in the egress queue when the frame leaves it, itself
/// not counted (DCQCN, SIGCOMM'15, 3.1).
struct RedLine {
  std::uint64_t kmin_bytes = 0;
  std::uint64_t kmax_bytes = 0;
  double pmax = 0.0;  ///< 0..1
};

/// What happens to a frame that the line picks and that cannot be marked (RFC 3168: not-ECT).
enum class NotEct : std::uint8_t { PASS, DROP };

struct EcnConfig {
  std::array<std::optional<RedLine>, kPriorities> line{};  ///< empty: neither marks nor drops
  NotEct not_ect = NotEct::PASS;
};

/// A threshold on a share of the buffer: fixed, or alpha times what is free of the shared pool.
struct Threshold {
  std::optional<std::uint64_t> bytes{};
  double alpha = 1.0;  ///< used when bytes is empty; above 0
};

struct BufferConfig {
  std::uint64_t total_bytes = 32 << 20;  ///< headroom included
  CellSize cell{};
  Threshold lossless{{}, 0.125};  ///< of one ingress port and priority; above it XOFF
  Threshold lossy{{}, 1.0};       ///< of one egress queue; above it frames are dropped
};

/// What a watchdog does with a queue in a storm.
enum class StormAction : std::uint8_t { ALERT, DROP, FORWARD };

/// Storm watchdog: a lossless queue that has frames and was paused for the whole detection time is
/// in a storm, until no pause was there for the restoration time. Semantics of SONiC's pfcwd.
struct WatchdogConfig {
  Duration detection = Duration::milliseconds(200);
  Duration restoration = Duration::milliseconds(200);
  Duration poll = Duration::milliseconds(200);
  StormAction action = StormAction::DROP;
};

struct PfcConfig {
  std::uint8_t lossless = 1u << 3;  ///< bit n: priority n sends and obeys PFC
  /// Bytes for each port and lossless priority; default: pfc_headroom() of the port's link.
  std::optional<std::uint64_t> headroom_bytes{};
  std::uint32_t max_frame_bytes = 4200;  ///< for pfc_headroom(): without FCS
  /// XON when what the class occupies at this port has fallen so far below the threshold.
  std::uint64_t xon_offset_bytes = 2 * 4200;
  std::uint16_t quanta = 0xffff;  ///< that an XOFF asks for
  /// XOFF is said again after this part of the time it lasts; 0..1 exclusive.
  double refresh = 0.5;
  std::optional<WatchdogConfig> watchdog{};
};

struct SwitchConfig {
  std::string name{};  ///< default: "switchN"
  PriorityMap priorities{};
  Scheduling scheduling{};
  EcnConfig ecn{};
  BufferConfig buffer{};
  PfcConfig pfc{};
  std::optional<std::uint64_t> seed{};  ///< of marking and ECMP; default: from the network's seed
};

/// A host that answers with PFC when its receive buffer fills: one that reads slowly.
struct HostPfcConfig {
  Rate drain = Rate::gbps(100);       ///< at which frames pass from the buffer to the worker
  std::uint64_t xoff_bytes = 0;       ///< of one priority in the buffer
  std::uint64_t xon_bytes = 0;        ///< below xoff_bytes
  std::uint8_t priorities = 1u << 3;  ///< that send PFC
  std::uint16_t quanta = 0xffff;
};

struct HostConfig {
  std::string name{};  ///< default: "hostN"
  PriorityMap priorities{};
  Scheduling scheduling{};
  std::uint8_t honours_pfc = 1u << 3;  ///< bit n: priority n obeys
  std::uint32_t tx_queue_frames = 16;  ///< that the NIC holds ahead of the wire; 1..1024
  std::uint16_t mtu = 4200;            ///< most bytes of an IP packet
  /// From a frame's arrival to the worker's turn: a poll loop sees several at once. 0: at once.
  Duration turn_delay{};
  std::optional<HostPfcConfig> pfc{};  ///< empty: never sends PFC
};

}  // namespace roce::fabric
