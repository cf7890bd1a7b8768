#include "fabric/network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "fabric/network_core.hpp"

namespace roce::fabric {

Network::Network(const NetworkConfig& config) : core_(std::make_unique<Core>(config)) {}
Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

HostId Network::add_host(const HostConfig& config) {
  const auto id = static_cast<HostId>(core_->hosts.size());
  ROCE_CHECK(id < 65534 && !core_->built);
  engine::PortInfo info;
  info.name = config.name.empty() ? fmt::format("host{}", id) : config.name;
  info.mac = host_mac(id);
  info.mtu = config.mtu;
  core_->hosts.emplace_back(config, std::move(info), *core_, id);
  core_->host_ports.emplace_back();
  return id;
}

SwitchId Network::add_switch(const SwitchConfig& config) {
  ROCE_CHECK(!core_->built);
  core_->switches.emplace_back(config);
  return static_cast<SwitchId>(core_->switches.size() - 1);
}

LinkId Network::connect(NodeId a, NodeId b, const LinkConfig& link) {
  ROCE_CHECK(!core_->built);
  const auto first = static_cast<PortId>(core_->ports.size());
  for (const NodeId node : {a, b}) {
    auto& list = is_switch(node) ? core_->switch_of(node).ports : core_->host_ports.at(node >> 1);
    Port port;
    port.node = node;
    port.index = static_cast<std::uint32_t>(list.size());
    port.line = Serialiser{link.rate};
    port.delay = to_ps(link.delay);
    port.response = pfc_response(link);
    port.link = link;
    list.push_back(static_cast<PortId>(core_->ports.size()));
    port.peer = list.back() == first ? first + 1 : first;
    port.peer_node = node == a ? b : a;
    core_->ports.push_back(port);
  }
  return first / 2;
}

Result<void> Network::build() {
  return core_->build();
}

std::size_t Network::host_count() const {
  return core_->hosts.size();
}
std::size_t Network::switch_count() const {
  return core_->switches.size();
}

engine::PacketIo& Network::host_port(HostId host) {
  return core_->hosts.at(host).nic;
}

MacAddress Network::host_mac(HostId host) {
  return fabric::host_mac(host);
}

IpPrefix Network::host_address(HostId host) {
  const std::uint32_t low =
      host + 1;  // 65,536 hosts fit into 198.18.0.0/15 behind the network's own
  return {IpAddress::v4(198, static_cast<std::uint8_t>(18 + (low >> 16)),
                        static_cast<std::uint8_t>(low >> 8), static_cast<std::uint8_t>(low)),
          15};
}

engine::InterfaceConfig Network::host_interface(HostId host) {
  return {host_mac(host), {host_address(host)}, {}, {}, engine::NeighbourDuty::OURS};
}

void Network::attach(HostId host, engine::Worker& worker, HostApplication* application) {
  ROCE_CHECK(core_->built);
  core_->hosts.at(host).worker = &worker;
  core_->hosts.at(host).application = application;
  core_->make_ready(host);
}

void Network::attach(HostId host, HostApplication& application) {
  ROCE_CHECK(core_->built);
  core_->hosts.at(host).worker = nullptr;
  core_->hosts.at(host).application = &application;
  core_->make_ready(host);
}

void Network::introduce(HostId host, std::span<const HostId> others) {
  engine::Worker* worker = core_->hosts.at(host).worker;
  ROCE_CHECK(worker != nullptr);
  for (const HostId other : others)
    worker->add_neighbour(0, host_address(other).address, host_mac(other));
}

void Network::wake(HostId host) {
  core_->make_ready(host);
}

SimTime Network::now() const {
  return core_->now;
}

void Network::run_until(Instant end) {
  ROCE_CHECK(core_->built);
  const SimTime until = SimTime::from(end);
  core_->run(until);
  if (!core_->stopping && until != SimTime::never()) core_->now = std::max(core_->now, until);
}

bool Network::run_until_idle(Instant limit) {
  ROCE_CHECK(core_->built);
  core_->run(SimTime::from(limit));
  return core_->events.empty() && core_->host_timers.earliest().is_never();
}

void Network::stop() {
  core_->stopping = true;
}

std::uint64_t Network::events() const {
  return core_->happened;
}
std::uint64_t Network::packet_hops() const {
  return core_->hops;
}

PortId Network::port(PortName name) const {
  return core_->ports_of(name.node).at(name.index);
}
PortId Network::peer_of(PortId port) const {
  return core_->ports.at(port).peer;
}
Rate Network::rate_of(PortId port) const {
  return core_->ports.at(port).link.rate;
}
std::size_t Network::port_count() const {
  return core_->ports.size();
}
std::size_t Network::ports_of(NodeId node) const {
  return core_->ports_of(node).size();
}

std::string Network::name_of(PortId port) const {
  const Port& at = core_->ports.at(port);
  const std::string name = core_->node_name(at.node);
  return is_switch(at.node) ? fmt::format("{}.{}", name, at.index) : name;
}

PortCounters Network::counters(PortId port) const {
  PortCounters counters = core_->counters.at(port);
  const Port& at = core_->ports[port];
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    counters.priority[priority].max_queue_bytes = at.egress.queues[priority].most_bytes;
    if ((at.egress.paused & bit_of(priority)) != 0)
      counters.priority[priority].paused += core_->now - at.pause_began[priority];
  }
  return counters;
}

