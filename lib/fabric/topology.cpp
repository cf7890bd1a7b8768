#include "fabric/topology.hpp"

#include <fmt/format.h>

namespace roce::fabric {
namespace {

constexpr std::uint32_t kMostHosts = 65534;

Result<void> check_hosts(std::uint64_t hosts) {
  if (hosts >= 1 && hosts <= kMostHosts) return {};
  return failure("topology", fmt::format("{} hosts are out of range", hosts),
                 fmt::format("a network has 1 to {}", kMostHosts));
}

SwitchConfig named(SwitchConfig config, std::string_view kind, std::uint32_t index) {
  if (config.name.empty()) config.name = kind;
  config.name += fmt::format("{}", index);
  // One seed for all switches would make them all choose the same of their paths.
  if (config.seed) *config.seed += index;
  return config;
}

Result<Network> built(Network network) {
  if (auto ok = network.build(); !ok) return tl::make_unexpected(ok.error());
  return network;
}

}  // namespace

Result<Network> star(const StarConfig& config) {
  if (auto ok = check_hosts(config.hosts); !ok) return tl::make_unexpected(ok.error());
  Network network{config.network};
  const SwitchId hub = network.add_switch(config.fabric_switch);
  for (std::uint32_t i = 0; i < config.hosts; ++i) {
    const HostId host = network.add_host(config.host);
    network.connect(Network::node_of_host(host), Network::node_of_switch(hub), config.link);
  }
  return built(std::move(network));
}

Result<Network> leaf_spine(const LeafSpineConfig& config) {
  if (auto ok = check_hosts(std::uint64_t{config.leaves} * config.hosts_per_leaf); !ok)
    return tl::make_unexpected(ok.error());
  if (config.rails == 0 || config.leaves % config.rails != 0)
    return failure(
        "topology",
        fmt::format("{} leaves cannot be divided into {} rails", config.leaves, config.rails),
        "make leaves a multiple of rails");
  if (config.leaves > 1 && (config.spines == 0 || config.links_per_spine == 0))
    return failure("topology", "nothing joins the leaves", "give at least one spine and link");
  Network network{config.network};
  for (std::uint32_t i = 0; i < config.leaves; ++i)
    network.add_switch(named(config.leaf, "leaf", i));
  for (std::uint32_t i = 0; i < config.spines; ++i)
    network.add_switch(named(config.spine, "spine", i));
  for (std::uint32_t i = 0; i < config.hosts(); ++i) {
    const HostId host = network.add_host(config.host);
    network.connect(Network::node_of_host(host), Network::node_of_switch(config.leaf_of(host)),
                    config.host_link);
  }
  for (std::uint32_t leaf = 0; leaf < config.leaves; ++leaf)
    for (std::uint32_t spine = 0; spine < config.spines; ++spine)
      for (std::uint32_t i = 0; i < config.links_per_spine; ++i)
        network.connect(Network::node_of_switch(leaf),
                        Network::node_of_switch(config.leaves + spine), config.fabric_link);
  return built(std::move(network));
}

Result<Network> chain(const ChainConfig& config) {
  if (auto ok = check_hosts(std::uint64_t{config.switches} * config.hosts_per_switch); !ok)
    return tl::make_unexpected(ok.error());
  Network network{config.network};
  for (std::uint32_t i = 0; i < config.switches; ++i)
    network.add_switch(named(config.fabric_switch, "switch", i));
  for (std::uint32_t i = 0; i < config.switches * config.hosts_per_switch; ++i) {
    const HostId host = network.add_host(config.host);
    network.connect(Network::node_of_host(host),
                    Network::node_of_switch(i / config.hosts_per_switch), config.host_link);
  }
  for (std::uint32_t i = 0; i + 1 < config.switches; ++i)
    network.connect(Network::node_of_switch(i), Network::node_of_switch(i + 1), config.fabric_link);
  return built(std::move(network));
}

}  // namespace roce::fabric
