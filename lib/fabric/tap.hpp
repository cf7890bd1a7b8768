// Tap: sees the frames of a port as they pass. Implemented by captures and tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/sim_time.hpp"

namespace roce::fabric {

using HostId = std::uint32_t;
using SwitchId = std::uint32_t;
using NodeId = std::uint32_t;
using LinkId = std::uint32_t;
using PortId = std::uint32_t;

/// How the frame pool is used.
struct FramePoolUse {
  std::uint32_t capacity = 0;
  std::uint32_t in_use = 0;
  std::uint32_t most_used = 0;
  std::uint64_t exhausted = 0;  ///< times that a frame was asked for in vain
};

enum class TapDirection : std::uint8_t {
  TX,  ///< leaves the port; time: its first bit's
  RX,  ///< has reached the port; time: its last bit's
};

class Tap {
 public:
  virtual ~Tap() = default;
  /// frame: without FCS; valid until the call returns.
  virtual void on_frame(SimTime time, PortId port, TapDirection direction,
                        std::span<const std::byte> frame) = 0;
};

}  // namespace roce::fabric
