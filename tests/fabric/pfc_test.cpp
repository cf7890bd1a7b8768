// Priority-based flow control: frames, headroom, pauses, watchdog.
#include <catch2/catch.hpp>
#include <deque>

#include "fabric/generator.hpp"
#include "fabric/raw.hpp"
#include "fabric/topology.hpp"
#include "wire/pfc.hpp"

using namespace roce;
using namespace roce::fabric;
using namespace roce::test;

namespace {

std::vector<std::byte> bytes_of(std::initializer_list<unsigned> values, std::size_t length) {
  std::vector<std::byte> bytes;
  for (const unsigned v : values) bytes.push_back(static_cast<std::byte>(v));
  bytes.resize(length);
  return bytes;
}

std::uint64_t drops_of(const Network& network, DropCause cause) {
  std::uint64_t sum = 0;
  for (PortId port = 0; port < network.port_count(); ++port)
    sum += network.counters(port).total().drops[static_cast<std::size_t>(cause)];
  return sum;
}

std::uint64_t headroom_used(const Network& network) {
  std::uint64_t most = 0;
  for (PortId port = 0; port < network.port_count(); ++port)
    most = std::max(most, network.counters(port).priority[3].max_headroom_bytes);
  return most;
}

constexpr std::uint32_t kFrame = 1500;

StarConfig small_buffer(Duration delay, double gbps = 100) {
  StarConfig config;
  config.hosts = 3;
  config.link = {Rate::gbps(gbps), delay, {}};
  config.fabric_switch.pfc.max_frame_bytes = kFrame;
  config.fabric_switch.pfc.xon_offset_bytes = 2 * kFrame;
  config.fabric_switch.buffer.total_bytes = 4 << 20;
  config.fabric_switch.buffer.lossless = {20'000, 0};
  return config;
}

}  // namespace

TEST_CASE("XOFF and XON are 802.1Qbb frames, byte for byte") {
  Network network = star(small_buffer(Duration::nanoseconds(500))).value();
  Recorder tap;
  network.set_tap(network.host_nic(1), &tap);
  Generator first{network, 1, 0, {.frame = {.length = kFrame}, .most = 60}};
  Generator second{network, 2, 0, {.frame = {.length = kFrame}, .most = 60}};
  Generator sink{network, 0, 1, {.on_time = {}}};
  network.run_until(Instant::from_ns(1'000'000));
  CHECK(sink.received() == 120);
  std::vector<std::vector<std::byte>> pfc;
  for (const Passed& passed : tap.passed)
    if (passed.direction == TapDirection::RX) pfc.push_back(passed.frame);
  REQUIRE(pfc.size() >= 2);
  // Switch 0, port 1 to priority 3: stop for 0xffff quanta, then go on.
  CHECK(pfc[0] == bytes_of({0x01, 0x80, 0xc2, 0, 0,    0x01, 0x02, 0x53, 0, 0, 0, 1,    0x88,
                            0x08, 0x01, 0x01, 0, 0x08, 0,    0,    0,    0, 0, 0, 0xff, 0xff},
                           60));
  CHECK(pfc[1] == bytes_of({0x01, 0x80, 0xc2, 0, 0, 0x01, 0x02, 0x53, 0, 0, 0, 1, 0x88, 0x08, 0x01,
                            0x01, 0, 0x08},
                           60));
  CHECK(network.frames().in_use == 0);
}

TEST_CASE("With computed headroom nothing is lost, whatever rates, lengths and timing meet") {
  const double gbps = GENERATE(10.0, 40.0, 100.0, 400.0);
  const std::int64_t delay = GENERATE(15, 500, 10'000);
  const std::uint32_t length = GENERATE(64u, 700u, 1500u);
  StarConfig config = small_buffer(Duration::nanoseconds(delay), gbps);
  if (gbps > 100) config.fabric_switch.buffer.total_bytes = 16 << 20;
  Network network = star(config).value();
  // Both senders also receive, so that PFC frames have to wait for frames on their way.
  Generator first{network, 1, 0, {.frame = {.length = length}}};
  Generator second{network, 2, 0, {.frame = {.length = length}}};
  Generator back{network, 0, 1, {.frame = {.length = kFrame, .traffic_class = 1 << 5}}};
  network.run_until(Instant::from_ns(static_cast<std::int64_t>(100'000'000 / gbps)));
  CHECK(drops_of(network, DropCause::HEADROOM) == 0);
  CHECK(network.counters(network.host_nic(1)).priority[3].rx_pause > 0);
  CHECK(headroom_used(network) > 0);
  CHECK(headroom_used(network) <= network.headroom_bytes(network.peer_of(network.host_nic(1))));
}

TEST_CASE("With headroom one frame short there is loss, with the computed one there is none") {
  // A delay at which whole frames fill the bound: see pfc_headroom().
  std::uint64_t lost_short = 0, lost_full = 0, most_used = 0, bound = 0;
  for (std::int64_t phase = 0; phase < 130; phase += 5)
    for (const bool cut : {false, true}) {
      StarConfig config = small_buffer(Duration::nanoseconds(300));
      config.link.pfc_response = Duration::nanoseconds(500);
      bound = pfc_headroom(config.link, kFrame);
      config.fabric_switch.pfc.headroom_bytes = cut ? bound - kFrame : bound;
      Network network = star(config).value();
      Generator first{network, 1, 0, {.frame = {.length = kFrame}}};
      Generator second{network, 2, 0, {.frame = {.length = kFrame}}};
      Generator back{network,
                     0,
                     1,
                     {.frame = {.length = kFrame, .traffic_class = 1 << 5},
                      .start = Instant::from_ns(1'000 + phase)}};
      network.run_until(Instant::from_ns(200'000));
      (cut ? lost_short : lost_full) += drops_of(network, DropCause::HEADROOM);
      if (!cut) most_used = std::max(most_used, headroom_used(network));
    }
  INFO("bound " << bound << ", used " << most_used);
  CHECK(lost_full == 0);
  CHECK(lost_short > 0);
  CHECK(most_used <= bound);
  CHECK(most_used > bound - kFrame);
}

TEST_CASE("A pause lasts its quanta within one quantum and one frame") {
  const std::uint16_t quanta = GENERATE(std::uint16_t{1}, std::uint16_t{100}, std::uint16_t{5000});
  const double gbps = GENERATE(10.0, 100.0);
  StarConfig config = small_buffer(Duration::nanoseconds(500), gbps);
  config.hosts = 2;
  config.link.pfc_response = Duration{};
  config.host.tx_queue_frames = 64;
  Network network = star(config).value();
  Recorder tap;
  const PortId nic = network.host_nic(1);
  network.set_tap(nic, &tap);
  Generator sender{network, 1, 0, {.frame = {.length = kFrame}}};
  network.run_until(Instant::from_ns(20'000));
  network.schedule_storm(network.peer_of(nic), {.classes = 1 << 3,
                                                .quanta = quanta,
                                                .start = network.now().instant(),
                                                .duration = Duration::nanoseconds(1)});
  network.run_until(network.now().instant() + Duration::milliseconds(2));

  const Serialiser line{Rate::gbps(gbps)};
  Picoseconds longest = 0, last_start = 0, paused_at = -1;
  for (const Passed& passed : tap.passed) {
    if (passed.direction == TapDirection::RX) {
      paused_at = passed.time.ps;
      continue;
    }
    longest = std::max(longest, passed.time.ps - last_start);
    last_start = passed.time.ps;
  }
  const Picoseconds frame = line.time(kFrame + kWireOverheadBytes);
  REQUIRE(paused_at >= 0);
  // From one frame's start to the next: the rest of its own time, then the pause.
  CHECK(longest >= line.quanta(quanta));
  CHECK(longest <= line.quanta(quanta) + line.quanta(1) + frame);
  CHECK(network.counters(nic).priority[3].paused == line.quanta(quanta));
  CHECK(network.counters(nic).priority[3].rx_pause == 1);
}

TEST_CASE("Other priorities are not touched by a pause") {
  StarConfig config = small_buffer(Duration::nanoseconds(500));
  config.host.tx_queue_frames = 64;
  Network network = star(config).value();
  network.schedule_storm(
      network.peer_of(network.host_nic(1)),
      {.classes = 1 << 3, .start = Instant::from_ns(1000), .duration = Duration::milliseconds(1)});
  network.run_until(Instant::from_ns(10'000));
  REQUIRE(send(network, 1, {make_frame(1, 0, {}), make_frame(1, 0, {.traffic_class = 1 << 5})}) ==
          2);
  network.run_until(Instant::from_ns(500'000));
  CHECK(receive(network, 0).size() == 1);
  network.run_until(Instant::from_ns(2'000'000));
  CHECK(receive(network, 0).size() == 1);
}

TEST_CASE("XOFF is said again before it runs out, so that a long stop has no gap") {
  StarConfig config = small_buffer(Duration::nanoseconds(500), 400);
  config.fabric_switch.buffer.total_bytes = 16 << 20;
  config.fabric_switch.pfc.quanta = 1000;  // 1.28 us at 400 Gb/s
  Network network = star(config).value();
  // Host 0 cannot receive, so that the switch must hold host 1 for long.
  network.schedule_storm(
      network.host_nic(0),
      {.classes = 1 << 3, .start = Instant::from_ns(0), .duration = Duration::microseconds(500)});
  Generator sender{network, 1, 0, {.frame = {.length = kFrame}}};
  network.run_until(Instant::from_ns(20'000));
  const auto sent = network.counters(network.host_nic(1)).priority[3].tx_packets;
  network.run_until(Instant::from_ns(400'000));
  const PriorityCounters later = network.counters(network.host_nic(1)).priority[3];
  CHECK(later.tx_packets == sent);
  CHECK(later.rx_pause > 500);
  CHECK(drops_of(network, DropCause::HEADROOM) == 0);
  network.run_until(Instant::from_ns(1'000'000));
  CHECK(network.counters(network.host_nic(1)).priority[3].tx_packets > sent);
}

TEST_CASE("Congestion spreads hop by hop without loss and goes away without rest") {
  ChainConfig config;
  config.switches = 4;
  config.hosts_per_switch = 2;
  config.fabric_switch.buffer.total_bytes = 4 << 20;
  config.fabric_switch.buffer.lossless = {50'000, 0};
  Network network = chain(config).value();
  std::deque<Generator> generators;
  for (const HostId host : {0u, 1u, 2u, 3u, 4u, 5u, 7u})
    generators.emplace_back(network, host, 6u,
                            Generator::Options{.frame = {.length = 4096}, .most = 2000});
  Generator sink{network, 6, 0, {.on_time = {}}};
  network.run_until(Instant::from_ns(100'000'000));
  CHECK(sink.received() == 7 * 2000);
  CHECK(drops_of(network, DropCause::HEADROOM) == 0);
  CHECK(network.counters(network.host_nic(0)).priority[3].rx_pause > 0);
  CHECK(network.frames().in_use == 0);
  for (PortId port = 0; port < network.port_count(); ++port)
    CHECK(network.queue_bytes(port, 3) == 0);
}

TEST_CASE("The watchdog ends a storm's hold over a queue, and lets it be lossless again later") {
  StarConfig config = small_buffer(Duration::nanoseconds(500));
  WatchdogConfig watchdog;
  watchdog.detection = watchdog.restoration = Duration::microseconds(200);
  watchdog.poll = Duration::microseconds(50);
  watchdog.action = GENERATE(StormAction::DROP, StormAction::FORWARD, StormAction::ALERT);
  config.fabric_switch.pfc.watchdog = watchdog;
  Network network = star(config).value();
  const PortId to_victim = network.peer_of(network.host_nic(0));
  network.schedule_storm(
      network.host_nic(0),
      {.classes = 1 << 3, .start = Instant::from_ns(0), .duration = Duration::milliseconds(2)});
  Generator sender{network, 1, 0, {.frame = {.length = kFrame}}};
  Generator sink{network, 0, 1, {.on_time = {}}};
  network.run_until(Instant::from_ns(150'000));
  CHECK(network.counters(to_victim).priority[3].storms_detected == 0);
  const auto before = sink.received();
  network.run_until(Instant::from_ns(1'900'000));
  const PriorityCounters in_storm = network.counters(to_victim).priority[3];
  CHECK(in_storm.storms_detected == 1);
  CHECK(in_storm.storms_restored == 0);
  const auto dropped = in_storm.drops[static_cast<std::size_t>(DropCause::WATCHDOG)];
  CHECK((dropped > 1000) == (watchdog.action == StormAction::DROP));
  CHECK((sink.received() > before + 1000) == (watchdog.action == StormAction::FORWARD));
  network.run_until(Instant::from_ns(4'000'000));
  const PriorityCounters after = network.counters(to_victim).priority[3];
  CHECK(after.storms_restored == 1);
  CHECK(sink.received() > before + 1000);
  const auto rest = after.drops[static_cast<std::size_t>(DropCause::WATCHDOG)];
  network.run_until(Instant::from_ns(5'000'000));
  CHECK(network.counters(to_victim)
            .priority[3]
            .drops[static_cast<std::size_t>(DropCause::WATCHDOG)] == rest);
}

TEST_CASE("A host that reads slowly holds its senders by PFC and loses nothing") {
  StarConfig config = small_buffer(Duration::nanoseconds(500));
  config.hosts = 2;
  Network network = [&] {
    Network made{};
    const SwitchId hub = made.add_switch(config.fabric_switch);
    HostConfig slow;
    slow.pfc = HostPfcConfig{.drain = Rate::gbps(25), .xoff_bytes = 100'000, .xon_bytes = 50'000};
    for (const HostConfig& host : {slow, HostConfig{}})
      made.connect(Network::node_of_host(made.add_host(host)), Network::node_of_switch(hub),
                   config.link);
    REQUIRE(made.build());
    return made;
  }();
  Generator sink{network, 0, 1, {.on_time = {}}};
  Generator sender{network, 1, 0, {.frame = {.length = kFrame}}};
  network.run_until(Instant::from_ns(2'000'000));
  CHECK(drops_of(network, DropCause::RX_OVERFLOW) == 0);
  CHECK(drops_of(network, DropCause::HEADROOM) == 0);
  CHECK(network.counters(network.host_nic(0)).priority[3].tx_pause > 2);
  CHECK(static_cast<double>(sink.received_bytes()) == Approx(25e9 / 8 * 2e-3).epsilon(0.02));
}
