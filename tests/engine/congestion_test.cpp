// Marks, CNPs and their effect in whole workers.
#include <catch2/catch.hpp>

#include "engine/paced_rig.hpp"

namespace roce::test {
namespace {

using congestion::FixedRate;
using congestion::NpRule;
using congestion::NpScope;
using Fate = TapPort::Fate;

congestion::DcqcnConfig paper() {
  return congestion::make_preset("paper", Rate::gbps(100)).value();
}

bool is_cnp(const wire::Packet& packet) {
  return packet.opcode == wire::Opcode::CNP;
}

/// An RC WRITE ONLY of 64 bytes for a QP of rig.a, marked, as b would send it.
Bytes marked_write(PacedRig& rig, Qpn dest, std::uint32_t psn, std::uint16_t vlan_tci = 0) {
  wire::PathAttributes path;
  path.source_mac = rig.b.mac;
  path.destination_mac = rig.a.mac;
  path.source = rig.b.address.address;
  path.destination = rig.a.address.address;
  path.traffic_class = 3;
  if (vlan_tci != 0) path.vlan_tci = vlan_tci;
  return build_frame(
      path, {.opcode = wire::Opcode::RC_RDMA_WRITE_ONLY, .dest_qpn = dest, .psn = Psn{psn}}, 64,
      [&](wire::FrameBuilder& frame) {
        frame.reth().va.set(rig.source.mr.addr);
        frame.reth().rkey.set(rig.source.mr.rkey);
        frame.reth().dma_length.set(64);
      });
}

Bytes cnp_for(PacedRig& rig, Qpn dest, IpAddress source) {
  wire::PathAttributes path;
  path.source_mac = rig.b.mac;
  path.destination_mac = rig.a.mac;
  path.source = source;
  path.destination = rig.a.address.address;
  return build_frame(
      path, {.opcode = wire::Opcode::CNP, .dest_qpn = dest, .mig_req = false, .becn = true}, 0);
}

Instant operator+(Instant t, std::int64_t us) {
  return t + Duration::microseconds(us);
}

/// The frames that a sends, from the IP header on.
std::vector<std::string> record_a(PacedRig& rig, const std::function<void()>& act) {
  std::vector<std::string> frames;
  rig.tap_a.look = [&](Instant, const wire::Packet& packet, std::uint32_t) {
    frames.push_back(to_hex({packet.l3, packet.l3_bytes}));
    return Fate::PASS;
  };
  act();
  rig.tap_a.look = {};
  return frames;
}

}  // namespace

TEST_CASE("A mark brings a CNP, byte for byte as ConnectX sends it, before the ACK") {
  PacedRig rig{paced_config(0),
               paced_config(1),
               {IpAddress::v4(192, 0, 2, 1), 24},
               {IpAddress::v4(192, 0, 2, 2), 24}};
  const Qpn qa = rig.a.rc_qp();
  rig.a.connect(qa, rig.b, Qpn{0x12});
  const auto frames = record_a(rig, [&] {
    rig.give(rig.a, marked_write(rig, qa, 100));
    (void)rig.a.worker.turn(rig.now);
  });
  REQUIRE(frames.size() >= 1);
  CHECK(frames[0] ==
        "45c2003c000040004011b5ebc0000201c0000202000012b7002800008100ffff400000120000000000000000"
        "0000000000000000000000000c476b9a");
  CHECK(rig.a.worker.counters().np_ecn_marked_roce_packets == 1);
  CHECK(rig.a.worker.counters().np_cnp_sent == 1);
}

TEST_CASE("Marked data slows its sender down by the reaction point's rules, and it recovers") {
  PacedRig rig;
  const auto [qa, qb] = rig.pair();
  REQUIRE(rig.a.worker.set_congestion_control(qa, paper()));
  std::vector<congestion::RpEvent> events;
  rig.a.worker.observe_congestion(
      qa, {[](void* context, const congestion::RpEvent& event) {
             static_cast<std::vector<congestion::RpEvent>*>(context)->push_back(event);
           },
           &events});
  int sent = 0;
  rig.tap_a.look = [&](Instant, const wire::Packet&, std::uint32_t) {
    return ++sent == 3 ? Fate::MARK : Fate::PASS;
  };
  for (int i = 0; i < 8; ++i) rig.write(qa, 1u << 20);
  const Instant start = rig.now;
  rig.run(start + 50);
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == congestion::RpEventKind::CNP_CUT);
  // The third packet leaves when the two before it are paid off.
  CHECK((events[0].at - start).ns() > 600);
  CHECK((events[0].at - start).ns() < 700);
  auto state = rig.a.worker.congestion_state(qa, rig.now);
  REQUIRE(state);
  CHECK(state->rc == Rate::gbps(50));
  CHECK(state->cnps == 1);
  CHECK(state->limited);
  rig.run(start + 56);
  CHECK(rig.a.worker.congestion_state(qa, rig.now)->rc == Rate::gbps(75));
  CHECK(rig.b.worker.counters().np_cnp_sent == 1);
  CHECK(rig.a.worker.counters().rp_cnp_handled == 1);
  CHECK(rig.a.worker.counters().rp_cnp_ignored == 0);
}

