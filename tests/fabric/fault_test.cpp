// Faults: that they do what they say, that the log tells them, and that endpoints recover.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>

#include "fabric/endpoints.hpp"
#include "fabric/generator.hpp"
#include "fabric/topology.hpp"
#include "wire/packet.hpp"

using namespace roce;
using namespace roce::fabric;
using namespace roce::test;

namespace {

FaultRule rule(std::string_view text) {
  return parse_fault_rule(text).value();
}

constexpr std::uint32_t kBytes = 128 << 10;  // 32 packets

/// Host 1 writes one buffer to host 0, over a star; what host 0 gets is recorded.
struct OneWrite {
  explicit OneWrite(const std::vector<const char*>& rules, std::uint64_t count = 1)
      : network(star({}).value()), receiver(network, 0, kBytes), sender(network, 1, kBytes) {
    network.set_tap(network.host_nic(0), &tap);
    network.set_tap(network.peer_of(network.host_nic(1)), &at_switch);
    for (const char* text : rules) network.add_fault(rule(text), 1);
    fill_pattern(sender.buffer, 5);
    sender.write_to(receiver, {.count = count, .bytes = kBytes, .depth = 1});
    network.run_until(Instant::from_ns(2'000'000'000));
  }
  /// PSNs of the requests that host 0 got, from 0 on, marked ones as their negatives less one.
  [[nodiscard]] std::vector<int> psns() const {
    std::vector<int> list;
    for (const Passed& passed : tap.passed) {
      wire::Packet packet;
      if (passed.direction != TapDirection::RX ||
          wire::parse(passed.frame, wire::IcrcCheck::VERIFY, packet) != wire::Verdict::ROCE)
        continue;
      const int psn = static_cast<int>(packet.psn().value()) - 100;
      list.push_back(packet.congestion_experienced() ? -psn - 1 : psn);
    }
    return list;
  }
  [[nodiscard]] bool right() const {
    return sender.done() && sender.clean() && sender.buffer == receiver.buffer;
  }
  Network network;
  Recorder tap, at_switch;
  Endpoint receiver, sender;
};

std::vector<int> range(int from, int to) {
  std::vector<int> list;
  for (int i = from; i < to; ++i) list.push_back(i);
  return list;
}

}  // namespace

TEST_CASE("Without rules a WRITE arrives packet by packet") {
  const OneWrite run{{}};
  CHECK(run.right());
  CHECK(run.psns() == range(0, 32));
  CHECK(run.network.fault_log().empty());
}

TEST_CASE("A dropped packet is missing once, is logged with its identity, and is sent again") {
  const OneWrite run{{"drop:psn=+5"}};
  CHECK(run.right());
  const std::vector<int> psns = run.psns();
  CHECK(std::ranges::count(psns, 5) == 1);
  CHECK(std::ranges::find(psns, 5) > std::ranges::find(psns, 6));
  CHECK(run.receiver.worker.counters().out_of_sequence > 0);
  REQUIRE(run.network.fault_log().size() == 1);
  const FaultRecord& record = run.network.fault_log()[0];
  CHECK(record.kind == FaultKind::PACKET);
  CHECK(record.action == FaultAction::DROP);
  CHECK(record.psn == Psn{105});
  CHECK(record.dest_qpn == run.sender.peer_qpn_of_flow(0));
  CHECK(record.port == run.network.host_nic(1));
  CHECK(record.source == Network::host_address(1).address);
  CHECK(record.destination == Network::host_address(0).address);
  CHECK(run.network.fault_counts(0).picked == 1);
  CHECK(run.network.counters(run.network.host_nic(1))
            .total()
            .drops[static_cast<std::size_t>(DropCause::FAULT)] == 1);
}

TEST_CASE("The second copy of a packet can be dropped too") {
  const OneWrite run{{"drop:psn=+5,nth=1", "drop:psn=+5,nth=2"}};
  CHECK(run.right());
  CHECK(run.network.fault_log().size() == 2);
  CHECK(std::ranges::count(run.psns(), 5) == 1);
}

TEST_CASE("A corrupted packet arrives with a bad ICRC and is not taken") {
  const OneWrite run{{"corrupt:psn=+7"}};
  CHECK(run.right());
  const auto& verdicts = run.receiver.worker.worker_counters().verdicts;
  CHECK(verdicts[static_cast<std::size_t>(wire::Verdict::ICRC)] == 1);
}

TEST_CASE("A duplicated packet arrives twice in a row") {
  const OneWrite run{{"duplicate:psn=+7"}};
  CHECK(run.right());
  std::vector<int> expected = range(0, 32);
  expected.insert(expected.begin() + 7, 7);
  CHECK(run.psns() == expected);
  CHECK(run.receiver.worker.counters().duplicate_request == 1);
}

TEST_CASE("A reordered packet arrives behind as many later ones as were asked for") {
  const OneWrite run{{"reorder:psn=+7,by=3"}};
  CHECK(run.right());
  const std::vector<int> psns = run.psns();
  const std::vector<int> expected = {5, 6, 8, 9, 10, 7, 11};
  CHECK(std::equal(expected.begin(), expected.end(), psns.begin() + 5));
}

TEST_CASE("The last packet of all, reordered, goes after a millisecond") {
  const OneWrite run{{"reorder:psn=+31,by=3"}};
  CHECK(run.right());
  CHECK(run.psns() == range(0, 32));
  CHECK(run.sender.finished() > Instant::from_ns(1'000'000));
  CHECK(run.sender.finished() < Instant::from_ns(1'100'000));
}

TEST_CASE("A delayed packet arrives by exactly so much later") {
  // Where it leaves the faulty link; behind it even an idle queue may change what comes close.
  const auto arrival_of_last = [](const std::vector<const char*>& rules) {
    SimTime last;
    for (const Passed& passed : OneWrite{rules}.at_switch.passed)
      if (passed.direction == TapDirection::RX) last = passed.time;
    return last;
  };
  CHECK(arrival_of_last({"delay:psn=+31,by=20us"}) - arrival_of_last({}) == 20'000'000);
}

TEST_CASE("A marked packet arrives with CE and a good checksum; one that is not ECT cannot be") {
  const OneWrite run{{"mark:psn=+7"}};
  CHECK(run.right());
  std::vector<int> expected = range(0, 32);
  expected[7] = -8;
  CHECK(run.psns() == expected);
}

TEST_CASE("Lost acknowledgements are faults of the other direction") {
  const OneWrite run{{"drop:opcode=RC_ACKNOWLEDGE,dir=rx,nth=1"}};
  CHECK(run.right());
  REQUIRE(run.network.fault_log().size() == 1);
  CHECK(run.network.fault_log()[0].port == run.network.peer_of(run.network.host_nic(1)));
}

TEST_CASE("An incast over lossy links completes with right data, and its log adds up") {
  StarConfig config;
  config.hosts = 9;
  Network network = star(config).value();
  Endpoint sink{network, 0, 8 * kBytes};
  std::deque<Endpoint> senders;
  const std::uint32_t drops = network.add_fault(rule("drop:rate=0.01"));
  const std::uint32_t bits = network.add_fault(rule("corrupt:rate=0.005"));
  const std::uint32_t order = network.add_fault(rule("reorder:rate=0.005"));
  for (HostId host = 1; host <= 8; ++host) {
    Endpoint& sender = senders.emplace_back(network, host, kBytes);
    fill_pattern(sender.buffer, host);
    sender.write_to(
        sink,
        {.count = 8, .bytes = kBytes, .to = (host - 1) * std::uint64_t{kBytes}, .timeout = 8});
  }
  network.run_until(Instant::from_ns(3'000'000'000));
  for (std::size_t i = 0; i < senders.size(); ++i) {
    CHECK(senders[i].done());
    CHECK(senders[i].clean());
    CHECK(std::memcmp(sink.buffer.data() + i * kBytes, senders[i].buffer.data(), kBytes) == 0);
  }
  std::uint64_t picked = 0;
  for (const std::uint32_t id : {drops, bits, order}) {
    CHECK(network.fault_counts(id).picked > 3);
    picked += network.fault_counts(id).picked;
  }
  CHECK(network.fault_log().size() == picked);
  CHECK(std::ranges::is_sorted(network.fault_log(), {}, &FaultRecord::time));
  network.run_until(network.now().instant() + Duration::milliseconds(5));
  CHECK(network.frames().in_use <= 9 * 32u);  // what workers keep in hand
}

TEST_CASE("While a link is down frames are lost and counted, and all goes on afterwards") {
  Network network = star({}).value();
  Endpoint receiver{network, 0, kBytes}, sender{network, 1, kBytes};
  fill_pattern(sender.buffer, 1);
  sender.write_to(receiver, {.count = 100, .bytes = kBytes, .timeout = 8});
  network.schedule_link_flap(network.host_nic(1), Instant::from_ns(100'000),
                             Duration::microseconds(50));
  network.run_until(Instant::from_ns(1'000'000'000));
  CHECK(sender.done());
  CHECK(sender.clean());
  CHECK(sender.buffer == receiver.buffer);
  std::uint64_t lost = 0;
  for (PortId port = 0; port < network.port_count(); ++port)
    lost += network.counters(port).total().drops[static_cast<std::size_t>(DropCause::LINK_DOWN)];
  CHECK(lost > 10);
  REQUIRE(network.fault_log().size() == 2);
  CHECK(network.fault_log()[0].kind == FaultKind::LINK_DOWN);
  CHECK(network.fault_log()[0].time.ps == 100'000'000);
  CHECK(network.fault_log()[1].kind == FaultKind::LINK_UP);
  CHECK(network.fault_log()[1].time.ps == 150'000'000);
}

TEST_CASE("A storm of pauses from a host has no gap and is logged") {
  StarConfig config;
  config.hosts = 3;
  Network network = star(config).value();
  Generator sender{network, 1, 0, {}};
  Generator sink{network, 0, 1, {.on_time = {}}};
  network.schedule_storm(
      network.host_nic(0),
      {.quanta = 1000, .start = Instant::from_ns(50'000), .duration = Duration::microseconds(500)});
  network.run_until(Instant::from_ns(60'000));
  const auto before = sink.received();
  network.run_until(Instant::from_ns(550'000));
  CHECK(sink.received() == before);
  CHECK(network.counters(network.host_nic(0)).priority[3].tx_pause >= 500 * 2 / 6);
  network.run_until(Instant::from_ns(700'000));
  CHECK(sink.received() > before);
  REQUIRE(network.fault_log().size() == 2);
  CHECK(network.fault_log()[0].kind == FaultKind::STORM_BEGIN);
  CHECK(network.fault_log()[1].kind == FaultKind::STORM_END);
}
