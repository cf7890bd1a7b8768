// What a hop costs: forwarding alone, and with real endpoints at both ends. Items are packet-hops:
// frames times links crossed.
//
//   fabric_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <array>
#include <cstring>
#include <deque>

#include "fabric/endpoints.hpp"
#include "fabric/raw.hpp"
#include "fabric/topology.hpp"

namespace roce::bench {
namespace {

using namespace roce::fabric;

/// Keeps its NIC busy with one frame over and over and throws away what comes. Only headers are
/// written: what building a payload costs is not the fabric's.
class Blaster final : public HostApplication {
 public:
  Blaster(Network& network, HostId host, HostId to, std::uint32_t length)
      : port_(network.host_port(host)),
        frame_(test::make_frame(host, to, {.length = length, .source_port = port_of(host)})) {
    network.attach(host, *this);
  }
  bool step(Instant now) override {
    std::array<engine::Frame, engine::kBurst> burst;
    while (const std::size_t n = port_.rx_burst(now, burst)) port_.rx_release({burst.data(), n});
    const std::size_t n = port_.tx_reserve(burst);
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(burst[i].data, frame_.data(), 64);
      burst[i].length = static_cast<std::uint32_t>(frame_.size());
    }
    return n > 0 && port_.tx_burst(now, {burst.data(), n}) > 0;
  }

 private:
  static std::uint16_t port_of(HostId host) {
    return static_cast<std::uint16_t>(0xc000 + host % 0x4000);
  }
  engine::PacketIo& port_;
  std::vector<std::byte> frame_;
};

LeafSpineConfig clos(std::uint32_t hosts) {
  LeafSpineConfig config;
  config.leaves = hosts / 16;
  config.spines = 8;
  config.links_per_spine = 2;
  config.hosts_per_leaf = 16;
  config.network.frames = 1 << 17;
  // Small buffers fill, and touch all the memory that they will, before the clock starts.
  config.leaf.buffer.total_bytes = 4 << 20;
  config.spine.buffer.total_bytes = 12 << 20;
  return config;
}

void report(benchmark::State& state, std::uint64_t hops, std::uint64_t events) {
  state.SetItemsProcessed(static_cast<std::int64_t>(hops));
  state.counters["events_per_hop"] = static_cast<double>(events) / static_cast<double>(hops);
}

/// Each host sends to the one half-way round: leaf, spine, leaf. Arguments: hosts, frame bytes.
void forwarding(benchmark::State& state) {
  const auto hosts = static_cast<std::uint32_t>(state.range(0));
  Network network = leaf_spine(clos(hosts)).value();
  std::deque<Blaster> blasters;
  for (HostId host = 0; host < hosts; ++host)
    blasters.emplace_back(network, host, (host + hosts / 2) % hosts,
                          static_cast<std::uint32_t>(state.range(1)));
  Instant end = Instant::from_ns(200'000);
  network.run_until(end);
  const std::uint64_t hops = network.packet_hops(), events = network.events();
  for (auto _ : state) {
    end = end + Duration::microseconds(2);
    network.run_until(end);
  }
  report(state, network.packet_hops() - hops, network.events() - events);
}
BENCHMARK(forwarding)
    ->Args({32, 64})
    ->Args({32, 1100})
    ->Args({32, 4150})
    ->Args({256, 1100})
    ->Args({1024, 1100})
    ->MinTime(2.0);

/// RC WRITEs of 64 KiB between real endpoints: leaf, spine, leaf; acknowledgements count as frames.
void endpoints(benchmark::State& state) {
  const auto hosts = static_cast<std::uint32_t>(state.range(0));
  constexpr std::uint32_t kBytes = 64 << 10;
  Network network = leaf_spine(clos(hosts)).value();
  std::deque<test::Endpoint> all;
  for (HostId host = 0; host < hosts; ++host) all.emplace_back(network, host, kBytes);
  for (HostId host = 0; host < hosts; ++host)
    all[host].write_to(all[(host + hosts / 2) % hosts],
                       {.count = ~std::uint64_t{0},
                        .bytes = kBytes,
                        .source_port = static_cast<std::uint16_t>(0xc000 + host)});
  Instant end = Instant::from_ns(50'000);
  network.run_until(end);
  const std::uint64_t hops = network.packet_hops(), events = network.events();
  for (auto _ : state) {
    end = end + Duration::microseconds(10);
    network.run_until(end);
  }
  report(state, network.packet_hops() - hops, network.events() - events);
}
BENCHMARK(endpoints)->Arg(32)->Arg(256)->MinTime(2.0);

/// What 1,024 hosts with some QPs each take, once all have sent. Counters: heap bytes of the fabric
/// and of the endpoint (worker, CQ, tables) for each host, and of a pair of connected QPs for each
/// QP.
void memory(benchmark::State& state) {
  constexpr std::uint32_t kHosts = 1024, kBytes = 4096;
  const auto qps = static_cast<std::uint32_t>(state.range(0));
  const auto used = [] { return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd); };
  for (auto _ : state) {
    const double empty = used();
    Network network = leaf_spine(clos(kHosts)).value();
    const double fabric = used();
    std::deque<test::Endpoint> all;
    congestion::NpConfig np;
    np.max_keys = 2 * qps;
    for (HostId host = 0; host < kHosts; ++host)
      all.emplace_back(network, host, kBytes, 2 * qps, np);
    const double hosts = used();
    for (HostId host = 0; host < kHosts; ++host)
      for (std::uint32_t i = 0; i < qps; ++i)
        all[host].write_to(all[(host + 1 + i * 37) % kHosts], {.bytes = kBytes});
    const double connected = used();
    network.run_until(Instant::from_ns(2'000'000));
    std::uint64_t completed = 0;
    for (const test::Endpoint& endpoint : all) completed += endpoint.completed();
    if (completed != std::uint64_t{kHosts} * qps) state.SkipWithError("not all WRITEs completed");
    state.counters["fabric_per_host"] = (fabric - empty) / kHosts;
    state.counters["endpoint_per_host"] = (hosts - fabric) / kHosts;
    state.counters["per_qp"] = (connected - hosts) / (kHosts * qps * 2.0);
    state.counters["growth_in_run"] = used() - connected;
    state.counters["most_frames"] = network.frames().most_used;
  }
}
BENCHMARK(memory)->Arg(8)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace roce::bench

BENCHMARK_MAIN();