TEST_CASE("Data of QPs that heed marks says ECT(0); nothing else does, and all stays well-formed") {
  for (const bool v6 : {false, true}) {
    const auto ip = [&](std::uint8_t last) {
      IpAddress address = IpAddress::v4(198, 18, 0, last);
      if (v6) {
        address = {};
        address.bytes[0] = 0xfd;
        address.bytes[15] = last;
      }
      return address;
    };
    const std::uint8_t length = v6 ? 64 : 24;
    PacedRig rig{paced_config(0), paced_config(1), {ip(1), length}, {ip(2), length}};
    const auto [heeds, heeds_peer] = rig.pair();
    const auto [fixed, fixed_peer] = rig.pair();
    const auto [none, none_peer] = rig.pair();
    REQUIRE(rig.a.worker.set_congestion_control(heeds, paper()));
    REQUIRE(rig.a.worker.set_congestion_control(fixed, FixedRate{Rate::gbps(10)}));
    const Qpn peer = heeds_peer;
    int data = 0, ect = 0, other_ect = 0;
    rig.tap_a.look = [&](Instant, const wire::Packet& packet, std::uint32_t) {
      ++data;
      ++((packet.traffic_class & 3) == 2 && packet.dest_qpn() == peer ? ect : other_ect);
      if (packet.traffic_class == 0 && packet.dest_qpn() != peer) --other_ect;
      return Fate::PASS;
    };
    rig.tap_b.look = [&](Instant, const wire::Packet& packet, std::uint32_t) {
      if (packet.traffic_class != 0) ++other_ect;
      return Fate::PASS;
    };
    for (const Qpn qpn : {heeds, fixed, none}) rig.write(qpn, 10'000);
    rig.run(rig.now + 100);
    CHECK(rig.a.cq.size() == 3);
    CHECK(data == 9);
    CHECK(ect == 3);
    CHECK(other_ect == 0);
    CHECK(rig.b.worker.worker_counters().verdicts[static_cast<std::size_t>(wire::Verdict::ROCE)] ==
          9);
  }
}

TEST_CASE("A CNP that is not the peer's, or for a QP without control, is ignored and counted") {
  PacedRig rig;
  const auto [qa, qb] = rig.pair();
  REQUIRE(rig.a.worker.set_congestion_control(qa, paper()));
  const auto [plain, plain_peer] = rig.pair();
  const auto [fixed, fixed_peer] = rig.pair();
  REQUIRE(rig.a.worker.set_congestion_control(fixed, FixedRate{Rate::gbps(1)}));
  rig.give(rig.a, cnp_for(rig, qa, IpAddress::v4(198, 18, 0, 77)));
  rig.give(rig.a, cnp_for(rig, plain, rig.b.address.address));
  rig.give(rig.a, cnp_for(rig, fixed, rig.b.address.address));
  (void)rig.a.worker.turn(rig.now);
  CHECK(rig.a.worker.counters().rp_cnp_handled == 0);
  CHECK(rig.a.worker.counters().rp_cnp_ignored == 3);
  CHECK(rig.a.worker.congestion_state(qa, rig.now)->rc == Rate::gbps(100));
  rig.give(rig.a, cnp_for(rig, qa, rig.b.address.address));
  (void)rig.a.worker.turn(rig.now);
  CHECK(rig.a.worker.counters().rp_cnp_handled == 1);
  CHECK(rig.a.worker.counters().rcvd_pkts == 4);
  CHECK(rig.a.worker.congestion_state(qa, rig.now)->rc == Rate::gbps(50));
}

TEST_CASE("BECN in an ACK counts as a CNP, and the ACK as an ACK") {
  PacedRig rig;
  const Qpn qa = rig.a.rc_qp();
  rig.a.connect(qa, rig.b, Qpn{0x12});
  REQUIRE(rig.a.worker.set_congestion_control(qa, paper()));
  rig.write(qa, 64);
  (void)rig.a.worker.turn(rig.now);
  wire::PathAttributes path;
  path.source_mac = rig.b.mac;
  path.destination_mac = rig.a.mac;
  path.source = rig.b.address.address;
  path.destination = rig.a.address.address;
  rig.give(
      rig.a,
      build_frame(
          path,
          {.opcode = wire::Opcode::RC_ACKNOWLEDGE, .dest_qpn = qa, .psn = Psn{100}, .becn = true},
          0, [](wire::FrameBuilder& frame) { frame.aeth().syndrome = 0x1f; }));
  (void)rig.a.worker.turn(rig.now);
  CHECK(rig.a.worker.counters().rp_cnp_handled == 1);
  CHECK(rig.a.completion().status == verbs::WcStatus::SUCCESS);
}

TEST_CASE("CNPs keep their interval per scope, and suppressed marks are counted") {
  for (const auto& [scope, expected] : std::vector<std::pair<NpScope, int>>{
           {NpScope::QP, 6}, {NpScope::SOURCE_IP, 3}, {NpScope::PORT, 3}}) {
    engine::WorkerConfig config = paced_config(0);
    config.np.scope = scope;
    config.np.min_time_between_cnps = Duration::microseconds(50);
    PacedRig rig{config, paced_config(1)};
    const Qpn first = rig.a.rc_qp(), second = rig.a.rc_qp();
    rig.a.connect(first, rig.b, Qpn{0x12});
    rig.a.connect(second, rig.b, Qpn{0x13});
    int cnps = 0;
    rig.tap_a.look = [&](Instant, const wire::Packet& packet, std::uint32_t) {
      if (is_cnp(packet)) ++cnps;
      return Fate::PASS;
    };
    // Every 10 us for 150 us, one mark each.
    for (std::uint32_t i = 0; i < 15; ++i) {
      for (const Qpn qpn : {first, second}) rig.give(rig.a, marked_write(rig, qpn, 100 + i));
      (void)rig.a.worker.turn(rig.now);
      rig.now = rig.now + 10;
    }
    CHECK(cnps == expected);
    CHECK(rig.a.worker.counters().np_cnp_sent == static_cast<std::uint64_t>(expected));
    CHECK(rig.a.worker.worker_counters().np_marks_suppressed ==
          30u - static_cast<unsigned>(expected));
    CHECK(rig.a.worker.np_counters().marked == 30);
  }
}

TEST_CASE("By the window rule the CNP leaves at the window's end, which next_deadline tells") {
  engine::WorkerConfig config = paced_config(0);
  config.np.rule = NpRule::WINDOW;
  config.np.min_time_between_cnps = Duration::microseconds(50);
  PacedRig rig{config, paced_config(1)};
  const Qpn qa = rig.a.rc_qp();
  rig.a.connect(qa, rig.b, Qpn{0x12});
  std::vector<Instant> cnps;
  rig.tap_a.look = [&](Instant now, const wire::Packet& packet, std::uint32_t) {
    if (is_cnp(packet)) cnps.push_back(now);
    return Fate::PASS;
  };
  const Instant start = rig.now;
  rig.give(rig.a, marked_write(rig, qa, 100));
  rig.give(rig.a, marked_write(rig, qa, 101));
  rig.run(start + 200);
  CHECK(cnps == std::vector<Instant>{start, start + 50});
}

TEST_CASE("A NAK for a lost packet brings a CNP where that is asked for") {
  for (const bool asked : {false, true}) {
    engine::WorkerConfig config = paced_config(1);
    config.np.cnp_on_nak = asked;
    PacedRig rig{paced_config(0), config};
    const auto [qa, qb] = rig.pair();
    REQUIRE(rig.a.worker.set_congestion_control(qa, paper()));
    int sent = 0;
    rig.tap_a.look = [&](Instant, const wire::Packet&, std::uint32_t) {
      return ++sent == 2 ? Fate::LOSE : Fate::PASS;
    };
    rig.write(qa, 40'000);
    rig.run(rig.now + 100);
    CHECK(rig.a.cq.size() == 1);
    CHECK(rig.b.worker.counters().send_seq_nak == 1);
    CHECK(rig.b.worker.counters().np_cnp_sent == (asked ? 1u : 0u));
    CHECK(rig.a.worker.counters().rp_cnp_handled == (asked ? 1u : 0u));
    CHECK(rig.b.worker.np_counters().cnps_for_naks == (asked ? 1u : 0u));
  }
}

TEST_CASE("A CNP for a tagged packet is tagged, with its own priority or the packet's") {
  for (const bool of_packet : {false, true}) {
    engine::WorkerConfig config = paced_config(0);
    config.np.cnp_prio = 5;
    config.np.cnp_prio_of_packet = of_packet;
    PacedRig rig{config, paced_config(1)};
    constexpr std::uint16_t kTci = 3 << 13 | 111;
    (void)rig.a.worker.add_interface(
        {rig.a.mac, {rig.a.address}, {}, std::uint16_t{111}, engine::NeighbourDuty::OURS});
    const Qpn qa = rig.a.rc_qp();
    rig.a.connect(qa, rig.b, Qpn{0x12});
    std::uint16_t tci = 0;
    rig.tap_a.look = [&](Instant, const wire::Packet& packet, std::uint32_t) {
      if (is_cnp(packet)) tci = packet.vlan_tci;
      return Fate::PASS;
    };
    rig.give(rig.a, marked_write(rig, qa, 100, kTci));
    (void)rig.a.worker.turn(rig.now);
    CHECK(tci == ((of_packet ? 3 : 5) << 13 | 111));
  }
}

TEST_CASE("A marked datagram brings a CNP to the QP that its DETH names") {
  PacedRig rig;
  verbs::QpInitAttributes init;
  init.type = verbs::QpType::UD;
  init.pd = rig.a.pd;
  init.send_cq = init.recv_cq = &rig.a.cq;
  const Qpn ud = rig.a.worker.create_qp(init).value();
  verbs::QpAttributes attributes;
  attributes.qp_state = verbs::QpState::INIT;
  attributes.qkey = 7;
  REQUIRE(rig.a.worker.modify_qp(ud, attributes));
  attributes = {};
  attributes.qp_state = verbs::QpState::RTR;
  REQUIRE(rig.a.worker.modify_qp(ud, attributes));
  wire::PathAttributes path;
  path.source_mac = rig.b.mac;
  path.destination_mac = rig.a.mac;
  path.source = rig.b.address.address;
  path.destination = rig.a.address.address;
  path.traffic_class = 3;
  rig.give(rig.a, build_frame(path, {.opcode = wire::Opcode::UD_SEND_ONLY, .dest_qpn = ud}, 16,
                              [](wire::FrameBuilder& frame) {
                                frame.deth().qkey.set(7);
                                frame.deth().source_qpn_field.set(0x4711);
                              }));
  Qpn told;
  rig.tap_a.look = [&](Instant, const wire::Packet& packet, std::uint32_t) {
    if (is_cnp(packet)) told = packet.dest_qpn();
    return Fate::PASS;
  };
  (void)rig.a.worker.turn(rig.now);
  CHECK(told == Qpn{0x4711});
}

TEST_CASE(
    "Marks on ACKs and CNPs, for unready QPs, or with the notification point off bring nothing") {
  engine::WorkerConfig off = paced_config(0);
  off.np.enabled = false;
  for (const bool enabled : {true, false}) {
    PacedRig rig{enabled ? paced_config(0) : off, paced_config(1)};
    const Qpn ready = rig.a.rc_qp(), unready = rig.a.rc_qp();
    rig.a.connect(ready, rig.b, Qpn{0x12});
    rig.give(rig.a, marked_write(rig, unready, 100));
    wire::PathAttributes path;
    path.source_mac = rig.b.mac;
    path.destination_mac = rig.a.mac;
    path.source = rig.b.address.address;
    path.destination = rig.a.address.address;
    path.traffic_class = 3;
    rig.give(rig.a,
             build_frame(path, {.opcode = wire::Opcode::RC_ACKNOWLEDGE, .dest_qpn = ready}, 0));
    rig.give(rig.a,
             build_frame(path, {.opcode = wire::Opcode::CNP, .dest_qpn = ready, .becn = true}, 0));
    if (!enabled) rig.give(rig.a, marked_write(rig, ready, 100));
    (void)rig.a.worker.turn(rig.now);
    CHECK(rig.a.worker.counters().np_cnp_sent == 0);
  }
}

TEST_CASE("More CNPs than a port takes wait, and beyond that are dropped and counted") {
  engine::WorkerConfig config = paced_config(0);
  config.np.min_time_between_cnps = {};
  PacedRig rig{config, paced_config(1)};
  const Qpn qa = rig.a.rc_qp();
  rig.a.connect(qa, rig.b, Qpn{0x12});
  rig.tap_a.takes = 0;
  for (std::uint32_t i = 0; i < 400; ++i) {
    rig.give(rig.a, marked_write(rig, qa, 100 + i));
    (void)rig.a.worker.turn(rig.now);
  }
  const std::uint64_t dropped = rig.a.worker.worker_counters().np_cnp_dropped;
  CHECK(dropped > 0);
  CHECK(dropped <= 400 - 256);
  int cnps = 0;
  rig.tap_a.look = [&](Instant, const wire::Packet& packet, std::uint32_t) {
    if (is_cnp(packet)) ++cnps;
    return Fate::PASS;
  };
  rig.tap_a.takes = 32;
  rig.run(rig.now + 10);
  CHECK(static_cast<std::uint64_t>(cnps) == 400 - dropped);
}

}  // namespace roce::test
