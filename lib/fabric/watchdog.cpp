// The storm watchdog of a switch: polls while any of its ports is paused.
#include "fabric/network_core.hpp"

namespace roce::fabric {

void Network::Core::arm_watchdog(NodeId node) {
  Switch& sw = switch_of(node);
  if (!sw.config.pfc.watchdog || sw.watchdog_armed) return;
  sw.watchdog_armed = true;
  events.push(now + to_ps(sw.config.pfc.watchdog->poll), EventKind::WATCHDOG, node >> 1);
}

void Network::Core::watch(SwitchId id) {
  Switch& sw = switches[id];
  bool busy = false;
  for (const PortId port : sw.ports)
    for (std::uint8_t priority = 0; priority < kPriorities; ++priority)
      if ((sw.config.pfc.lossless & bit_of(priority)) != 0) busy |= watch_queue(sw, port, priority);
  sw.watchdog_armed = false;
  if (busy) arm_watchdog(ports[sw.ports.front()].node);
}

/// Returns whether it must be looked at again.
bool Network::Core::watch_queue(Switch& sw, PortId id, std::uint8_t priority) {
  Port& port = ports[id];
  SwitchPort& state = switch_ports[id];
  const WatchdogConfig& watchdog = *sw.config.pfc.watchdog;
  const std::uint8_t bit = bit_of(priority);
  const bool told_to_stop = port.pause_until[priority] > now;
  if ((state.storming & bit) != 0) {
    if (told_to_stop) {
      state.calm &= static_cast<std::uint8_t>(~bit);
    } else if ((state.calm & bit) == 0) {
      state.calm |= bit;
      state.calm_since[priority] = now;
    } else if (now - state.calm_since[priority] >= to_ps(watchdog.restoration)) {
      end_storm(id, priority);
    }
    return (state.storming & bit) != 0;
  }
  const bool stalled = (port.egress.paused & bit) != 0 && !port.egress.queues[priority].empty();
  if (!stalled) {
    state.stalled &= static_cast<std::uint8_t>(~bit);
  } else if ((state.stalled & bit) == 0) {
    state.stalled |= bit;
    // It has stood still for as long as it was both paused and not empty; the first poll that sees
    // it starts the time, as in SONiC.
    state.stalled_since[priority] = now;
  } else if (port.pause_began[priority] > state.stalled_since[priority]) {
    state.stalled_since[priority] = port.pause_began[priority];  // it went on in between
  } else if (now - state.stalled_since[priority] >= to_ps(watchdog.detection)) {
    begin_storm(sw, id, priority);
  }
  return stalled || told_to_stop;
}

void Network::Core::begin_storm(Switch& sw, PortId id, std::uint8_t priority) {
  Port& port = ports[id];
  SwitchPort& state = switch_ports[id];
  const std::uint8_t bit = bit_of(priority);
  state.storming |= bit;
  state.stalled &= static_cast<std::uint8_t>(~bit);
  state.calm &= static_cast<std::uint8_t>(~bit);
  ++counters[id].priority[priority].storms_detected;
  if (sw.config.pfc.watchdog->action == StormAction::ALERT) return;
  port.ignores |= bit;
  unpause(id, port, priority);
  if (sw.config.pfc.watchdog->action == StormAction::DROP) {
    if (!histograms.empty()) note_queue(id, port, priority);
    while (!port.egress.queues[priority].empty()) {
      const FrameIndex frame = port.egress.pop(pool, priority);
      release(pool.meta(frame), sw);
      drop(id, frame, priority, DropCause::WATCHDOG);
    }
  }
  kick(id, port);
}

void Network::Core::end_storm(PortId id, std::uint8_t priority) {
  const auto keep = static_cast<std::uint8_t>(~bit_of(priority));
  switch_ports[id].storming &= keep;
  ports[id].ignores &= keep;
  ++counters[id].priority[priority].storms_restored;
}

}  // namespace roce::fabric
