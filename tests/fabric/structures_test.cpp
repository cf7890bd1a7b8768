// The parts by themselves, against naive models and arithmetic by hand.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "base/prng.hpp"
#include "fabric/classify.hpp"
#include "fabric/counters.hpp"
#include "fabric/event_queue.hpp"
#include "fabric/frame_pool.hpp"
#include "fabric/link.hpp"
#include "fabric/raw.hpp"
#include "fabric/switch_buffer.hpp"
#include "fabric/topology.hpp"
#include "wire/headers.hpp"

using namespace roce;
using namespace roce::fabric;

TEST_CASE("Events come out by time, and in the order of asking where times are equal") {
  Prng prng{7};
  EventQueue queue{4};
  std::multimap<std::int64_t, std::uint32_t> model;  // keeps the order of equal keys
  std::uint32_t next = 0;
  for (int round = 0; round < 20'000; ++round) {
    // Mostly a pop and then pushes, as in a network; sometimes many of one kind.
    if (!model.empty() && prng.below(100) < 50) {
      CHECK(queue.size() == model.size());
      CHECK(queue.earliest().ps == model.begin()->first);
      const Event event = queue.pop();
      CHECK(event.time.ps == model.begin()->first);
      CHECK(event.argument == model.begin()->second);
      CHECK(event.kind() == (event.argument % 2 == 0 ? EventKind::ARRIVE : EventKind::TX_DONE));
      model.erase(model.begin());
    }
    for (std::uint32_t n = prng.below(3); n > 0; --n, ++next) {
      const std::int64_t time = prng.below(1000);
      queue.push({time}, next % 2 == 0 ? EventKind::ARRIVE : EventKind::TX_DONE, 1, next);
      model.emplace(time, next);
    }
  }
  while (!queue.empty()) {
    CHECK(queue.pop().argument == model.begin()->second);
    model.erase(model.begin());
  }
  CHECK(model.empty());
}

TEST_CASE("A pool lends each frame once, says when it is empty and counts that") {
  FramePool pool{3};
  std::vector<FrameIndex> frames = {pool.take(), pool.take(), pool.take()};
  std::ranges::sort(frames);
  CHECK(frames == std::vector<FrameIndex>{0, 1, 2});
  CHECK(pool.take() == kNone);
  CHECK(pool.exhausted() == 1);
  CHECK(pool.in_use() == 3);
  pool.give_back(1);
  CHECK(pool.take() == 1);
  CHECK(pool.most_used() == 3);
  CHECK(pool.data(1) - pool.data(0) == static_cast<std::ptrdiff_t>(FramePool::kStride));
}

TEST_CASE("A network that runs out of frames slows its senders down and loses nothing") {
  StarConfig config;
  config.network.frames = 24;
  Network network = star(config).value();
  std::uint32_t sent = 0, got = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::vector<std::byte>> frames;
    for (std::uint32_t i = 0; i < 40; ++i)
      frames.push_back(test::make_frame(0, 1, {.length = 500, .sequence = sent + i}));
    sent += static_cast<std::uint32_t>(test::send(network, 0, frames));
    network.run_until(network.now().instant() + Duration::microseconds(1));
    for (const auto& frame : test::receive(network, 1)) CHECK(test::sequence_of(frame) == got++);
  }
  network.run_until(network.now().instant() + Duration::microseconds(100));
  for (const auto& frame : test::receive(network, 1)) CHECK(test::sequence_of(frame) == got++);
  CHECK(sent > 200);
  CHECK(got == sent);
  CHECK(network.frames().in_use == 0);
}

TEST_CASE("Headroom is the sum of what can still come in") {
  // 100 Gb/s: 12.5 bytes a nanosecond; 394 quanta of 64 bytes.
  const LinkConfig link{Rate::gbps(100), Duration::nanoseconds(200), {}};
  CHECK(pfc_headroom(link, 4200) == 4200 + (4200 + 24) + 84 + 5000 + 394 * 64 + 4200);
  CHECK(pfc_headroom({Rate::gbps(10), {}, Duration{}}, 1500) == 1500 + 1524 + 84 + 1500);
  // Cells of 208 bytes: the shortest frames waste the most, one cell for 84 bytes on the wire.
  const std::uint64_t wire = 4224 + 84 + 5000 + 394 * 64;
  const auto celled = static_cast<double>(pfc_headroom(link, 4200, CellSize{208}));
  CHECK(celled == Approx(2 * 4368 + static_cast<double>(wire) * 208 / 84).margin(1.0));
}

