// Faults at work: packets that meet a rule when they are put on a wire, links that go down, storms.
#include "fabric/faults.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "fabric/network_core.hpp"

namespace roce::fabric {
namespace {

/// How long REORDER waits for later frames.
constexpr Picoseconds kReorderPatience = to_ps(Duration::milliseconds(1));

}  // namespace

std::uint32_t Network::Core::add_fault(FaultRule rule, std::span<const PortId> places) {
  const auto id = static_cast<std::uint32_t>(fault_rules.size());
  fault_rules.emplace_back(std::move(rule), config.seed * 1'000'003 + id);
  if (port_faults.empty()) {
    port_faults.resize(ports.size());
    fault_log.reserve(config.fault_log);
  }
  for (const PortId port : places) {
    ports[port].faulty = ports[port].special = true;
    port_faults[port].rules.push_back(id);
    port_faults[port].held.reserve(kMostHeld);
  }
  return id;
}

void Network::Core::log_fault(const FaultRecord& record) {
  if (fault_log.size() < config.fault_log)
    fault_log.push_back(record);
  else
    ++faults_unlogged;
}

/// Puts a frame on the wire, or does to it what the first rule says that picks it.
void Network::Core::inject(PortId id, Port& port, FrameIndex frame, SimTime arrives) {
  wire::Packet packet;
  if (wire::parse(pool.view(frame), wire::IcrcCheck::SKIP, packet) != wire::Verdict::ROCE)
    return pass_held(id, port, frame, arrives);
  FaultMatcher* picked = nullptr;
  std::uint32_t rule = 0;
  // Each rule sees each packet, so that its counts do not depend on the rules before it.
  for (const std::uint32_t i : port_faults[id].rules)
    if (fault_rules[i].meets(packet) && picked == nullptr) {
      picked = &fault_rules[i];
      rule = i;
    }
  if (picked == nullptr) return pass_held(id, port, frame, arrives);
  if (!apply(id, port, frame, arrives, *picked, packet)) {
    ++picked->counts.no_room;
    return pass_held(id, port, frame, arrives);
  }
  ++picked->counts.picked;
  log_fault({now, FaultKind::PACKET, id, rule, picked->rule().action,
             static_cast<std::uint8_t>(fault_identity.opcode), fault_identity.dest_qpn,
             fault_identity.psn, fault_identity.source, fault_identity.destination});
}

/// False when it cannot be done; nothing has happened then.
bool Network::Core::apply(PortId id, Port& port, FrameIndex frame, SimTime arrives,
                          FaultMatcher& matcher, const wire::Packet& packet) {
  FrameMeta& meta = pool.meta(frame);
  std::vector<HeldFrame>& held = port_faults[id].held;
  fault_identity = {packet.opcode, packet.dest_qpn(), packet.psn(), packet.source_ip(),
                    packet.destination_ip()};
  switch (matcher.rule().action) {
    case FaultAction::DROP:
      drop(id, frame, meta.priority, DropCause::FAULT);
      return true;
    case FaultAction::CORRUPT:
      matcher.corrupt(pool.data(frame), packet);
      pass_held(id, port, frame, arrives);
      return true;
    case FaultAction::MARK:
      if (!is_ect(meta)) return false;
      mark_congestion(pool.data(frame), meta);
      pass_held(id, port, frame, arrives);
      return true;
    case FaultAction::DUPLICATE: {
      const FrameIndex twin = pool.take();
      if (twin == kNone) return false;
      std::copy_n(pool.data(frame), meta.length, pool.data(twin));
      pool.meta(twin) = meta;
      put_in_flight(id, port, frame, arrives);
      pass_held(id, port, twin, arrives);
      return true;
    }
    case FaultAction::DELAY:
      events.push(arrives + to_ps(matcher.rule().by_time), EventKind::ARRIVE_LATE, id, frame);
      return true;
    case FaultAction::REORDER:
      if (held.size() == kMostHeld) return false;
      held.push_back({frame, matcher.rule().by_frames, now + kReorderPatience});
      events.push(now + kReorderPatience, EventKind::FAULT_TIMER, id);
      return true;
  }
  return false;
}

/// Sends a frame on, and right behind it what waited for this many frames to pass.
void Network::Core::pass_held(PortId id, Port& port, FrameIndex frame, SimTime arrives) {
  put_in_flight(id, port, frame, arrives);
  std::erase_if(port_faults[id].held, [&](HeldFrame& held) {
    if (--held.frames_left != 0) return false;
    put_in_flight(id, port, held.frame, arrives);
    return true;
  });
}

/// Lets go what has waited for later frames for too long.
void Network::Core::release_held(PortId id) {
  Port& port = ports[id];
  std::erase_if(port_faults[id].held, [&](const HeldFrame& held) {
    if (held.until > now) return false;
    events.push(now + port.delay, EventKind::ARRIVE_LATE, id, held.frame);
    return true;
  });
}

void Network::Core::schedule(SimTime time, const Action& action) {
  actions.push_back(action);
  events.push(std::max(time, now), EventKind::ACTION, 0,
              static_cast<std::uint32_t>(actions.size() - 1));
}

void Network::Core::act(std::uint32_t index) {
  Action& action = actions[index];
  switch (action.kind) {
    case FaultKind::LINK_DOWN:
    case FaultKind::LINK_UP:
      set_link(action.port, action.kind == FaultKind::LINK_UP);
      log_fault({now, action.kind, action.port, 0, {}, 0, {}, {}, {}, {}});
      return;
    default:
      return blow(index);
  }
}

void Network::Core::set_link(PortId first, bool up) {
  for (const PortId id : {first, ports[first].peer}) {
    Port& port = ports[id];
    port.up = up;
    port.special = true;
    if (!up) port.went_down = now;
    // A link that comes up knows of no pause, and its peer must hear of ours.
    for (std::uint8_t priority = 0; priority < kPriorities; ++priority)
      if ((port.egress.paused & bit_of(priority)) != 0) {
        port.pause_until[priority] = now;
        unpause(id, port, priority);
      }
    if (up) port.pfc_due |= port.xoff;
    kick(id, port);
  }
}

/// One gust of a storm; the event comes again until its end.
void Network::Core::blow(std::uint32_t index) {
  Action& action = actions[index];
  Port& port = ports[action.port];
  const std::uint8_t classes = action.storm.classes;
  const SimTime end = SimTime::from(action.storm.start + action.storm.duration);
  if (now < end) {
    if (!action.begun)
      log_fault({now, FaultKind::STORM_BEGIN, action.port, 0, {}, 0, {}, {}, {}, {}});
    action.begun = true;
    port.storm |= classes;
    port.storm_quanta = action.storm.quanta;
    port.pfc_due |= classes;
    const auto period = static_cast<Picoseconds>(
        static_cast<double>(port.line.quanta(action.storm.quanta)) * action.storm.refresh);
    events.push(std::min(now + std::max<Picoseconds>(period, 1'000), end), EventKind::ACTION, 0,
                index);
    return kick(action.port, port);
  }
  if ((port.pfc_due & classes) != 0 && now < port.busy_until) {
    events.push(port.busy_until + 1, EventKind::ACTION, 0, index);  // the last gust still waits
    return;
  }
  port.storm &= static_cast<std::uint8_t>(~classes);
  log_fault({now, FaultKind::STORM_END, action.port, 0, {}, 0, {}, {}, {}, {}});
}

}  // namespace roce::fabric
