// The loop: what happens next, and a host's turn.
#include <algorithm>

#include "fabric/network_core.hpp"

namespace roce::fabric {

void Network::Core::run(SimTime end) {
  stopping = false;
  while (!stopping) {
    if (ready_at < ready_hosts.size()) {
      turn_host(ready_hosts[ready_at++]);
      continue;
    }
    ready_hosts.clear();
    ready_at = 0;
    const SimTime event = events.empty() ? SimTime::never() : events.earliest();
    const SimTime timer = std::max(SimTime::from(host_timers.earliest()), now);
    const SimTime next = std::min(event, timer);
    if (next > end || next == SimTime::never()) return;
    now = next;
    if (event <= timer) {
      dispatch(events.pop());
      continue;
    }
    HostId host = 0;
    if (host_timers.take_due(now.instant(), host)) make_ready(host);
  }
}

void Network::Core::dispatch(const Event& event) {
  ++happened;
  switch (event.kind()) {
    case EventKind::TX_DONE: {
      Port& port = ports[event.target];
      port.tx_armed = false;
      return kick(event.target, port);
    }
    case EventKind::ARRIVE:
      return arrive_in_order(event.target);
    case EventKind::ARRIVE_LATE:
      return arrive(ports[event.target], event.target, event.argument);
    case EventKind::PFC_EFFECT:
      return obey_pfc(event.target, event.argument);
    case EventKind::PAUSE_END:
      return end_pause(event.target, static_cast<std::uint8_t>(event.argument));
    case EventKind::PFC_REFRESH:
      return refresh_pfc(event.target);
    case EventKind::HOST_WAKE:
      hosts[event.target].wake_armed = false;
      return make_ready(event.target);
    case EventKind::HOST_DRAIN:
      return drain(event.target);
    case EventKind::WATCHDOG:
      return watch(event.target);
    case EventKind::FAULT_TIMER:
      return release_held(event.target);
    case EventKind::ACTION:
      return act(event.argument);
  }
}

void Network::Core::make_ready(HostId id) {
  Host& host = hosts[id];
  if (host.ready || (host.worker == nullptr && host.application == nullptr)) return;
  host.ready = true;
  ready_hosts.push_back(id);
}

void Network::Core::turn_host(HostId id) {
  Host& host = hosts[id];
  const Instant at = now.instant();
  host.ready = false;
  bool busy = true;
  while (busy) {
    busy = host.worker != nullptr && host.worker->turn(at);
    if (host.application != nullptr) busy |= host.application->step(at);
  }
  Instant next = host.worker != nullptr ? host.worker->next_deadline() : Instant::never();
  if (host.application != nullptr) next = std::min(next, host.application->next_step());
  // What is due already could not be done in this turn; time must not stand still for it.
  if (!next.is_never()) host_timers.set(id, std::max(next, at + Duration::nanoseconds(1)));
}

}  // namespace roce::fabric
