// Real endpoints through real queues.
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>

#include "fabric/endpoints.hpp"
#include "fabric/raw.hpp"
#include "fabric/topology.hpp"

using namespace roce;
using namespace roce::fabric;
using namespace roce::test;

namespace {

/// Senders 1..n write their whole buffers to host 0, each to its own part.
struct Incast {
  static constexpr std::uint32_t kBytes = 64 << 10;

  Incast(Network& net, std::uint32_t senders, std::uint64_t count = 2) : network(net) {
    endpoints.emplace_back(network, 0, std::size_t{senders} * kBytes);
    for (HostId host = 1; host <= senders; ++host) {
      Endpoint& sender = endpoints.emplace_back(network, host, kBytes);
      fill_pattern(sender.buffer, host);
      sender.write_to(endpoints[0],
                      {.count = count, .bytes = kBytes, .to = std::uint64_t{host - 1} * kBytes});
    }
  }
  [[nodiscard]] bool done() const {
    return std::ranges::all_of(endpoints, [](const Endpoint& e) { return e.done() && e.clean(); });
  }
  [[nodiscard]] bool data_right() const {
    for (std::size_t i = 1; i < endpoints.size(); ++i)
      if (std::memcmp(endpoints[0].buffer.data() + (i - 1) * kBytes, endpoints[i].buffer.data(),
                      kBytes) != 0)
        return false;
    return true;
  }
  Network& network;
  std::deque<Endpoint> endpoints;
};

std::uint64_t all_drops(const Network& network) {
  std::uint64_t sum = 0;
  for (PortId port = 0; port < network.port_count(); ++port)
    sum += network.counters(port).total().dropped();
  return sum;
}

}  // namespace

TEST_CASE("An incast of RC WRITEs through a star completes without loss and with right data") {
  StarConfig config;
  config.hosts = 9;
  config.fabric_switch.buffer.total_bytes = 2 << 20;
  Network network = star(config).value();
  Incast incast{network, 8, 8};
  network.run_until(Instant::from_ns(10'000'000));
  CHECK(incast.done());
  CHECK(incast.data_right());
  CHECK(all_drops(network) == 0);
  // 8 x 8 x 64 KiB at 100 Gb/s: 341 us of payload alone.
  CHECK(incast.endpoints[1].finished() > Instant::from_ns(300'000));
}

TEST_CASE("The same seed gives the same frames at the same times") {
  const auto run = [](std::uint64_t seed) {
    StarConfig config;
    config.network.seed = seed;
    config.hosts = 5;
    config.fabric_switch.ecn.line[3] = RedLine{10'000, 200'000, 0.2};
    Network network = star(config).value();
    Digest digest;
    for (PortId port = 0; port < network.port_count(); ++port) network.set_tap(port, &digest);
    Incast incast{network, 4};
    network.run_until(Instant::from_ns(5'000'000));
    CHECK(incast.done());
    return digest.value;
  };
  CHECK(run(1) == run(1));
  CHECK(run(1) != run(2));
}
