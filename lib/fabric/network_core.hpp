// Network::Core: the state behind a Network. Known to the sources of this module only. Ports of
// hosts and switches are alike on the wire and stand in one array; what only switches have stands
// beside.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "engine/deadline_queue.hpp"
#include "fabric/classify.hpp"
#include "fabric/egress.hpp"
#include "fabric/event_queue.hpp"
#include "fabric/fault_matcher.hpp"
#include "fabric/frame_pool.hpp"
#include "fabric/host_nic.hpp"
#include "fabric/network.hpp"
#include "fabric/port_state.hpp"
#include "fabric/switch_buffer.hpp"

namespace roce::fabric {

/// A frame that a REORDER rule keeps back.
struct HeldFrame {
  FrameIndex frame = kNone;
  std::uint32_t frames_left = 0;
  SimTime until;
};
struct PortFaults {
  std::vector<std::uint32_t> rules;
  std::vector<HeldFrame> held;
};
/// What of a packet a fault's record tells; noted before the packet is changed.
struct FaultIdentity {
  wire::Opcode opcode{};
  Qpn dest_qpn;
  Psn psn;
  IpAddress source, destination;
};
/// Something scheduled: a link that changes, or a storm.
struct Action {
  FaultKind kind = FaultKind::LINK_DOWN;
  PortId port = 0;
  StormConfig storm{};
  bool begun = false;
};

struct Route {
  std::uint32_t first = 0;  ///< in Switch::next_hops
  std::uint32_t count = 0;
};

struct Switch {
  explicit Switch(const SwitchConfig& c) : config(c), prng(1) {}
  SwitchConfig config;
  SwitchBuffer buffer;
  Prng prng;
  std::uint32_t salt = 0;               ///< of ECMP
  std::vector<std::uint16_t> route_of;  ///< by destination host; index in routes
  std::vector<Route> routes;            ///< the first leads nowhere
  std::vector<PortId> next_hops;
  std::vector<PortId> ports;
  bool watchdog_armed = false;
};

struct Host {
  Host(HostConfig c, engine::PortInfo info, Network::Core& core, HostId id)
      : config(std::move(c)), nic(core, id, std::move(info)) {}
  HostConfig config;
  HostNic nic;
  engine::Worker* worker = nullptr;
  HostApplication* application = nullptr;
  PortId port = kNone;
  bool ready = false;  ///< stands in Core::ready_hosts
  bool wake_armed = false;
  // A slow reader's buffer.
  EgressQueue rx_buffer;
  std::array<std::uint64_t, kPriorities> rx_bytes{};
  std::uint64_t rx_limit = 0;
  Serialiser drain;
  bool draining = false;
};

class Network::Core {
 public:
  explicit Core(const NetworkConfig& network_config);

  // build.cpp
  [[nodiscard]] Result<void> build();
  [[nodiscard]] std::string node_name(NodeId node) const;
  [[nodiscard]] const std::vector<PortId>& ports_of(NodeId node) const;

  // run.cpp
  void run(SimTime end);
  void dispatch(const Event& event);
  void turn_host(HostId id);
  void make_ready(HostId id);

  // transmit.cpp
  /// Starts the next frame when the transmitter is free, else sees to it that it starts then.
  void kick(PortId id, Port& port);
  void enqueue(Port& port, FrameIndex frame, std::uint8_t priority);
  void launch(PortId id, Port& port, FrameIndex frame, std::uint8_t priority);
  void put_on_wire(PortId id, Port& port, FrameIndex frame);
  void put_on_special_wire(PortId id, Port& port, FrameIndex frame, SimTime arrives);
  void drop(PortId id, FrameIndex frame, std::uint8_t priority, DropCause cause);
  /// Adds to the histogram what the queue was since its last change, before it changes.
  void note_queue(PortId id, const Port& port, std::uint8_t priority);

