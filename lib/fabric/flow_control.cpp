// Priority-based flow control: telling the peer to stop and to go on, and obeying it.
#include <bit>
#include <utility>

#include "fabric/network_core.hpp"
#include "wire/pfc.hpp"

namespace roce::fabric {
namespace {

/// 02:53:SS:SS:PP:PP for a switch's port.
MacAddress port_mac(const Port& port) {
  if (!is_switch(port.node)) return host_mac(port.node >> 1);
  const std::uint32_t id = port.node >> 1;
  return {{0x02, 0x53, static_cast<std::uint8_t>(id >> 8), static_cast<std::uint8_t>(id),
           static_cast<std::uint8_t>(port.index >> 8), static_cast<std::uint8_t>(port.index)}};
}

template <class Function>
void for_each_class(std::uint8_t classes, Function&& function) {
  for (; classes != 0; classes &= static_cast<std::uint8_t>(classes - 1))
    function(static_cast<std::uint8_t>(std::countr_zero(classes)));
}

}  // namespace

void Network::Core::stop_peer(PortId id, std::uint8_t classes) {
  Port& port = ports[id];
  if ((classes & ~port.xoff) == 0) return;
  port.xoff |= classes;
  port.pfc_due |= classes;
  if (!port.refresh_armed) {
    port.refresh_armed = true;
    events.push(now + port.refresh, EventKind::PFC_REFRESH, id);
  }
  kick(id, port);
}

void Network::Core::resume_peer(PortId id, std::uint8_t classes) {
  Port& port = ports[id];
  port.xoff &= static_cast<std::uint8_t>(~classes);
  port.pfc_due |= classes;
  kick(id, port);
}

/// An XOFF lasts its quanta; while it is meant to last longer it is said again in time.
void Network::Core::refresh_pfc(PortId id) {
  Port& port = ports[id];
  const auto due = static_cast<std::uint8_t>(port.xoff | port.storm |
                                             std::exchange(port.pfc_unsaid, std::uint8_t{0}));
  port.refresh_armed = due != 0;
  if (due == 0) return;
  port.pfc_due |= due;
  events.push(now + port.refresh, EventKind::PFC_REFRESH, id);
  kick(id, port);
}

/// Says what holds now, in one frame for all classes that have something to say.
void Network::Core::send_pfc(PortId id, Port& port) {
  const std::uint8_t classes = std::exchange(port.pfc_due, std::uint8_t{0});
  const std::uint8_t stopped = port.xoff | port.storm;
  const FrameIndex frame = pool.take();
  if (frame == kNone) {  // said again a little later; the pool has counted it
    port.pfc_unsaid |= classes;
    if (std::exchange(port.refresh_armed, true)) return;
    events.push(now + port.refresh, EventKind::PFC_REFRESH, id);
    return;
  }
  wire::FlowControl control;
  control.source = port_mac(port);
  control.class_enable = classes;
  for_each_class(classes, [&](std::uint8_t priority) {
    const bool stop = (stopped & bit_of(priority)) != 0;
    const bool storm = (port.storm & bit_of(priority)) != 0;
    control.quanta[priority] = storm ? port.storm_quanta : stop ? port.quanta : std::uint16_t{0};
    PriorityCounters& count = counters[id].priority[priority];
    ++(stop ? count.tx_pause : count.tx_xon);
  });
  FrameMeta& meta = pool.meta(frame);
  const std::size_t length =
      wire::build_flow_control({pool.data(frame), FramePool::kCapacity}, control);
  classify({pool.data(frame), length}, meta);
  ++counters[id].tx_flow_control;
  put_on_wire(id, port, frame);
}

void Network::Core::receive_pfc(PortId id, FrameIndex frame) {
  ++counters[id].rx_flow_control;
  if (ports[id].response == 0) return obey_pfc(id, frame);
  events.push(now + ports[id].response, EventKind::PFC_EFFECT, id, frame);
}

void Network::Core::obey_pfc(PortId id, FrameIndex frame) {
  Port& port = ports[id];
  const auto control = wire::parse_flow_control(pool.view(frame));
  pool.give_back(frame);
  if (!control) return;
  const bool pfc = control->kind == wire::FlowControlKind::PFC;
  // PAUSE stops all classes alike (IEEE 802.3 31B).
  const std::uint8_t classes = pfc ? control->class_enable : std::uint8_t{0xff};
  for_each_class(classes, [&](std::uint8_t priority) {
    const std::uint16_t quanta = control->quanta[pfc ? priority : 0];
    PriorityCounters& count = counters[id].priority[priority];
    ++(quanta != 0 ? count.rx_pause : count.rx_xon);
    if ((port.honours & bit_of(priority)) != 0) pause(id, port, priority, quanta);
  });
  kick(id, port);
}

void Network::Core::pause(PortId id, Port& port, std::uint8_t priority, std::uint32_t quanta) {
  const std::uint8_t bit = bit_of(priority);
  port.pause_until[priority] = now + port.line.quanta(quanta);
  if (quanta == 0) {
    if ((port.egress.paused & bit) != 0) unpause(id, port, priority);
    return;
  }
  if ((port.pause_armed & bit) == 0) {
    port.pause_armed |= bit;
    events.push(port.pause_until[priority], EventKind::PAUSE_END, id, priority);
  }
  if (is_switch(port.node)) arm_watchdog(port.node);
  if (((port.egress.paused | port.ignores) & bit) != 0) return;
  port.egress.paused |= bit;
  port.pause_began[priority] = now;
}

void Network::Core::unpause(PortId id, Port& port, std::uint8_t priority) {
  port.egress.paused &= static_cast<std::uint8_t>(~bit_of(priority));
  counters[id].priority[priority].paused += now - port.pause_began[priority];
}

/// The timer is not moved when a pause is prolonged or cut short: it looks when it has run out.
void Network::Core::end_pause(PortId id, std::uint8_t priority) {
  Port& port = ports[id];
  const std::uint8_t bit = bit_of(priority);
  if (port.pause_until[priority] > now) {
    events.push(port.pause_until[priority], EventKind::PAUSE_END, id, priority);
    return;
  }
  port.pause_armed &= static_cast<std::uint8_t>(~bit);
  if ((port.egress.paused & bit) == 0) return;
  unpause(id, port, priority);
  kick(id, port);
}

}  // namespace roce::fabric
