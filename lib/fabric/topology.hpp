// Builders of the usual networks. Each returns a Network that is built and waits for its workers.
#pragma once

#include "base/result.hpp"
#include "fabric/network.hpp"

namespace roce::fabric {

/// All hosts on one switch. Host h is on the switch's port h.
struct StarConfig {
  NetworkConfig network{};
  std::uint32_t hosts = 2;
  HostConfig host{};
  SwitchConfig fabric_switch{};
  LinkConfig link{};
};
[[nodiscard]] Result<Network> star(const StarConfig& config);

/// Leaves with hosts below and all spines above. Leaf l's ports: its hosts, then the spines in
/// order, links_per_spine each. With rails, the NICs of a server hang on as many different leaves:
/// leaves form groups of `rails`, and NIC r of each server of a group is on leaf r of it. Host ids
/// count NICs server by server: host = server * rails + rail.
struct LeafSpineConfig {
  NetworkConfig network{};
  std::uint32_t leaves = 2;
  std::uint32_t spines = 2;
  std::uint32_t hosts_per_leaf = 4;
  std::uint32_t rails = 1;  ///< divides leaves
  std::uint32_t links_per_spine = 1;
  HostConfig host{};
  SwitchConfig leaf{};
  SwitchConfig spine{};
  LinkConfig host_link{};
  LinkConfig fabric_link{};

  [[nodiscard]] std::uint32_t hosts() const { return leaves * hosts_per_leaf; }
  /// The leaf that a host is on.
  [[nodiscard]] std::uint32_t leaf_of(HostId id) const {
    const std::uint32_t group = id / rails / hosts_per_leaf;
    return group * rails + id % rails;
  }
  /// Rate into a leaf from its hosts over rate out to the spines; above 1 is oversubscribed.
  [[nodiscard]] double oversubscription() const {
    return hosts_per_leaf * host_link.rate.gbps() /
           (spines * links_per_spine * fabric_link.rate.gbps());
  }
};
[[nodiscard]] Result<Network> leaf_spine(const LeafSpineConfig& config);

/// Switches in a row, hosts_per_switch on each. Switch s's ports: its hosts, then the switch before
/// it, then the one behind it.
struct ChainConfig {
  NetworkConfig network{};
  std::uint32_t switches = 3;
  std::uint32_t hosts_per_switch = 1;
  HostConfig host{};
  SwitchConfig fabric_switch{};
  LinkConfig host_link{};
  LinkConfig fabric_link{};
};
[[nodiscard]] Result<Network> chain(const ChainConfig& config);

}  // namespace roce::fabric
