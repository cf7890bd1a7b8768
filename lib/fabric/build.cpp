// Setting a network up: checks, shortest paths, division of the buffers.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fabric/network_core.hpp"

namespace roce::fabric {
namespace {

Result<void> check_switch(const SwitchConfig& config, const std::string& name) {
  for (const auto& line : config.ecn.line) {
    if (!line) continue;
    if (line->kmin_bytes > line->kmax_bytes)
      return failure(
          name,
          fmt::format("kmin_bytes {} is above kmax_bytes {}", line->kmin_bytes, line->kmax_bytes),
          "exchange them");
    if (!(line->pmax >= 0 && line->pmax <= 1))
      return failure(name, fmt::format("pmax {} is no probability", line->pmax), "give 0 to 1");
  }
  if (!(config.pfc.refresh > 0 && config.pfc.refresh < 1))
    return failure(name, fmt::format("pfc refresh {} is not between 0 and 1", config.pfc.refresh),
                   "0.5 says an XOFF again after half of its time");
  if (config.buffer.cell.bytes == 0)
    return failure(name, "buffer cells have no bytes", "1 counts bytes as they are");
  for (const Threshold& threshold : {config.buffer.lossless, config.buffer.lossy})
    if (!threshold.bytes && !(threshold.alpha > 0))
      return failure(name, fmt::format("alpha {} is not above 0", threshold.alpha),
                     "1/8 for lossless and 1 for lossy classes are usual");
  for (const auto& map : {std::span<const std::uint8_t>(config.priorities.dscp),
                          std::span<const std::uint8_t>(config.priorities.pcp)})
    if (std::ranges::any_of(map, [](std::uint8_t p) { return p >= kPriorities; }))
      return failure(name, "the priority map names a priority above 7", "there are 0 to 7");
  return {};
}

Result<void> check_host(const HostConfig& config, const std::string& name) {
  if (config.tx_queue_frames == 0 || config.tx_queue_frames > 1024)
    return failure(name, fmt::format("tx_queue_frames {} is out of range", config.tx_queue_frames),
                   "give 1 to 1024");
  if (config.mtu + std::size_t{18} > FramePool::kCapacity)
    return failure(name, fmt::format("mtu {} is too large", config.mtu),
                   fmt::format("the fabric's frames hold up to {}", FramePool::kCapacity - 18));
  if (config.pfc && config.pfc->xon_bytes >= config.pfc->xoff_bytes)
    return failure(name, "xon_bytes is not below xoff_bytes", "XON must come after XOFF");
  return {};
}

}  // namespace

Network::Core::Core(const NetworkConfig& network_config)
    : config(network_config), pool(network_config.frames) {}

std::string Network::Core::node_name(NodeId node) const {
  const std::uint32_t id = node >> 1;
  const std::string& name = is_switch(node) ? switches[id].config.name : hosts[id].config.name;
  if (!name.empty()) return name;
  return fmt::format("{}{}", is_switch(node) ? "switch" : "host", id);
}

const std::vector<PortId>& Network::Core::ports_of(NodeId node) const {
  return is_switch(node) ? switches[node >> 1].ports : host_ports[node >> 1];
}

Result<void> Network::Core::check() const {
  for (std::size_t i = 0; i < switches.size(); ++i)
    if (auto ok = check_switch(switches[i].config, node_name(static_cast<NodeId>(2 * i + 1))); !ok)
      return ok;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string name = node_name(static_cast<NodeId>(2 * i));
    if (auto ok = check_host(hosts[i].config, name); !ok) return ok;
    if (host_ports[i].size() != 1)
      return failure(name, fmt::format("a host has one link, not {}", host_ports[i].size()),
                     "use one host for each NIC");
  }
  return {};
}

