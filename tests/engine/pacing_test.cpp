// Pacing in whole workers: rates, what is paced and what is not, classes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "base/prng.hpp"
#include "engine/paced_rig.hpp"
#include "support/no_allocation.hpp"

namespace roce::test {
namespace {

using congestion::FixedRate;
using Fate = TapPort::Fate;

constexpr double kOverhead = 24;  // of WorkerConfig::pacing_overhead_bytes

bool is_ack(const wire::Packet& packet) {
  return packet.opcode == wire::Opcode::RC_ACKNOWLEDGE;
}

congestion::DcqcnConfig dcqcn(std::string_view preset = "paper", double gbps = 100) {
  return congestion::make_preset(preset, Rate::gbps(gbps)).value();
}

/// Takes completions of a and posts as much again.
std::function<void()> closed_loop(PacedRig& rig, std::uint32_t bytes) {
  return [&rig, bytes] {
    std::array<verbs::Wc, 64> wcs;
    const std::size_t n = rig.a.cq.poll(wcs);
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(wcs[i].status == verbs::WcStatus::SUCCESS);
      rig.write(Qpn{static_cast<std::uint32_t>(wcs[i].wr_id)}, bytes);
    }
  };
}

}  // namespace

TEST_CASE("A fixed rate holds to a thousandth over 10 ms of virtual time") {
  for (const double mbps : {100.0, 1234.5, 10'000.0, 40'000.0}) {
    for (const std::uint32_t size : {64u, 5000u, 1u << 20}) {
      if (mbps > 10'000 && size == 64) continue;  // more packets than they show
      CAPTURE(mbps, size);
      PacedRig rig;
      const auto [qa, qb] = rig.pair();
      REQUIRE(rig.a.worker.set_congestion_control(qa, FixedRate{Rate::mbps(mbps)}));
      double bytes = 0;
      double largest = 0;
      rig.tap_a.look = [&](Instant, const wire::Packet&, std::uint32_t frame) {
        bytes += frame + kOverhead;
        largest = std::max(largest, frame + kOverhead);
        return Fate::PASS;
      };
      for (int i = 0; i < 32; ++i) rig.write(qa, size);
      const Instant start = rig.now;
      rig.run(start + Duration::milliseconds(10), closed_loop(rig, size));
      const double exact = Rate::mbps(mbps).bytes_in(Duration::milliseconds(10));
      // A packet goes when the one before it is paid off, so at the end one is ahead.
      CHECK(bytes - exact <= largest);
      CHECK(bytes - exact >= -1e-5 * exact);
      CHECK(std::abs(bytes - exact) <= std::max(1e-3 * exact, largest));
      CHECK(rig.a.worker.counters().retransmitted_packets == 0);
    }
  }
}

TEST_CASE("Thousands of QPs keep their own rates side by side") {
  constexpr std::uint32_t kQps = 2000;
  PacedRig rig{paced_config(0, kQps), paced_config(1, kQps)};
  std::map<std::uint32_t, double> bytes, rates;
  for (std::uint32_t i = 0; i < kQps; ++i) {
    const auto [qa, qb] = rig.pair(4);
    rates[qb.value()] = 1.0 + i / 40;
    REQUIRE(rig.a.worker.set_congestion_control(qa, FixedRate{Rate::mbps(rates[qb.value()])}));
    rig.write(qa, 4096);
    rig.write(qa, 4096);
  }
  rig.tap_a.look = [&](Instant, const wire::Packet& packet, std::uint32_t frame) {
    bytes[packet.dest_qpn().value()] += frame + kOverhead;
    return Fate::PASS;
  };
  rig.run(rig.now + Duration::milliseconds(50), closed_loop(rig, 4096));
  for (const auto& [qpn, mbps] : rates) {
    const double exact = Rate::mbps(mbps).bytes_in(Duration::milliseconds(50));
    CAPTURE(mbps, bytes[qpn], exact);
    REQUIRE(bytes[qpn] >= exact * (1 - 1e-5));
    REQUIRE(bytes[qpn] <= exact + 4096 + 100);
  }
}

TEST_CASE("A paced QP's turns do not allocate") {
  PacedRig rig;
  const auto [qa, qb] = rig.pair();
  REQUIRE(rig.a.worker.set_congestion_control(qa, dcqcn()));
  for (int i = 0; i < 8; ++i) rig.write(qa, 100'000);
  const std::uint64_t before = NoAllocation::violations();
  for (int i = 0; i < 20'000; ++i) {
    rig.now = rig.now + Duration::nanoseconds(50);
    const NoAllocation guard;
    (void)rig.a.worker.turn(rig.now);
    (void)rig.b.worker.turn(rig.now);
  }
  CHECK(NoAllocation::violations() == before);
  CHECK(rig.a.cq.size() == 8);
}

TEST_CASE("READ responses are paced by the responder's QP, ACKs and atomic results are not") {
  PacedRig rig;
  const auto [qa, qb] = rig.pair();
  REQUIRE(rig.b.worker.set_congestion_control(qb, FixedRate{Rate::mbps(100)}));
  double read_bytes = 0;
  std::vector<Instant> acks, atomics;
  rig.tap_b.look = [&](Instant now, const wire::Packet& packet, std::uint32_t frame) {
    if (is_ack(packet))
      acks.push_back(now);
    else if (packet.opcode == wire::Opcode::RC_ATOMIC_ACKNOWLEDGE)
      atomics.push_back(now);
    else
      read_bytes += frame + kOverhead;
    return Fate::PASS;
  };
  const verbs::Sge sge{rig.source.mr.addr, 500'000, rig.source.mr.lkey};
  verbs::SendWr read = write_wr(1, sge, rig.sink.mr);
  read.opcode = verbs::WrOpcode::RDMA_READ;
  REQUIRE(rig.a.worker.post_send(qa, read) == transport::PostResult::OK);
  // On another QP of b, an atomic and a WRITE are answered at once.
  const auto [other_a, other_b] = rig.pair();
  REQUIRE(rig.b.worker.set_congestion_control(other_b, FixedRate{Rate::mbps(1)}));
  const verbs::Sge eight{rig.source.mr.addr, 8, rig.source.mr.lkey};
  verbs::SendWr atomic = write_wr(2, eight, rig.sink.mr);
  atomic.opcode = verbs::WrOpcode::ATOMIC_FETCH_AND_ADD;
  const Instant start = rig.now;
  for (int i = 0; i < 10; ++i) {
    REQUIRE(rig.a.worker.post_send(other_a, atomic) == transport::PostResult::OK);
    rig.write(other_a, 64);
  }
  rig.run(start + Duration::milliseconds(10));
  CHECK(atomics.size() == 10);
  CHECK(acks.size() >= 1);
  for (const Instant at : atomics) CHECK(at == start);
  for (const Instant at : acks) CHECK(at == start);
  CHECK(read_bytes >= Rate::mbps(100).bytes_in(Duration::milliseconds(10)));
  CHECK(read_bytes <= Rate::mbps(100).bytes_in(Duration::milliseconds(10)) + 4200);
}

TEST_CASE("An ACK leaves at once though the QP's own data has to wait") {
  PacedRig rig;
  const auto [qa, qb] = rig.pair();
  REQUIRE(rig.b.worker.set_congestion_control(qb, FixedRate{Rate::mbps(1)}));
  // b's data: 4 KiB at 1 Mb/s is 33 ms; the second packet waits.
  const verbs::Sge sge{rig.sink.mr.addr, 100'000, rig.sink.mr.lkey};
  REQUIRE(rig.b.worker.post_send(qb, write_wr(1, sge, rig.source.mr)) == transport::PostResult::OK);
  rig.run(rig.now + Duration::microseconds(10));
  int acks = 0, data = 0;
  rig.tap_b.look = [&](Instant, const wire::Packet& packet, std::uint32_t) {
    ++(is_ack(packet) ? acks : data);
    return Fate::PASS;
  };
  rig.write(qa, 64);
  rig.run(rig.now + Duration::microseconds(10));
  CHECK(acks == 1);
  CHECK(data == 0);
  CHECK(rig.a.cq.size() == 1);
  // The data goes on when its time has come, and only then.
  rig.run(rig.now + Duration::milliseconds(40));
  CHECK(data == 1);
}

TEST_CASE("After a stall a QP makes up for the burst and no more") {
  PacedRig rig;
  const auto [qa, qb] = rig.pair();
  REQUIRE(rig.a.worker.set_congestion_control(qa, FixedRate{Rate::gbps(33)}));
  double bytes = 0;
  rig.tap_a.look = [&](Instant, const wire::Packet&, std::uint32_t frame) {
    bytes += frame + kOverhead;
    return Fate::PASS;
  };
  for (int i = 0; i < 8; ++i) rig.write(qa, 1u << 20);
  rig.run(rig.now + Duration::microseconds(20));
  bytes = 0;
  rig.now = rig.now + Duration::milliseconds(5);  // nobody turned
  for (int i = 0; i < 10; ++i) (void)rig.a.worker.turn(rig.now);
  CHECK(bytes >= Rate::gbps(33).bytes_in(Duration::microseconds(10)));
  CHECK(bytes <= Rate::gbps(33).bytes_in(Duration::microseconds(10)) + 4200);
}

TEST_CASE("A QP that is released from control or destroyed while it waits leaves nothing behind") {
  PacedRig rig;
  const auto [qa, qb] = rig.pair();
  const auto [qc, qd] = rig.pair();
  for (const Qpn qpn : {qa, qc}) {
    REQUIRE(rig.a.worker.set_congestion_control(qpn, FixedRate{Rate::mbps(1)}));
    rig.write(qpn, 100'000);
  }
  rig.run(rig.now + Duration::microseconds(10));
  CHECK(rig.a.cq.size() == 0);
  REQUIRE(rig.a.worker.set_congestion_control(qa, congestion::NoControl{}));
  rig.run(rig.now + Duration::microseconds(10));
  CHECK(rig.a.cq.size() == 1);
  CHECK_FALSE(rig.a.worker.congestion_state(qa, rig.now));
  rig.a.worker.destroy_qp(qc);
  rig.run(rig.now + Duration::seconds(1));  // timers of the QP that is done run out
  CHECK(rig.a.worker.next_deadline().is_never());
  CHECK_FALSE(rig.a.worker.set_congestion_control(qc, congestion::NoControl{}));
}

TEST_CASE("Congestion control that cannot work is refused with what is missing") {
  engine::WorkerConfig config = paced_config(0);
  config.line_rate = {};
  PacedRig rig{config, paced_config(1)};
  const auto [qa, qb] = rig.pair();
  const auto refused = rig.a.worker.set_congestion_control(qa, dcqcn());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().place == "line_rate");
  CHECK_FALSE(rig.a.worker.set_congestion_control(qa, FixedRate{}));
  CHECK(rig.a.worker.set_congestion_control(qa, FixedRate{Rate::gbps(1)}));
  auto wrong = dcqcn();
  wrong.dce_tcp_g = 0;
  CHECK_FALSE(rig.b.worker.set_congestion_control(qb, wrong));
  CHECK_FALSE(rig.a.worker.set_traffic_class(qa, 1));
}

TEST_CASE("Classes share a slow port by weight, and a strict one goes before them") {
  engine::WorkerConfig config = paced_config(0);
  config.traffic_classes = {{false, 1}, {false, 3}, {true, 1}};
  PacedRig rig{config, paced_config(1)};
  rig.tap_a.takes = 4;  // per turn
  std::map<std::uint32_t, int> class_of;
  std::vector<Qpn> qpns;
  for (std::uint8_t i = 0; i < 6; ++i) {
    const auto [qa, qb] = rig.pair();
    const std::uint8_t traffic_class = i % 2;
    REQUIRE(rig.a.worker.set_traffic_class(qa, traffic_class));
    class_of[qb.value()] = traffic_class;
    qpns.push_back(qa);
    for (int n = 0; n < 16; ++n) rig.write(qa, traffic_class == 0 ? 1u << 20 : 3000);
  }
  std::map<int, double> bytes;
  rig.tap_a.look = [&](Instant, const wire::Packet& packet, std::uint32_t frame) {
    bytes[class_of[packet.dest_qpn().value()]] += frame;
    return Fate::PASS;
  };
  const auto turn = [&] {
    rig.now = rig.now + Duration::microseconds(1);
    (void)rig.a.worker.turn(rig.now);
    (void)rig.b.worker.turn(rig.now);
    std::array<verbs::Wc, 64> wcs;
    const std::size_t n = rig.a.cq.poll(wcs);
    for (std::size_t i = 0; i < n; ++i) {
      const Qpn qpn{static_cast<std::uint32_t>(wcs[i].wr_id)};
      const bool first_class = (std::ranges::find(qpns, qpn) - qpns.begin()) % 2 == 0;
      rig.write(qpn, first_class ? 1u << 20 : 3000);
    }
  };
  for (int i = 0; i < 10'000; ++i) turn();
  CHECK(bytes[1] / (bytes[0] + bytes[1]) == Approx(0.75).epsilon(0.01));

  const auto [qa, qb] = rig.pair();
  REQUIRE(rig.a.worker.set_traffic_class(qa, 2));
  class_of[qb.value()] = 2;
  for (int i = 0; i < 200; ++i) turn();
  bytes.clear();
  rig.write(qa, 1u << 20);
  for (int i = 0; i < 50; ++i) turn();
  // What was built before it goes first, at most a burst of each turn's four.
  CHECK(bytes[2] > 40 * 4 * 4096);
}

TEST_CASE("Thousands of QPs that were cut and fell silent cost nothing until they send again") {
  constexpr std::uint32_t kQps = 2000;
  PacedRig rig{paced_config(0, kQps), paced_config(1, kQps)};
  rig.tap_a.look = [](Instant, const wire::Packet&, std::uint32_t) { return Fate::MARK; };
  std::vector<Qpn> qpns;
  for (std::uint32_t i = 0; i < kQps; ++i) {
    qpns.push_back(rig.pair(4).first);
    REQUIRE(rig.a.worker.set_congestion_control(qpns.back(), dcqcn("nvidia")));
    rig.write(qpns.back(), 64);
  }
  rig.run(rig.now + Duration::seconds(1));
  CHECK(rig.a.cq.size() == kQps);
  CHECK(rig.a.worker.counters().rp_cnp_handled == kQps);
  // Limiters run, but nobody waits for them.
  CHECK(rig.a.worker.next_deadline().is_never());
  const auto state = rig.a.worker.congestion_state(qpns.front(), rig.now).value();
  CHECK(state.limited);
  CHECK(state.cuts == 1);
  CHECK(state.t == 3333);  // 300 us each, skipped in one step
  CHECK(state.rc.gbps() == Approx(100));
}

TEST_CASE("Two runs from one seed send the same frames at the same nanoseconds") {
  const auto digest = [] {
    PacedRig rig;
    Prng prng{17};
    std::uint64_t hash = 0;
    const auto look = [&](Instant now, const wire::Packet& packet, std::uint32_t frame) {
      for (const std::uint64_t word :
           {static_cast<std::uint64_t>(now.ns()), std::uint64_t{frame},
            std::uint64_t{packet.psn().value()}, std::uint64_t{packet.dest_qpn().value()}})
        hash = (hash ^ word) * 0x100000001b3;
      return prng.chance(0.02) ? Fate::MARK : prng.chance(0.01) ? Fate::LOSE : Fate::PASS;
    };
    rig.tap_a.look = rig.tap_b.look = look;
    for (const std::string_view preset : congestion::preset_names()) {
      const auto [qa, qb] = rig.pair();
      REQUIRE(rig.a.worker.set_congestion_control(qa, dcqcn(preset)));
      for (int i = 0; i < 16; ++i) rig.write(qa, 50'000);
    }
    rig.run(rig.now + Duration::milliseconds(200), closed_loop(rig, 50'000));
    return hash;
  };
  const std::uint64_t first = digest();
  CHECK(first == digest());
}

}  // namespace roce::test
