// Many hosts and QPs, and no allocation once a network has warmed up.
#include <catch2/catch.hpp>
#include <deque>

#include "fabric/endpoints.hpp"
#include "fabric/raw.hpp"
#include "fabric/topology.hpp"
#include "support/no_allocation.hpp"

using namespace roce;
using namespace roce::fabric;
using namespace roce::test;

TEST_CASE("256 hosts with 2,048 QPs finish an all-to-some through leaves and spines") {
  LeafSpineConfig config;
  config.leaves = 16;
  config.spines = 4;
  config.hosts_per_leaf = 16;
  config.fabric_link.rate = Rate::gbps(400);
  Network network = leaf_spine(config).value();
  std::deque<Endpoint> all;
  constexpr std::uint32_t kHosts = 256, kQps = 4, kBytes = 8192;
  for (HostId host = 0; host < kHosts; ++host) {
    Endpoint& endpoint = all.emplace_back(network, host, (kQps + 1) * kBytes);
    fill_pattern({endpoint.buffer.data() + kQps * kBytes, kBytes}, host);
  }
  for (HostId host = 0; host < kHosts; ++host)
    for (std::uint32_t i = 0; i < kQps; ++i)
      all[host].write_to(all[(host + 1 + 61 * i) % kHosts],
                         {.count = 2, .bytes = kBytes, .from = kQps * kBytes, .to = i * kBytes});
  network.run_until(Instant::from_ns(2'000'000));
  for (HostId host = 0; host < kHosts; ++host) {
    CHECK(all[host].done());
    CHECK(all[host].clean());
    for (std::uint32_t i = 0; i < kQps; ++i) {
      const auto& to = all[(host + 1 + 61 * i) % kHosts].buffer;
      const auto& from = all[host].buffer;
      CHECK(std::equal(from.begin() + kQps * kBytes, from.end(), to.begin() + i * kBytes));
    }
  }
  CHECK(network.frames().exhausted == 0);
}

TEST_CASE("A warm network allocates nothing, whatever marks, pauses and faults there are") {
  StarConfig config;
  config.hosts = 5;
  config.fabric_switch.buffer.lossless = {100'000, 0};
  config.fabric_switch.ecn.line[3] = RedLine{10'000, 100'000, 0.2};
  Network network = star(config).value();
  network.add_fault(parse_fault_rule("drop:rate=0.001").value());
  network.add_fault(parse_fault_rule("reorder:rate=0.001").value());
  network.add_fault(parse_fault_rule("duplicate:rate=0.001").value());
  std::deque<Endpoint> all;
  for (HostId host = 0; host < 5; ++host) all.emplace_back(network, host, 1 << 16);
  for (HostId host = 1; host < 5; ++host)
    all[host].write_to(all[0], {.count = ~std::uint64_t{0}, .bytes = 1 << 16, .timeout = 6});
  network.run_until(Instant::from_ns(3'000'000));
  const std::uint64_t before = NoAllocation::violations();
  const std::uint64_t hops = network.packet_hops();
  {
    const NoAllocation guard;
    network.run_until(Instant::from_ns(6'000'000));
  }
  CHECK(NoAllocation::violations() == before);
  CHECK(network.packet_hops() > hops + 10'000);
  CHECK(network.counters(network.host_nic(1)).priority[3].rx_pause > 0);
  CHECK(network.counters(network.peer_of(network.host_nic(0))).priority[3].ecn_marked > 0);
}

TEST_CASE("Hosts that were introduced know each other's MACs and never ask") {
  StarConfig config;
  config.hosts = 3;
  Network network = star(config).value();
  Endpoint a{network, 0, 64}, b{network, 1, 64};
  const HostId others[] = {1, 2};
  network.introduce(0, others);
  for (const HostId other : others)
    CHECK(a.worker.resolve(0, Network::host_address(other).address,
                           Instant::from_ns(100'000'000'000)) == Network::host_mac(other));
  network.run_until(Instant::from_ns(1'000'000));
  CHECK(a.worker.worker_counters().arp_tx == 0);
  CHECK(network.packet_hops() == 0);
}
