// Marking at the congestion point, against the line that it is configured with.
#include <array>
#include <catch2/catch.hpp>

#include "fabric/generator.hpp"
#include "fabric/raw.hpp"
#include "fabric/topology.hpp"
#include "wire/checksum.hpp"
#include "wire/headers.hpp"

using namespace roce;
using namespace roce::fabric;
using namespace roce::test;

namespace {

constexpr RedLine kLine{50'000, 450'000, 0.3};

/// What leaves a switch's port, and what stood behind it in the queue.
class QueueWatch final : public Tap {
 public:
  QueueWatch(const Network& network, PortId port) : network_(network), port_(port) {}
  void on_frame(SimTime, PortId, TapDirection direction,
                std::span<const std::byte> frame) override {
    if (direction != TapDirection::TX) return;
    const bool marked = (std::to_integer<unsigned>(frame[15]) & 3) == 3;
    const std::uint64_t queued = network_.queue_bytes(port_, 3);
    if (wire::internet_checksum(frame.subspan(14, 20)) != 0) ++bad_checksums;
    if (queued <= kLine.kmin_bytes) {
      ++below;
      marked_below += marked;
    } else if (queued > kLine.kmax_bytes) {
      ++above;
      marked_above += marked;
    } else {
      const double share = static_cast<double>(queued - kLine.kmin_bytes) /
                           static_cast<double>(kLine.kmax_bytes - kLine.kmin_bytes);
      const auto bin = std::min<std::size_t>(static_cast<std::size_t>(share * 10), 9);
      ++packets[bin];
      marks[bin] += marked;
      expected[bin] += kLine.pmax * share;
      variance[bin] += kLine.pmax * share * (1 - kLine.pmax * share);
    }
  }
  std::uint64_t below = 0, marked_below = 0, above = 0, marked_above = 0, bad_checksums = 0;
  std::array<double, 10> packets{}, marks{}, expected{}, variance{};

 private:
  const Network& network_;
  PortId port_;
};

StarConfig two_to_one() {
  StarConfig config;
  config.hosts = 3;
  config.fabric_switch.ecn.line[3] = kLine;
  config.fabric_switch.buffer.total_bytes = 8 << 20;
  config.fabric_switch.buffer.lossless = {600'000, 0};
  return config;
}

}  // namespace

TEST_CASE("Marks follow the RED line: chi-square in ten bins, none below Kmin, all above Kmax") {
  Network network = star(two_to_one()).value();
  QueueWatch watch{network, network.peer_of(network.host_nic(0))};
  network.set_tap(network.peer_of(network.host_nic(0)), &watch);
  // Two senders take turns at pushing the queue up past Kmax and letting it drain.
  Generator first{network,
                  1,
                  0,
                  {.frame = {.length = 1000},
                   .on_time = Duration::microseconds(90),
                   .off_time = Duration::microseconds(90)}};
  Generator second{network,
                   2,
                   0,
                   {.frame = {.length = 1000},
                    .on_time = Duration::microseconds(170),
                    .off_time = Duration::microseconds(110)}};
  network.run_until(Instant::from_ns(20'000'000));

  CHECK(watch.below > 200);
  CHECK(watch.marked_below == 0);
  CHECK(watch.above > 1000);
  CHECK(watch.marked_above == watch.above);
  CHECK(watch.bad_checksums == 0);
  double chi_square = 0;
  for (std::size_t bin = 0; bin < 10; ++bin) {
    CHECK(watch.packets[bin] > 1000);
    const double off = watch.marks[bin] - watch.expected[bin];
    chi_square += off * off / watch.variance[bin];
  }
  CHECK(chi_square < 29.6);  // 10 degrees of freedom, 99.9 %
  const PortCounters counters = network.counters(network.peer_of(network.host_nic(0)));
  double marked = static_cast<double>(watch.marked_above);
  for (const double n : watch.marks) marked += n;
  CHECK(static_cast<double>(counters.priority[3].ecn_marked) == marked);
}

TEST_CASE("What is not ECN-capable passes the line unmarked, or is dropped there") {
  StarConfig config = two_to_one();
  const bool drop = GENERATE(false, true);
  config.fabric_switch.ecn.not_ect = drop ? NotEct::DROP : NotEct::PASS;
  Network network = star(config).value();
  const RawFrame not_ect{.length = 1000, .traffic_class = 26 << 2};
  Generator first{network, 1, 0, {.frame = not_ect}};
  Generator second{network, 2, 0, {.frame = not_ect}};
  Generator sink{network, 0, 1, {.frame = not_ect, .on_time = {}}};
  network.run_until(Instant::from_ns(1'000'000));
  const PriorityCounters counters =
      network.counters(network.peer_of(network.host_nic(0))).priority[3];
  CHECK(counters.ecn_marked == 0);
  CHECK((counters.drops[static_cast<std::size_t>(DropCause::RED)] > 100) == drop);
  CHECK(counters.max_queue_bytes > kLine.kmin_bytes);
  CHECK(sink.received() > 5000);
}

TEST_CASE("A queue without a line is never marked") {
  StarConfig config = two_to_one();
  config.fabric_switch.ecn.line[3].reset();
  Network network = star(config).value();
  Generator first{network, 1, 0, {}};
  Generator second{network, 2, 0, {}};
  network.run_until(Instant::from_ns(500'000));
  const PortCounters counters = network.counters(network.peer_of(network.host_nic(0)));
  CHECK(counters.total().ecn_marked == 0);
  CHECK(counters.priority[3].max_queue_bytes > 500'000);
}