TEST_CASE("Response times are those of the standard's table") {
  CHECK(pfc_response({Rate::gbps(10), {}, {}}) == 67 * 51'200);
  CHECK(pfc_response({Rate::gbps(25), {}, {}}) == 80 * 20'480);
  CHECK(pfc_response({Rate::gbps(100), {}, {}}) == 394 * 5'120);
  CHECK(pfc_response({Rate::gbps(400), {}, {}}) == 905 * 1'280);
  CHECK(pfc_response_quanta(Rate::gbps(800)) == 1810);
  CHECK(pfc_response({Rate::gbps(100), {}, Duration::nanoseconds(7)}) == 7'000);
  CHECK(cable_delay(100) == Duration::nanoseconds(505));
}

TEST_CASE("A lossless class stops at its share, then fills its own headroom only") {
  BufferConfig config;
  config.lossless = {1000, 0};
  SwitchBuffer buffer{config, 10'000};
  IngressClass a, b;
  CHECK(buffer.admit_lossless(a, 600, 500) == Admission::SHARED);
  CHECK(buffer.admit_lossless(a, 600, 500) == Admission::REFUSED);  // 600 > 500 of headroom
  CHECK(buffer.admit_lossless(a, 450, 500) == Admission::HEADROOM);
  CHECK(buffer.admit_lossless(a, 10, 500) == Admission::HEADROOM);  // the share would have room
  CHECK(buffer.admit_lossless(b, 900, 500) == Admission::SHARED);
  CHECK(buffer.used() == 1500);
  CHECK_FALSE(buffer.may_resume(a, 100));
  buffer.release_lossless(a, 600);  // headroom first
  CHECK(a.headroom == 0);
  CHECK(a.shared == 460);
  CHECK(buffer.used() == 1360);
  CHECK(buffer.may_resume(a, 540));
  CHECK_FALSE(buffer.may_resume(a, 541));
}

TEST_CASE("A dynamic threshold is alpha times what is free, and full pools refuse all") {
  BufferConfig config;
  config.lossless = {{}, 0.5};
  config.lossy = {{}, 1.0};
  SwitchBuffer buffer{config, 9000};
  IngressClass a, b;
  CHECK(buffer.admit_lossless(a, 3000, 0) == Admission::SHARED);  // 3000 <= 0.5 * 9000
  CHECK(buffer.admit_lossless(a, 1, 0) == Admission::REFUSED);    // 3001 > 0.5 * 6000
  CHECK(buffer.admit_lossless(b, 3000, 0) == Admission::SHARED);  // 3000 <= 0.5 * 6000
  CHECK(buffer.admit_lossless(b, 1, 0) == Admission::REFUSED);
  CHECK(buffer.admit_lossy(0, 3000));
  CHECK_FALSE(buffer.admit_lossy(0, 1));
  buffer.release_lossless(b, 3000);
  CHECK(buffer.admit_lossy(2999, 1));
  CHECK_FALSE(buffer.admit_lossy(3000, 1));
}

TEST_CASE("Histogram buckets tile the bytes, a quarter of a power of two each") {
  CHECK(QueueHistogram::bucket_of(0) == 0);
  CHECK(QueueHistogram::bucket_of(63) == 0);
  for (std::size_t bucket = 1; bucket < QueueHistogram::kBuckets; ++bucket) {
    const std::uint64_t edge = QueueHistogram::lower_edge(bucket);
    CHECK(QueueHistogram::bucket_of(edge) == bucket);
    CHECK(QueueHistogram::bucket_of(edge - 1) == bucket - 1);
  }
  CHECK(QueueHistogram::bucket_of(~std::uint64_t{0}) == QueueHistogram::kBuckets - 1);
  QueueHistogram histogram;
  histogram.note({750}, 0);
  histogram.note({750}, 123'456);  // no time has passed
  histogram.note({1000}, 1000);
  CHECK(histogram.mean_bytes() == 250.0);
  CHECK(histogram.quantile(0.75) == 64);
  CHECK(histogram.quantile(0.76) == 1024);
}

TEST_CASE("IPv6 packets are classified and marked like IPv4 ones") {
  std::vector<std::byte> frame(100);
  auto& ethernet = *wire::view_as<wire::EthernetHeader>(frame.data());
  ethernet.destination = host_mac(513, 2);
  ethernet.ether_type.set(wire::kEtherIpv6);
  auto& ip = *wire::view_as<wire::Ipv6Header>(frame.data() + 14);
  ip.version_class_flow.set(6u << 28 | (26u << 2 | 1) << 20 | 0x12345);
  ip.next_header = wire::kIpUdp;
  wire::view_as<wire::UdpHeader>(frame.data() + 54)->source_port.set(0xc001);
  FrameMeta meta;
  classify(frame, meta);
  CHECK(meta.destination == 513);
  CHECK(meta.dscp() == 26);
  CHECK(meta.ecn() == 1);
  CHECK(meta.is_v6);
  const std::uint32_t hash = meta.flow_hash;
  mark_congestion(frame.data(), meta);
  CHECK(ip.version_class_flow.get() == (6u << 28 | (26u << 2 | 3) << 20 | 0x12345));
  classify(frame, meta);
  CHECK(meta.flow_hash == hash);  // marking moves no flow to another path
  wire::view_as<wire::UdpHeader>(frame.data() + 54)->source_port.set(0xc002);
  classify(frame, meta);
  CHECK(meta.flow_hash != hash);
}

TEST_CASE("Frames too short for their headers are no packets, and nothing is read beyond them") {
  const auto whole = test::make_frame(1, 2, {.length = 100, .pcp = 3});
  for (std::size_t length = 0; length < 60; ++length) {
    // A copy of its own, so that the sanitizer sees a read beyond it.
    const std::vector<std::byte> frame(whole.begin(),
                                       whole.begin() + static_cast<std::ptrdiff_t>(length));
    FrameMeta meta;
    classify(frame, meta);
    CHECK(meta.length == length);
    CHECK((meta.destination == 2) == (length >= 14));
    CHECK((meta.pcp == 3) == (length >= 18));
    CHECK((meta.l3_at == 18) == (length >= 38));
  }
}

TEST_CASE("A network that cannot work is refused with its reason") {
  const auto reason = [](auto change) {
    StarConfig config;
    change(config);
    const auto network = star(config);
    REQUIRE_FALSE(network);
    return network.error().to_string();
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(reason([](StarConfig& c) { c.hosts = 0; }), Contains("0 hosts"));
  CHECK_THAT(reason([](StarConfig& c) { c.fabric_switch.buffer.total_bytes = 1000; }),
             Contains("switch0: headroom of"));
  CHECK_THAT(reason([](StarConfig& c) {
               c.fabric_switch.ecn.line[3] = RedLine{2, 1, 0.5};
             }),
             Contains("kmin_bytes 2 is above kmax_bytes 1"));
  CHECK_THAT(reason([](StarConfig& c) {
               c.fabric_switch.ecn.line[3] = RedLine{1, 2, 1.5};
             }),
             Contains("pmax 1.5"));
  CHECK_THAT(reason([](StarConfig& c) { c.fabric_switch.pfc.refresh = 1; }), Contains("refresh"));
  CHECK_THAT(reason([](StarConfig& c) { c.fabric_switch.priorities.dscp[1] = 8; }),
             Contains("above 7"));
  CHECK_THAT(reason([](StarConfig& c) { c.host.mtu = 9000; }), Contains("mtu 9000"));
  CHECK_THAT(reason([](StarConfig& c) { c.host.tx_queue_frames = 0; }),
             Contains("host0: tx_queue_frames 0"));
  CHECK_THAT(leaf_spine({.leaves = 3, .rails = 2}).error().to_string(), Contains("2 rails"));
  Network twice;
  const NodeId hub = Network::node_of_switch(twice.add_switch({}));
  const NodeId host = Network::node_of_host(twice.add_host());
  twice.connect(hub, host, {});
  twice.connect(hub, host, {});
  CHECK_THAT(twice.build().error().to_string(), Contains("one link, not 2"));
}
