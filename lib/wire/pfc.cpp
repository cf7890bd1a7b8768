#include "wire/pfc.hpp"

#include "base/check.hpp"
#include "wire/link_layer.hpp"

namespace roce::wire {
namespace {

constexpr std::uint16_t kOpcodePause = 0x0001;
constexpr std::uint16_t kOpcodePfc = 0x0101;

struct PauseBody {
  Be16 opcode;
  Be16 pause_time;
};

struct PfcBody {
  Be16 opcode;
  Be16 class_enable_vector;  ///< the high byte is reserved, 0
  Be16 time[8];
};

}  // namespace

std::optional<FlowControl> parse_flow_control(std::span<const std::byte> frame) {
  const auto link = read_link_layer(frame);
  if (!link || link->ether_type != kEtherFlowControl || link->payload.size() < sizeof(PauseBody))
    return std::nullopt;
  FlowControl control;
  control.source = link->ethernet->source;
  const auto& pause = *view_as<PauseBody>(link->payload.data());
  if (pause.opcode.get() == kOpcodePause) {
    control.kind = FlowControlKind::PAUSE;
    control.quanta[0] = pause.pause_time.get();
    return control;
  }
  if (pause.opcode.get() != kOpcodePfc || link->payload.size() < sizeof(PfcBody))
    return std::nullopt;
  const auto& pfc = *view_as<PfcBody>(link->payload.data());
  control.kind = FlowControlKind::PFC;
  control.class_enable = static_cast<std::uint8_t>(pfc.class_enable_vector.get());
  for (std::size_t i = 0; i < 8; ++i) control.quanta[i] = pfc.time[i].get();
  return control;
}

std::size_t build_flow_control(std::span<std::byte> slot, const FlowControl& control) {
  ROCE_CHECK(slot.size() >= kMinFrameBytes);
  std::byte* at = write_link_layer(slot, kFlowControlDestination, control.source, std::nullopt,
                                   kEtherFlowControl);
  if (control.kind == FlowControlKind::PAUSE) {
    auto& pause = *view_as<PauseBody>(at);
    pause.opcode.set(kOpcodePause);
    pause.pause_time.set(control.quanta[0]);
    return pad_frame(slot, sizeof(EthernetHeader) + sizeof(PauseBody));
  }
  auto& pfc = *view_as<PfcBody>(at);
  pfc.opcode.set(kOpcodePfc);
  pfc.class_enable_vector.set(control.class_enable);
  for (unsigned i = 0; i < 8; ++i)
    pfc.time[i].set((control.class_enable & (1u << i)) != 0 ? control.quanta[i] : std::uint16_t{0});
  return pad_frame(slot, sizeof(EthernetHeader) + sizeof(PfcBody));
}

}  // namespace roce::wire
