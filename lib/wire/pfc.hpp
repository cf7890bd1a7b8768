// Flow-control frames: PAUSE (IEEE 802.3, annex 31B) and priority-based flow control (802.1Qbb,
// annex 31D). Pure functions; who pauses whom and for how long is the fabric's affair.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/address.hpp"

namespace roce::wire {

enum class FlowControlKind : std::uint8_t { PAUSE, PFC };

struct FlowControl {
  FlowControlKind kind = FlowControlKind::PFC;
  MacAddress source;
  std::uint8_t class_enable = 0;  ///< PFC: bit n set: quanta[n] is meant
  std::array<std::uint16_t, 8>
      quanta{};  ///< PFC: by priority; PAUSE: [0]. In 512 bit times; 0 resumes
};

/// 01:80:c2:00:00:01, which bridges never forward.
inline constexpr MacAddress kFlowControlDestination{{0x01, 0x80, 0xc2, 0x00, 0x00, 0x01}};

/// Reads a PAUSE or PFC frame; empty when it is another frame or too short. Quanta of classes that
/// are not enabled are kept as they stand.
[[nodiscard]] std::optional<FlowControl> parse_flow_control(std::span<const std::byte> frame);

/// Writes the frame (always untagged) and returns its length, the Ethernet minimum. slot must hold
/// that much. Quanta of classes that are not enabled are written as 0.
[[nodiscard]] std::size_t build_flow_control(std::span<std::byte> slot, const FlowControl& control);

}  // namespace roce::wire
