// DCQCN of real endpoints against the fabric's marking, beside what the fluid model and the
// reference simulation say of it.
#include <catch2/catch.hpp>
#include <deque>

#include "fabric/endpoints.hpp"
#include "fabric/topology.hpp"

using namespace roce;
using namespace roce::fabric;
using namespace roce::test;

namespace {

constexpr std::uint32_t kBytes = 64 << 10;

congestion::NpConfig every_50us() {
  congestion::NpConfig np;
  np.min_time_between_cnps = Duration::microseconds(50);
  return np;
}

}  // namespace

TEST_CASE(
    "Eight DCQCN flows share 40 Gb/s fairly, at the queue and with the CNPs that theory expects") {
  StarConfig config;
  config.hosts = 9;
  config.link = {Rate::gbps(40), Duration::nanoseconds(900), {}};
  config.fabric_switch.ecn.line[3] = RedLine{5'000, 200'000, 0.01};
  config.fabric_switch.buffer.lossless = {8 << 20, 0};
  Network network = star(config).value();
  Endpoint sink{network, 0, kBytes, 64, every_50us()};
  std::deque<Endpoint> senders;
  for (HostId host = 1; host <= 8; ++host)
    senders.emplace_back(network, host, kBytes, 64, every_50us())
        .write_to(sink, {.count = ~std::uint64_t{0},
                         .bytes = kBytes,
                         .mtu = verbs::Mtu::MTU_1024,
                         .cc = congestion::make_preset("paper", Rate::gbps(40)).value()});
  network.run_until(Instant::from_ns(20'000'000));
  std::vector<std::uint64_t> before;
  for (const Endpoint& sender : senders) before.push_back(sender.completed());
  const PortId to_sink = network.peer_of(network.host_nic(0));
  const QueueHistogram early = *network.histogram(to_sink, 3);
  const PriorityCounters marks_early = network.counters(to_sink).priority[3];
  const std::uint64_t cnps_early = sink.worker.counters().np_cnp_sent;

  network.run_until(Instant::from_ns(60'000'000));
  constexpr double kSeconds = 0.04;
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < senders.size(); ++i) {
    const double gbps =
        static_cast<double>(senders[i].completed() - before[i]) * kBytes * 8 / kSeconds / 1e9;
    sum += gbps;
    squares += gbps * gbps;
  }
  // Goodput of 1,024 bytes in 1,106 on the wire.
  CHECK(sum == Approx(40.0 * 1024 / 1106).epsilon(0.03));
  CHECK(sum * sum / (8 * squares) > 0.97);
  const QueueHistogram& late = *network.histogram(to_sink, 3);
  const double queue = (late.mean_bytes() * static_cast<double>(late.total()) -
                        early.mean_bytes() * static_cast<double>(early.total())) /
                       static_cast<double>(late.total() - early.total());
  CHECK(queue > 93'800 / 2);  // the fluid model's fixed point
  CHECK(queue < 93'800 * 2);
  const PriorityCounters marks = network.counters(to_sink).priority[3];
  const double probability = static_cast<double>(marks.ecn_marked - marks_early.ecn_marked) /
                             static_cast<double>(marks.tx_packets - marks_early.tx_packets);
  CHECK(probability > 0.00455 / 2);
  CHECK(probability < 0.00455 * 2);
  const double cnps =
      static_cast<double>(sink.worker.counters().np_cnp_sent - cnps_early) / 8 / kSeconds;
  CHECK(cnps == Approx(2658).epsilon(0.4));
  CHECK(marks.dropped() == 0);
  CHECK(network.counters(network.host_nic(1)).priority[3].rx_pause == 0);
  for (const Endpoint& sender : senders) CHECK(sender.clean());
}

TEST_CASE("CNPs leave a host whose data is paused") {
  StarConfig config;
  config.hosts = 3;
  Network network = star(config).value();
  network.add_fault(parse_fault_rule("mark:opcode=RC_RDMA_WRITE").value(), 1);
  Endpoint sink{network, 0, kBytes, 64, every_50us()}, sender{network, 1, kBytes},
      other{network, 2, kBytes};
  // Host 0 is told to stop its data for good, has plenty of it, and gets marked packets.
  network.schedule_storm(
      network.peer_of(network.host_nic(0)),
      {.start = Instant::from_ns(10'000), .duration = Duration::milliseconds(5)});
  sink.write_to(other, {.count = 1000, .bytes = kBytes});
  network.run_until(Instant::from_ns(50'000));
  for (int i = 0; i < 4; ++i)
    sender.write_to(sink, {.count = 1,
                           .bytes = kBytes,
                           .timeout = 0,
                           .cc = congestion::make_preset("paper", Rate::gbps(100)).value()});
  network.run_until(Instant::from_ns(1'000'000));
  CHECK(sink.worker.counters().np_cnp_sent >= 4);
  CHECK(sender.worker.counters().rp_cnp_handled == sink.worker.counters().np_cnp_sent);
}
