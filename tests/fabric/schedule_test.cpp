// Which queue is served next.
#include <catch2/catch.hpp>
#include <deque>

#include "fabric/generator.hpp"
#include "fabric/topology.hpp"

using namespace roce;
using namespace roce::fabric;
using namespace roce::test;

namespace {

std::uint8_t class_of(std::uint8_t priority) {
  return static_cast<std::uint8_t>(priority << 5 | 2);
}

/// Senders 1..n, each with a class of its own, all to host 0.
struct Contention {
  Contention(const Scheduling& scheduling,
             const std::vector<std::pair<std::uint8_t, std::uint32_t>>& classes_and_lengths) {
    StarConfig config;
    config.hosts = static_cast<std::uint32_t>(classes_and_lengths.size()) + 1;
    config.fabric_switch.scheduling = scheduling;
    config.fabric_switch.pfc.lossless = 0xff;
    config.fabric_switch.buffer.total_bytes = 64 << 20;
    config.host.honours_pfc = 0xff;
    network.emplace(star(config).value());
    for (std::size_t i = 0; i < classes_and_lengths.size(); ++i)
      generators.emplace_back(
          *network, static_cast<HostId>(i + 1), 0,
          Generator::Options{.frame = {.length = classes_and_lengths[i].second,
                                       .traffic_class = class_of(classes_and_lengths[i].first)}});
    network->run_until(Instant::from_ns(1'000'000));
    const PortCounters before = at_switch();
    network->run_until(Instant::from_ns(11'000'000));
    const PortCounters after = at_switch();
    for (std::size_t p = 0; p < kPriorities; ++p) {
      const auto packets = after.priority[p].tx_packets - before.priority[p].tx_packets;
      wire_bytes[p] = static_cast<double>(after.priority[p].tx_bytes - before.priority[p].tx_bytes +
                                          packets * kWireOverheadBytes);
    }
  }
  [[nodiscard]] PortCounters at_switch() const {
    return network->counters(network->peer_of(network->host_nic(0)));
  }
  std::optional<Network> network;
  std::deque<Generator> generators;
  std::array<double, kPriorities> wire_bytes{};
};

}  // namespace

TEST_CASE("Weighted queues share the wire by their weights within one per cent") {
  Scheduling scheduling;
  scheduling.weight = {1, 2, 3, 4, 10, 1, 0, 0};
  const Contention c{scheduling, {{1, 1500}, {2, 300}, {3, 4096}, {4, 900}}};
  const double all = 12'500'000'000.0 * 0.01;  // 10 ms at 100 Gb/s
  CHECK(c.wire_bytes[1] / all == Approx(2.0 / 19).epsilon(0.01));
  CHECK(c.wire_bytes[2] / all == Approx(3.0 / 19).epsilon(0.01));
  CHECK(c.wire_bytes[3] / all == Approx(4.0 / 19).epsilon(0.01));
  CHECK(c.wire_bytes[4] / all == Approx(10.0 / 19).epsilon(0.01));
}

TEST_CASE("A strict queue takes all it wants, the higher one first; weighted ones share the rest") {
  Scheduling scheduling;
  scheduling.weight = {1, 1, 1, 1, 1, 0, 0, 0};
  const Contention all_strict{scheduling, {{5, 1000}, {6, 1000}, {3, 1000}}};
  CHECK(all_strict.wire_bytes[6] == Approx(125'000'000).epsilon(0.001));
  CHECK(all_strict.wire_bytes[5] == 0);
  CHECK(all_strict.wire_bytes[3] == 0);

  // Alone, the strict sender is as fast as the link: halve it by sending to somebody else as well.
  const Contention one{scheduling, {{1, 1000}, {3, 1000}}};
  CHECK(one.wire_bytes[1] == Approx(62'500'000).epsilon(0.01));
  CHECK(one.wire_bytes[3] == Approx(62'500'000).epsilon(0.01));
}

TEST_CASE("Priority comes from the PCP where that is trusted, and from the DSCP map otherwise") {
  StarConfig config;
  config.fabric_switch.priorities.dscp[26] = 4;
  const bool by_pcp = GENERATE(false, true);
  config.fabric_switch.priorities.trust = by_pcp ? TrustMode::PCP : TrustMode::DSCP;
  Network network = star(config).value();
  REQUIRE(send(network, 0, {make_frame(0, 1, {.pcp = 5}), make_frame(0, 1, {})}) == 2);
  REQUIRE(network.run_until_idle(Instant::from_ns(1'000'000)));
  const PortCounters out = network.counters(network.peer_of(network.host_nic(1)));
  CHECK(out.priority[5].tx_packets == (by_pcp ? 1 : 0));
  CHECK(out.priority[0].tx_packets == (by_pcp ? 1 : 0));
  CHECK(out.priority[4].tx_packets == (by_pcp ? 0 : 2));
}

TEST_CASE("A lossy queue drops above its threshold, and no other queue suffers") {
  StarConfig config;
  config.hosts = 4;
  config.fabric_switch.buffer.lossy = {100'000, 0};
  Network network = star(config).value();
  const RawFrame lossy{.length = 1000, .traffic_class = class_of(1)};
  Generator first{network, 1, 0, {.frame = lossy}};
  Generator second{network, 2, 0, {.frame = lossy}};
  Generator other{network, 3, 0, {.frame = {.traffic_class = class_of(6)}, .most = 500}};
  network.run_until(Instant::from_ns(1'000'000));
  const PortCounters out = network.counters(network.peer_of(network.host_nic(0)));
  CHECK(out.priority[1].drops[static_cast<std::size_t>(DropCause::BUFFER)] > 1000);
  CHECK(out.priority[1].max_queue_bytes <= 100'000);
  CHECK(out.priority[1].max_queue_bytes > 98'000);
  CHECK(out.priority[6].tx_packets == 500);
  CHECK(out.total().dropped() == out.priority[1].dropped());
  // Half of what the two send cannot leave.
  const auto sent = static_cast<double>(first.sent() + second.sent());
  CHECK(static_cast<double>(out.priority[1].dropped()) == Approx(sent / 2).epsilon(0.1));
}

TEST_CASE("The queue histogram adds up to the time that has passed") {
  StarConfig config;
  config.hosts = 3;
  Network network = star(config).value();
  Generator first{
      network,
      1,
      0,
      {.on_time = Duration::microseconds(100), .off_time = Duration::microseconds(200)}};
  Generator second{
      network,
      2,
      0,
      {.on_time = Duration::microseconds(100), .off_time = Duration::microseconds(200)}};
  network.run_until(Instant::from_ns(3'000'000));
  const QueueHistogram* histogram = network.histogram(network.peer_of(network.host_nic(0)), 3);
  REQUIRE(histogram != nullptr);
  CHECK(histogram->total() == 3'000'000'000);
  // Fills to 1.25 MB less what leaves in 100 us and drains as long: a triangle over two thirds of
  // the time, unless PFC cuts it.
  CHECK(histogram->mean_bytes() > 100'000);
  CHECK(histogram->quantile(0.25) <= 80);
  CHECK(histogram->quantile(1.0) >=
        network.counters(network.peer_of(network.host_nic(0))).priority[3].max_queue_bytes);
  CHECK(network.histogram(network.host_nic(0), 3) == nullptr);
}