std::uint64_t Network::queue_bytes(PortId port, std::uint8_t priority) const {
  return core_->ports.at(port).egress.queues.at(priority).bytes;
}

const QueueHistogram* Network::histogram(PortId port, std::uint8_t priority) const {
  const Port& at = core_->ports.at(port);
  if (core_->histograms.empty() || !is_switch(at.node)) return nullptr;
  core_->note_queue(port, at, priority);
  return &core_->histograms[port].at(priority);
}

std::uint64_t Network::headroom_bytes(PortId port) const {
  return core_->switch_ports.at(port).headroom_limit;
}

FramePoolUse Network::frames() const {
  const FramePool& pool = core_->pool;
  return {pool.capacity(), pool.in_use(), pool.most_used(), pool.exhausted()};
}

std::uint32_t Network::add_fault(const FaultRule& rule, std::optional<HostId> host) {
  ROCE_CHECK(core_->built);
  std::vector<PortId> places;
  const HostId first = host.value_or(0);
  const HostId end = host ? *host + 1 : static_cast<HostId>(core_->hosts.size());
  for (HostId id = first; id < end; ++id) {
    const PortId nic = core_->hosts.at(id).port;
    places.push_back(rule.direction == FaultDirection::TX ? nic : core_->ports[nic].peer);
  }
  return core_->add_fault(rule, places);
}

std::uint32_t Network::add_port_fault(const FaultRule& rule, PortId port) {
  ROCE_CHECK(core_->built && port < core_->ports.size());
  return core_->add_fault(rule, {&port, 1});
}

void Network::schedule_link_flap(PortId port, Instant from, Duration span) {
  ROCE_CHECK(port < core_->ports.size());
  core_->schedule(SimTime::from(from), {FaultKind::LINK_DOWN, port, {}, false});
  core_->schedule(SimTime::from(from + span), {FaultKind::LINK_UP, port, {}, false});
}

void Network::schedule_storm(PortId port, const StormConfig& storm) {
  ROCE_CHECK(port < core_->ports.size() && storm.refresh > 0);
  core_->schedule(SimTime::from(storm.start), {FaultKind::STORM_BEGIN, port, storm, false});
}

FaultCounts Network::fault_counts(std::uint32_t rule) const {
  return core_->fault_rules.at(rule).counts;
}
std::span<const FaultRecord> Network::fault_log() const {
  return core_->fault_log;
}
std::uint64_t Network::faults_unlogged() const {
  return core_->faults_unlogged;
}

void Network::set_tap(PortId port, Tap* tap) {
  Port& at = core_->ports.at(port);
  at.tap = tap;
  if (tap != nullptr) at.special = core_->ports[at.peer].special = true;
}

}  // namespace roce::fabric
