// A port's transmitter: which frame is next, and its way onto the wire.
#include <algorithm>

#include "fabric/network_core.hpp"

namespace roce::fabric {

void Network::Core::enqueue(Port& port, FrameIndex frame, std::uint8_t priority) {
  pool.meta(frame).priority = priority;
  port.egress.push(pool, frame, priority);
}

void Network::Core::kick(PortId id, Port& port) {
  for (;;) {
    if ((port.egress.eligible() | port.pfc_due) == 0) return;
    if (now < port.busy_until) {
      if (port.tx_armed) return;
      port.tx_armed = true;
      events.push(port.busy_until, EventKind::TX_DONE, id);
      return;
    }
    if (port.pfc_due != 0) {
      send_pfc(id, port);
      continue;
    }
    const std::uint8_t priority = port.egress.choose(pool);
    const bool at_switch = is_switch(port.node);
    if (at_switch && !histograms.empty()) note_queue(id, port, priority);
    const FrameIndex frame = port.egress.pop(pool, priority);
    if (!at_switch) {
      if (host_of_node(port.node).nic.frame_left()) make_ready(port.node >> 1);
      launch(id, port, frame, priority);
      continue;
    }
    // Its buffer is freed once the transmitter is busy: that may resume the peer of this very port.
    Switch& sw = switch_of(port.node);
    const FrameMeta left = pool.meta(frame);
    if (mark(id, frame, sw)) launch(id, port, frame, priority);
    release(left, sw);
  }
}

void Network::Core::launch(PortId id, Port& port, FrameIndex frame, std::uint8_t priority) {
  const FrameMeta& meta = pool.meta(frame);
  PriorityCounters& count = counters[id].priority[priority];
  ++count.tx_packets;
  count.tx_bytes += meta.length;
  put_on_wire(id, port, frame);
}

void Network::Core::put_on_wire(PortId id, Port& port, FrameIndex frame) {
  ++hops;
  const SimTime end = now + port.line.time(pool.meta(frame).length + kWireOverheadBytes);
  port.busy_until = end;
  if (port.special) [[unlikely]]
    return put_on_special_wire(id, port, frame, end + port.delay);
  put_in_flight(id, port, frame, end + port.delay);
}

void Network::Core::put_on_special_wire(PortId id, Port& port, FrameIndex frame, SimTime arrives) {
  if (port.tap != nullptr) port.tap->on_frame(now, id, TapDirection::TX, pool.view(frame));
  if (!port.up) return drop(id, frame, pool.meta(frame).priority, DropCause::LINK_DOWN);
  if (port.faulty) return inject(id, port, frame, arrives);
  put_in_flight(id, port, frame, arrives);
}

void Network::Core::put_in_flight(PortId id, Port& port, FrameIndex frame, SimTime arrives) {
  pool.meta(frame).arrives = arrives;
  if (port.flight.empty()) events.push(arrives, EventKind::ARRIVE, id);
  pool.push(port.flight, frame);
}

void Network::Core::drop(PortId id, FrameIndex frame, std::uint8_t priority, DropCause cause) {
  ++counters[id].priority[priority].drops[static_cast<std::size_t>(cause)];
  pool.give_back(frame);
}

void Network::Core::note_queue(PortId id, const Port& port, std::uint8_t priority) {
  histograms[id][priority].note(now, port.egress.queues[priority].bytes);
}

}  // namespace roce::fabric
