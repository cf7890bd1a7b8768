// What the fabric reads in a frame and writes into it. Pure functions over bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"
#include "fabric/frame_pool.hpp"
#include "fabric/switch_config.hpp"
#include "wire/ecn.hpp"

namespace roce::fabric {

/// The MAC address of a host's interface: 02:52:HH:HH:II:II. A host may have as many as 65,536.
[[nodiscard]] MacAddress host_mac(std::uint32_t host, std::uint16_t interface = 0);
/// Which host an address of that form names; kNone for any other.
[[nodiscard]] std::uint32_t host_of(const MacAddress& mac);

/// Fills meta from the frame's bytes: length, destination, flow, DSCP, ECN, PCP. Leaves what
/// belongs to queues and buffers.
void classify(std::span<const std::byte> frame, FrameMeta& meta);

/// Sets Congestion Experienced in a frame, which must be an IP packet.
inline void mark_congestion(std::byte* frame, FrameMeta& meta) {
  wire::set_ecn(frame, wire::Ecn::CE);
  meta.traffic_class |= 3;
}

/// RFC 3168: ECN-capable transport, marked or not.
[[nodiscard]] inline bool is_ect(const FrameMeta& meta) {
  return meta.ecn() != 0;
}

/// The priority that a map gives a frame.
[[nodiscard]] inline std::uint8_t priority_of(const PriorityMap& map, const FrameMeta& meta) {
  if (map.trust == TrustMode::DSCP && meta.l3_at != 0) return map.dscp[meta.dscp()];
  return meta.pcp == FrameMeta::kUntagged ? std::uint8_t{0} : map.pcp[meta.pcp];
}

}  // namespace roce::fabric
