// Time on the wire, forwarding, ECMP.
#include <catch2/catch.hpp>
#include <map>

#include "fabric/classify.hpp"
#include "fabric/raw.hpp"
#include "fabric/topology.hpp"
#include "wire/checksum.hpp"
#include "wire/headers.hpp"

using namespace roce;
using namespace roce::fabric;
using namespace roce::test;

TEST_CASE("A frame takes its bytes and 24 more at the link's rate, and the delay, on each hop") {
  const double rate = GENERATE(10.0, 25.0, 40.0, 100.0, 200.0, 400.0, 800.0);
  StarConfig config;
  config.link = {Rate::gbps(rate), Duration::nanoseconds(333), {}};
  Network network = star(config).value();
  Recorder tap;
  network.set_tap(network.host_nic(1), &tap);
  REQUIRE(send(network, 0,
               {make_frame(0, 1, {.length = 1000}), make_frame(0, 1, {.length = 60})}) == 2);
  REQUIRE(network.run_until_idle(Instant::from_ns(1'000'000)));
  REQUIRE(tap.passed.size() == 2);
  const auto ps_per_byte = static_cast<Picoseconds>(8000 / rate);
  const Picoseconds long_one = 1024 * ps_per_byte;
  CHECK(tap.passed[0].time.ps == 2 * (long_one + 333'000));
  // The short one was behind the long one and is sent on when that has left.
  CHECK(tap.passed[1].time.ps == 2 * (long_one + 333'000) + 84 * ps_per_byte);
}

TEST_CASE("A rate that has no whole picoseconds for a byte is kept over many frames") {
  const Serialiser line{Rate::gbps(30)};
  CHECK(line.time(3) == 800);
  CHECK(line.time(1) == 267);  // 266.67, rounded up
  CHECK(line.time(4096) == (4096LL * 8000 + 29) / 30);
}

TEST_CASE("Frames between two hosts keep their order and their bytes over several hops") {
  ChainConfig config;
  Network network = chain(config).value();
  std::vector<std::vector<std::byte>> sent;
  for (std::uint32_t i = 0; i < 16; ++i)
    sent.push_back(make_frame(0, 2, {.length = 100 + 50 * i, .sequence = i}));
  REQUIRE(send(network, 0, sent) == sent.size());
  network.run_until(Instant::never());
  CHECK(network.now() < SimTime::from(Instant::from_ns(10'000)));
  CHECK(receive(network, 2) == sent);
  CHECK(network.packet_hops() == 16 * 4);
  CHECK(network.frames().in_use == 0);
}

TEST_CASE("A frame to a MAC that is no host's is dropped and counted") {
  Network network = star({}).value();
  auto frame = make_frame(0, 1, {});
  auto& ethernet = *wire::view_as<wire::EthernetHeader>(frame.data());
  ethernet.destination = MacAddress::broadcast();
  REQUIRE(send(network, 0, {frame, make_frame(0, 77, {})}) == 2);
  REQUIRE(network.run_until_idle(Instant::from_ns(1'000'000)));
  const PortCounters at = network.counters(network.peer_of(network.host_nic(0)));
  CHECK(at.total().drops[static_cast<std::size_t>(DropCause::NO_ROUTE)] == 2);
  CHECK(network.frames().in_use == 0);
}

TEST_CASE("Marking keeps the IPv4 checksum right for every traffic class") {
  for (unsigned tos = 0; tos < 256; ++tos) {
    if ((tos & 3) == 0) continue;
    auto frame = make_frame(3, 9, {.traffic_class = static_cast<std::uint8_t>(tos)});
    FrameMeta meta;
    classify(frame, meta);
    mark_congestion(frame.data(), meta);
    const std::span<const std::byte> ip{frame.data() + 14, 20};
    CHECK(wire::internet_checksum(ip) == 0);
    CHECK((std::to_integer<unsigned>(ip[1]) & 3) == 3);
    CHECK(std::to_integer<unsigned>(ip[1]) >> 2 == tos >> 2);
  }
}

TEST_CASE("ECMP spreads flows evenly over all spines and never splits one") {
  LeafSpineConfig config;
  config.spines = 4;
  config.hosts_per_leaf = 2;
  config.host.tx_queue_frames = 1024;
  Network network = leaf_spine(config).value();
  std::vector<Recorder> taps(4);
  for (std::uint32_t spine = 0; spine < 4; ++spine)
    network.set_tap(network.port({Network::node_of_switch(2 + spine), 0}), &taps[spine]);
  constexpr std::uint32_t kFlows = 500;
  for (std::uint32_t round = 0; round < 4; ++round) {
    std::vector<std::vector<std::byte>> frames;
    for (std::uint32_t flow = 0; flow < kFlows; ++flow)
      frames.push_back(make_frame(0, 2,
                                  {.length = 100,
                                   .source_port = static_cast<std::uint16_t>(0xc000 + flow),
                                   .sequence = flow << 8 | round}));
    REQUIRE(send(network, 0, frames) == frames.size());
    REQUIRE(network.run_until_idle(Instant::from_ns(1'000'000 * (round + 1))));
  }
  std::map<std::uint32_t, std::size_t> spine_of_flow;
  for (std::size_t spine = 0; spine < taps.size(); ++spine) {
    std::size_t frames = 0;
    for (const Passed& passed : taps[spine].passed) {
      if (passed.direction != TapDirection::RX) continue;
      ++frames;
      const std::uint32_t flow = sequence_of(passed.frame) >> 8;
      const auto [at, fresh] = spine_of_flow.try_emplace(flow, spine);
      CHECK(at->second == spine);
    }
    // 500 flows over four: 125 each, standard deviation 9.7; four of them.
    CHECK(frames >= 4 * 86);
    CHECK(frames <= 4 * 164);
  }
  CHECK(spine_of_flow.size() == kFlows);
  const auto arrived = receive(network, 2);
  CHECK(arrived.size() == 4 * kFlows);
  std::map<std::uint32_t, std::uint32_t> next_round;
  for (const auto& frame : arrived)
    CHECK((sequence_of(frame) & 0xff) == next_round[sequence_of(frame) >> 8]++);
}

TEST_CASE("Rails put the NICs of a server on different leaves") {
  LeafSpineConfig config;
  config.leaves = 4;
  config.rails = 2;
  config.hosts_per_leaf = 3;
  Network network = leaf_spine(config).value();
  REQUIRE(network.host_count() == 12);
  for (HostId host = 0; host < 12; ++host) {
    const std::string leaf = network.name_of(network.peer_of(network.host_nic(host)));
    CHECK(leaf.starts_with("leaf" + std::to_string(config.leaf_of(host)) + "."));
  }
  CHECK(config.leaf_of(0) == 0);
  CHECK(config.leaf_of(1) == 1);
  CHECK(config.leaf_of(5) == 1);
  CHECK(config.leaf_of(6) == 2);
  CHECK(config.leaf_of(7) == 3);
  CHECK(config.oversubscription() == Approx(1.5));
}
