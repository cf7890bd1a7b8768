// A frame's arrival: at a host's buffer, or at a switch, which finds its way, stores it and queues
// it.
#include <algorithm>

#include "fabric/network_core.hpp"

namespace roce::fabric {
namespace {

/// One of n, evenly, by a flow's hash and a switch's salt.
std::uint32_t choose(std::uint32_t hash, std::uint32_t salt, std::uint32_t n) {
  std::uint64_t mixed = (std::uint64_t{hash} ^ salt) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9;
  return static_cast<std::uint32_t>((mixed >> 32) * n >> 32);
}

}  // namespace

/// The first of a port's frames on the wire; its event is then the next one's.
void Network::Core::arrive_in_order(PortId from) {
  Port& sender = ports[from];
  const FrameIndex frame = pool.pop(sender.flight);
  if (!sender.flight.empty()) {
    const FrameMeta& next = pool.meta(sender.flight.head);
    events.push(next.arrives, EventKind::ARRIVE, from);
    pool.prefetch(next.next);  // whose time is asked for when this one has arrived
  }
  arrive(sender, from, frame);
}

void Network::Core::arrive(Port& sender, PortId from, FrameIndex frame) {
  if (sender.special && !reaches(sender, from, frame)) [[unlikely]]
    return;
  if (pool.meta(frame).flow_control) [[unlikely]]
    return receive_pfc(sender.peer, frame);
  if (is_switch(sender.peer_node)) return forward(sender.peer, sender.peer_node, frame);
  deliver(host_of_node(sender.peer_node), sender.peer_node >> 1, sender.peer, frame);
}

bool Network::Core::reaches(const Port& sender, PortId from, FrameIndex frame) {
  const FrameMeta& meta = pool.meta(frame);
  const Picoseconds on_wire = sender.line.time(meta.length + kWireOverheadBytes) + sender.delay;
  if (!sender.up || (sender.went_down.ps >= 0 && now - on_wire < sender.went_down)) {
    drop(from, frame, meta.priority, DropCause::LINK_DOWN);
    return false;
  }
  if (Tap* const tap = ports[sender.peer].tap)
    tap->on_frame(now, sender.peer, TapDirection::RX, pool.view(frame));
  return true;
}

void Network::Core::deliver(Host& host, HostId id, PortId port, FrameIndex frame) {
  FrameMeta& meta = pool.meta(frame);
  PriorityCounters& count = counters[port].priority[meta.priority];
  ++count.rx_packets;
  count.rx_bytes += meta.length;
  if (!host.config.pfc) {
    if (!host.nic.push_rx(frame)) return drop(port, frame, meta.priority, DropCause::RX_OVERFLOW);
    return wake_for_rx(id);
  }
  std::uint64_t& bytes = host.rx_bytes[meta.priority];
  if (bytes + meta.length > host.rx_limit)
    return drop(port, frame, meta.priority, DropCause::RX_OVERFLOW);
  bytes += meta.length;
  const std::uint8_t classes = bit_of(meta.priority) & host.config.pfc->priorities;
  if (classes != 0 && bytes > host.config.pfc->xoff_bytes) stop_peer(port, classes);
  host.rx_buffer.push(pool, frame);
  if (host.draining) return;
  host.draining = true;
  events.push(now + host.drain.time(meta.length), EventKind::HOST_DRAIN, id);
}

void Network::Core::drain(HostId id) {
  Host& host = hosts[id];
  const FrameIndex frame = host.rx_buffer.pop(pool);
  const FrameMeta& meta = pool.meta(frame);
  std::uint64_t& bytes = host.rx_bytes[meta.priority];
  bytes -= meta.length;
  const std::uint8_t classes = bit_of(meta.priority) & ports[host.port].xoff;
  if (classes != 0 && bytes <= host.config.pfc->xon_bytes) resume_peer(host.port, classes);
  if (!host.nic.push_rx(frame)) drop(host.port, frame, meta.priority, DropCause::RX_OVERFLOW);
  host.draining = !host.rx_buffer.empty();
  if (host.draining)
    events.push(now + host.drain.time(pool.meta(host.rx_buffer.frames.head).length),
                EventKind::HOST_DRAIN, id);
  wake_for_rx(id);
}

void Network::Core::wake_for_rx(HostId id) {
  Host& host = hosts[id];
  if (host.config.turn_delay <= Duration{}) return make_ready(id);
  if (host.wake_armed) return;
  host.wake_armed = true;
  events.push(now + to_ps(host.config.turn_delay), EventKind::HOST_WAKE, id);
}

void Network::Core::forward(PortId in, NodeId node, FrameIndex frame) {
  Switch& sw = switch_of(node);
  FrameMeta& meta = pool.meta(frame);
  const std::uint8_t priority = priority_of(sw.config.priorities, meta);
  meta.priority = priority;
  PriorityCounters& count = counters[in].priority[priority];
  ++count.rx_packets;
  count.rx_bytes += meta.length;

  const Route route =
      sw.routes[meta.destination < sw.route_of.size() ? sw.route_of[meta.destination] : 0];
  if (route.count == 0) return drop(in, frame, priority, DropCause::NO_ROUTE);
  const PortId out =
      sw.next_hops[route.count == 1 ? route.first
                                    : route.first + choose(meta.flow_hash, sw.salt, route.count)];
  Port& egress = ports[out];
  if ((egress.ignores & bit_of(priority)) != 0 &&
      sw.config.pfc.watchdog->action == StormAction::DROP)
    return drop(out, frame, priority, DropCause::WATCHDOG);
  if (!store(sw, in, out, frame)) return;
  if (!histograms.empty()) note_queue(out, egress, priority);
  enqueue(egress, frame, priority);
  kick(out, egress);
}

/// Accounts for a frame, or drops it.
bool Network::Core::store(Switch& sw, PortId in, PortId out, FrameIndex frame) {
  FrameMeta& meta = pool.meta(frame);
  const std::uint8_t priority = meta.priority;
  meta.in_port = in;
  const std::uint32_t charge = sw.buffer.cell().charge(meta.length);
  if ((sw.config.pfc.lossless & bit_of(priority)) == 0) {
    if (sw.buffer.admit_lossy(ports[out].egress.queues[priority].bytes, charge)) return true;
    drop(out, frame, priority, DropCause::BUFFER);
    return false;
  }
  SwitchPort& ingress = switch_ports[in];
  IngressClass& here = ingress.ingress[priority];
  const Admission admission = sw.buffer.admit_lossless(here, charge, ingress.headroom_limit);
  if (admission == Admission::SHARED) return true;
  ingress.stopped |= bit_of(priority);
  stop_peer(in, bit_of(priority));
  if (admission == Admission::REFUSED) {
    drop(in, frame, priority, DropCause::HEADROOM);
    return false;
  }
  std::uint64_t& most = counters[in].priority[priority].max_headroom_bytes;
  most = std::max<std::uint64_t>(most, here.headroom);
  return true;
}

void Network::Core::release(const FrameMeta& meta, Switch& sw) {
  const std::uint8_t bit = bit_of(meta.priority);
  const std::uint32_t charge = sw.buffer.cell().charge(meta.length);
  if ((sw.config.pfc.lossless & bit) == 0) return sw.buffer.release_lossy(charge);
  SwitchPort& ingress = switch_ports[meta.in_port];
  IngressClass& here = ingress.ingress[meta.priority];
  sw.buffer.release_lossless(here, charge);
  if ((ingress.stopped & bit) == 0 || !sw.buffer.may_resume(here, sw.config.pfc.xon_offset_bytes))
    return;
  ingress.stopped &= static_cast<std::uint8_t>(~bit);
  resume_peer(meta.in_port, bit);
}

bool Network::Core::mark(PortId id, FrameIndex frame, Switch& sw) {
  FrameMeta& meta = pool.meta(frame);
  const std::optional<RedLine>& line = sw.config.ecn.line[meta.priority];
  if (!line) return true;
  const std::uint64_t queued = ports[id].egress.queues[meta.priority].bytes;
  if (queued <= line->kmin_bytes) return true;
  if (queued <= line->kmax_bytes) {
    const double share = static_cast<double>(queued - line->kmin_bytes) /
                         static_cast<double>(line->kmax_bytes - line->kmin_bytes);
    if (!sw.prng.chance(line->pmax * share)) return true;
  }
  if (is_ect(meta)) {
    if (meta.ecn() != 3) {
      mark_congestion(pool.data(frame), meta);
      ++counters[id].priority[meta.priority].ecn_marked;
    }
    return true;
  }
  if (sw.config.ecn.not_ect == NotEct::PASS) return true;
  drop(id, frame, meta.priority, DropCause::RED);
  return false;
}

}  // namespace roce::fabric