  // receive.cpp
  void arrive_in_order(PortId from);
  void arrive(Port& sender, PortId from, FrameIndex frame);
  /// False when it does not: the link went down under it.
  [[nodiscard]] bool reaches(const Port& sender, PortId from, FrameIndex frame);
  void deliver(Host& host, HostId id, PortId port, FrameIndex frame);
  void drain(HostId id);
  void wake_for_rx(HostId id);
  void forward(PortId in, NodeId node, FrameIndex frame);
  [[nodiscard]] bool store(Switch& sw, PortId in, PortId out, FrameIndex frame);
  /// Frees what a frame occupied in the switch that it leaves.
  void release(const FrameMeta& meta, Switch& sw);
  /// False when the frame is not to be sent after all.
  [[nodiscard]] bool mark(PortId id, FrameIndex frame, Switch& sw);

  // flow_control.cpp
  void stop_peer(PortId id, std::uint8_t classes);
  void resume_peer(PortId id, std::uint8_t classes);
  void send_pfc(PortId id, Port& port);
  void receive_pfc(PortId id, FrameIndex frame);
  void obey_pfc(PortId id, FrameIndex frame);
  void pause(PortId id, Port& port, std::uint8_t priority, std::uint32_t quanta);
  void unpause(PortId id, Port& port, std::uint8_t priority);
  void end_pause(PortId id, std::uint8_t priority);
  void refresh_pfc(PortId id);

  // faults.cpp
  static constexpr std::size_t kMostHeld = 128;
  std::uint32_t add_fault(FaultRule rule, std::span<const PortId> places);
  void log_fault(const FaultRecord& record);
  void inject(PortId id, Port& port, FrameIndex frame, SimTime arrives);
  [[nodiscard]] bool apply(PortId id, Port& port, FrameIndex frame, SimTime arrives,
                           FaultMatcher& matcher, const wire::Packet& packet);
  void put_in_flight(PortId id, Port& port, FrameIndex frame, SimTime arrives);
  void pass_held(PortId id, Port& port, FrameIndex frame, SimTime arrives);
  void release_held(PortId id);
  void schedule(SimTime time, const Action& action);
  void act(std::uint32_t index);
  void set_link(PortId first, bool up);
  void blow(std::uint32_t index);

  // watchdog.cpp
  void arm_watchdog(NodeId node);
  void watch(SwitchId id);
  [[nodiscard]] bool watch_queue(Switch& sw, PortId id, std::uint8_t priority);
  void begin_storm(Switch& sw, PortId id, std::uint8_t priority);
  void end_storm(PortId id, std::uint8_t priority);

  [[nodiscard]] Switch& switch_of(NodeId node) { return switches[node >> 1]; }
  [[nodiscard]] Host& host_of_node(NodeId node) { return hosts[node >> 1]; }

  NetworkConfig config;
  SimTime now;
  bool stopping = false;
  bool built = false;
  std::uint64_t hops = 0;
  std::uint64_t happened = 0;
  EventQueue events;
  FramePool pool;
  std::vector<Port> ports;
  std::vector<PortCounters> counters;
  std::vector<SwitchPort> switch_ports;                             ///< by port; unused for hosts'
  std::vector<std::array<QueueHistogram, kPriorities>> histograms;  ///< likewise; may be empty
  std::deque<Switch> switches;
  std::deque<Host> hosts;
  std::vector<std::vector<PortId>> host_ports;
  std::vector<HostId> ready_hosts;  ///< to be turned before the next event
  std::size_t ready_at = 0;
  engine::DeadlineQueue host_timers{0};
  std::vector<FaultMatcher> fault_rules;
  std::vector<PortFaults> port_faults;  ///< by port; empty without rules
  std::vector<FaultRecord> fault_log;
  std::uint64_t faults_unlogged = 0;
  FaultIdentity fault_identity;
  std::vector<Action> actions;

 private:
  [[nodiscard]] Result<void> check() const;
  void configure_host(HostId id);
  [[nodiscard]] Result<void> configure_switch(SwitchId id);
  void find_routes();
  [[nodiscard]] std::uint16_t route_to(HostId host, SwitchId id,
                                       const std::vector<std::uint32_t>& distance,
                                       std::map<std::vector<PortId>, std::uint16_t>& known);
};

}  // namespace roce::fabric