Result<void> Network::Core::build() {
  if (built) return failure("network", "it is built already", "build() once");
  if (auto ok = check(); !ok) return ok;
  counters.resize(ports.size());
  switch_ports.resize(ports.size());
  if (config.queue_histograms) histograms.resize(ports.size());
  host_timers = engine::DeadlineQueue{static_cast<std::uint32_t>(hosts.size())};
  ready_hosts.reserve(2 * hosts.size() + 1);
  for (HostId id = 0; id < hosts.size(); ++id) configure_host(id);
  for (SwitchId id = 0; id < switches.size(); ++id) {
    Switch& sw = switches[id];
    Prng seeds{sw.config.seed.value_or(config.seed * 0x9e37'79b9 + id + 1)};
    sw.prng = Prng{seeds()};
    sw.salt = static_cast<std::uint32_t>(seeds());
    if (auto ok = configure_switch(id); !ok) return ok;
  }
  find_routes();
  built = true;
  return {};
}

void Network::Core::configure_host(HostId id) {
  Host& host = hosts[id];
  host.port = host_ports[id].front();
  Port& port = ports[host.port];
  port.egress.configure(host.config.scheduling, host.config.mtu + 18 + kWireOverheadBytes);
  port.honours = host.config.honours_pfc;
  port.quanta = host.config.pfc ? host.config.pfc->quanta : std::uint16_t{0xffff};
  port.refresh = std::max<Picoseconds>(port.line.quanta(port.quanta) / 2, 1);
  if (!host.config.pfc) return;
  host.drain = Serialiser{host.config.pfc->drain};
  host.rx_limit =
      host.config.pfc->xoff_bytes + pfc_headroom(port.link, host.config.mtu + std::uint32_t{18});
}

Result<void> Network::Core::configure_switch(SwitchId id) {
  Switch& sw = switches[id];
  const PfcConfig& pfc = sw.config.pfc;
  std::uint64_t reserved = 0;
  for (const PortId at : sw.ports) {
    Port& port = ports[at];
    port.egress.configure(sw.config.scheduling, pfc.max_frame_bytes + kWireOverheadBytes);
    port.honours = pfc.lossless;
    port.quanta = pfc.quanta;
    port.refresh = std::max<Picoseconds>(
        static_cast<Picoseconds>(static_cast<double>(port.line.quanta(pfc.quanta)) * pfc.refresh),
        1);
    const std::uint64_t headroom =
        pfc.headroom_bytes ? *pfc.headroom_bytes
                           : pfc_headroom(port.link, pfc.max_frame_bytes, sw.config.buffer.cell);
    switch_ports[at].headroom_limit = static_cast<std::uint32_t>(headroom);
    reserved += headroom * static_cast<std::uint64_t>(std::popcount(pfc.lossless));
  }
  if (reserved >= sw.config.buffer.total_bytes)
    return failure(node_name(2 * id + 1),
                   fmt::format("headroom of {} bytes leaves nothing of a buffer of {}", reserved,
                               sw.config.buffer.total_bytes),
                   "give a larger buffer, fewer lossless priorities, or shorter links");
  sw.buffer = SwitchBuffer{sw.config.buffer, sw.config.buffer.total_bytes - reserved};
  return {};
}

/// Equal-cost shortest paths from each switch to each host. Hosts do not forward.
void Network::Core::find_routes() {
  for (Switch& sw : switches) {
    sw.route_of.resize(hosts.size());
    sw.routes.emplace_back();
  }
  std::vector<std::map<std::vector<PortId>, std::uint16_t>> known(switches.size());
  std::vector<std::uint32_t> distance(switches.size());
  std::vector<SwitchId> reached;
  for (HostId host = 0; host < hosts.size(); ++host) {
    std::fill(distance.begin(), distance.end(), kNone);
    reached.clear();
    const NodeId first = ports[hosts[host].port].peer_node;
    if (!is_switch(first)) continue;
    distance[first >> 1] = 1;
    reached.push_back(first >> 1);
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const PortId port : switches[reached[i]].ports) {
        const NodeId peer = ports[port].peer_node;
        if (!is_switch(peer) || distance[peer >> 1] != kNone) continue;
        distance[peer >> 1] = distance[reached[i]] + 1;
        reached.push_back(peer >> 1);
      }
    for (const SwitchId id : reached)
      switches[id].route_of[host] = route_to(host, id, distance, known[id]);
  }
}

std::uint16_t Network::Core::route_to(HostId host, SwitchId id,
                                      const std::vector<std::uint32_t>& distance,
                                      std::map<std::vector<PortId>, std::uint16_t>& known) {
  Switch& sw = switches[id];
  std::vector<PortId> nearer;
  for (const PortId port : sw.ports) {
    const NodeId peer = ports[port].peer_node;
    if (is_switch(peer) ? distance[peer >> 1] + 1 == distance[id] : peer == 2 * host)
      nearer.push_back(port);
  }
  const auto [at, fresh] = known.try_emplace(nearer, static_cast<std::uint16_t>(sw.routes.size()));
  if (fresh) {
    sw.routes.push_back({static_cast<std::uint32_t>(sw.next_hops.size()),
                         static_cast<std::uint32_t>(nearer.size())});
    sw.next_hops.insert(sw.next_hops.end(), nearer.begin(), nearer.end());
  }
  return at->second;
}

}  // namespace roce::fabric
