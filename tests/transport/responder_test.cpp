// The RC responder's rules (IBTA 9.7.4 to 9.7.5), by packets made one at a time.
#include "host.hpp"

using namespace roce;
using namespace roce::test;

namespace {

/// A responder under test: b, to which packets are made up.
struct Bench : Pair {
  explicit Bench(const Options& o = {}) : Pair(o), psn(o.psn_a.value()) {}
  std::uint32_t psn;  ///< of the next packet to b

  void send(Opcode opcode, std::size_t payload, bool ack_request = true) {
    give(b, make(b, bth(b, opcode, psn++, ack_request), payload));
  }
  void write(Opcode opcode, std::uint32_t length, std::size_t payload,
             std::optional<std::uint32_t> rkey = std::nullopt, std::uint64_t offset = 0) {
    give(b, make_reth(b, opcode, psn++, offset, length, payload, rkey));
  }
  void read(std::uint32_t length, std::optional<std::uint32_t> rkey = std::nullopt) {
    write(Opcode::RC_RDMA_READ_REQUEST, length, 0, rkey);
    psn += length == 0 ? 0 : (length - 1) / verbs::bytes_of(options.mtu);
  }
  void atomic(std::uint64_t va, std::uint32_t rkey, std::uint64_t add = 1) {
    give(b, make(b, bth(b, Opcode::RC_FETCH_ADD, psn++, true), 0, [&](wire::FrameBuilder& f) {
           f.atomic_eth().va.set(va);
           f.atomic_eth().rkey.set(rkey);
           f.atomic_eth().swap_or_add.set(add);
         }));
  }
  [[nodiscard]] Frame answer() {
    auto frame = pull(b);
    REQUIRE(frame.has_value());
    return *frame;
  }
  void expect_ack(std::uint32_t ack_psn, std::uint32_t msn) {
    const Frame f = answer();
    CHECK(f.opcode() == Opcode::RC_ACKNOWLEDGE);
    CHECK(f.syndrome() == 0x1f);
    CHECK(f.psn() == ack_psn);
    CHECK(f.msn() == msn);
    const auto packet = f.packet();
    CHECK(packet.bth->pkey.get() == 0xffff);
    CHECK_FALSE(packet.bth->ack_request());
    CHECK_FALSE(packet.bth->solicited());
  }
  void expect_quiet() { CHECK_FALSE(b.qp->wants_tx()); }
  /// A fatal NAK at nak_psn; b is in ERR after it, and quiet.
  void expect_fatal(std::uint8_t syndrome, std::uint32_t nak_psn) {
    const Frame f = answer();
    CHECK(f.opcode() == Opcode::RC_ACKNOWLEDGE);
    CHECK(unsigned{f.syndrome()} == unsigned{syndrome});
    CHECK(f.psn() == nak_psn);
    CHECK(b.qp->state() == QpState::ERR);
    expect_quiet();
  }
};

constexpr std::uint8_t kSequence = 0x60, kInvalid = 0x61, kAccess = 0x62, kOperational = 0x63;

}  // namespace

TEST_CASE("A gap gets one NAK with ePSN, then silence until ePSN arrives") {
  Bench t;
  for (std::uint64_t i = 0; i < 4; ++i) t.b.post_recv(i, 0, 256);
  t.send(Opcode::RC_SEND_ONLY, 8);
  t.expect_ack(0x100, 1);
  t.psn = 0x103;
  t.send(Opcode::RC_SEND_ONLY, 8);
  const Frame nak = t.answer();
  CHECK(nak.syndrome() == kSequence);
  CHECK(nak.psn() == 0x101);
  CHECK(nak.msn() == 1);
  t.send(Opcode::RC_SEND_ONLY, 8);
  t.send(Opcode::RC_SEND_ONLY, 8);
  t.expect_quiet();
  CHECK(t.b.counters.out_of_sequence == 1);
  CHECK(t.b.counters.drop_after_nak == 2);
  t.psn = 0x101;
  t.send(Opcode::RC_SEND_ONLY, 8);
  t.expect_ack(0x101, 2);
  t.psn = 0x103;  // a new gap, a new NAK: the peer may resend only the hole
  t.send(Opcode::RC_SEND_ONLY, 8);
  CHECK(t.answer().psn() == 0x102);
  CHECK(t.b.counters.out_of_sequence == 2);
  CHECK(t.b.receives().size() == 2);
}

TEST_CASE("A NAK that has not left when the missing packet comes speaks of what is missing then") {
  Bench t;
  for (std::uint64_t i = 0; i < 8; ++i) t.b.post_recv(i, 0, 256);
  t.psn = 0x101;
  t.send(Opcode::RC_SEND_ONLY, 8);
  t.psn = 0x100;
  t.send(Opcode::RC_SEND_ONLY, 8);
  const Frame nak = t.answer();
  CHECK(nak.syndrome() == kSequence);
  CHECK(nak.psn() == 0x101);
  t.expect_quiet();
  // All of it has come again before the NAK leaves: nothing is missing, an ACK does.
  t.psn = 0x102;
  t.send(Opcode::RC_SEND_ONLY, 8);
  t.psn = 0x101;
  t.send(Opcode::RC_SEND_ONLY, 8);
  t.send(Opcode::RC_SEND_ONLY, 8);
  t.expect_ack(0x102, 3);
  t.expect_quiet();
}

TEST_CASE("PSNs wrap at 2^24 in sequence, duplicate and gap alike") {
  Bench t({.psn_a = Psn{0xfffffe}});
  for (std::uint64_t i = 0; i < 6; ++i) t.b.post_recv(i, 0, 256);
  for (int i = 0; i < 4; ++i) t.send(Opcode::RC_SEND_ONLY, 4);
  t.expect_ack(0x000001, 4);
  t.psn = 0xffffff;
  t.send(Opcode::RC_SEND_ONLY, 4);
  t.expect_ack(0x000001, 4);
  CHECK(t.b.counters.duplicate_request == 1);
  t.psn = 0x000003;
  t.send(Opcode::RC_SEND_ONLY, 4);
  CHECK(t.answer().psn() == 0x000002);
  // The far half of the circle: 2^23 back is a duplicate, 2^23 - 1 ahead a gap.
  t.psn = 0x000002 + 0x800000;
  t.send(Opcode::RC_SEND_ONLY, 4);
  CHECK(t.b.counters.duplicate_request == 2);
}

TEST_CASE("Any number of packets with AckReq seen together are answered by one ACK") {
  Bench t;
  t.write(Opcode::RC_RDMA_WRITE_FIRST, 256 * 40, 256);
  for (int i = 0; i < 38; ++i) t.send(Opcode::RC_RDMA_WRITE_MIDDLE, 256, i % 8 == 0);
  t.expect_ack(0x100 + 38, 0);  // the message is not complete: MSN stands
  t.expect_quiet();
  t.send(Opcode::RC_RDMA_WRITE_LAST, 256, false);
  t.expect_quiet();  // not asked for
  t.write(Opcode::RC_RDMA_WRITE_ONLY, 4, 4);
  t.expect_ack(0x100 + 40, 2);
  CHECK(t.b.counters.rx_write_requests == 2);
}

TEST_CASE(
    "MSN counts the last packet of SEND and WRITE, READ at acceptance, atomics, no duplicate") {
  Bench t;
  t.b.post_recv(1, 0, 4096);
  t.send(Opcode::RC_SEND_FIRST, 256);
  t.expect_ack(0x100, 0);
  t.send(Opcode::RC_SEND_LAST, 10);
  t.expect_ack(0x101, 1);
  t.read(700);
  const Frame first = t.answer();
  CHECK(first.opcode() == Opcode::RC_RDMA_READ_RESPONSE_FIRST);
  CHECK(first.msn() == 2);
  CHECK(t.answer().opcode() == Opcode::RC_RDMA_READ_RESPONSE_MIDDLE);
  const Frame last = t.answer();
  CHECK(last.opcode() == Opcode::RC_RDMA_READ_RESPONSE_LAST);
  CHECK(last.msn() == 2);
  CHECK(last.psn() == 0x104);
  t.atomic(Host::kIova, t.b.mr.rkey);
  CHECK(t.answer().msn() == 3);
  t.psn = 0x101;
  t.send(Opcode::RC_SEND_LAST, 10);  // duplicate
  CHECK(t.answer().msn() == 3);
  t.expect_quiet();
}

TEST_CASE("Opcode sequence violations are NAKed 0x61 and end the QP") {
  using Case = std::pair<std::vector<Opcode>, Opcode>;
  const auto sequence =
      GENERATE(Case{{}, Opcode::RC_SEND_MIDDLE}, Case{{}, Opcode::RC_SEND_LAST},
               Case{{}, Opcode::RC_RDMA_WRITE_MIDDLE}, Case{{}, Opcode::RC_RDMA_WRITE_LAST},
               Case{{Opcode::RC_SEND_FIRST}, Opcode::RC_SEND_FIRST},
               Case{{Opcode::RC_SEND_FIRST}, Opcode::RC_SEND_ONLY},
               Case{{Opcode::RC_SEND_FIRST}, Opcode::RC_RDMA_WRITE_MIDDLE},
               Case{{Opcode::RC_SEND_FIRST}, Opcode::RC_RDMA_READ_REQUEST},
               Case{{Opcode::RC_SEND_FIRST}, Opcode::RC_FETCH_ADD},
               Case{{Opcode::RC_RDMA_WRITE_FIRST}, Opcode::RC_SEND_LAST},
               Case{{Opcode::RC_RDMA_WRITE_FIRST}, Opcode::RC_RDMA_WRITE_ONLY},
               Case{{Opcode::RC_RDMA_WRITE_FIRST}, Opcode::RC_COMPARE_SWAP},
               Case{{Opcode::RC_SEND_FIRST, Opcode::RC_SEND_LAST}, Opcode::RC_SEND_LAST});
  Bench t;
  t.b.post_recv(1, 0, 4096);
  t.b.post_recv(2, 0, 4096);
  const auto feed = [&](Opcode opcode) {
    const auto& info = wire::info_of(opcode);
    const std::size_t payload = info.payload == wire::PayloadRule::NONE ? 0 : 256;
    if (info.has(wire::kReth))
      t.write(opcode, 1024, payload);
    else if (info.has(wire::kAtomicEth))
      t.atomic(Host::kIova, t.b.mr.rkey);
    else
      t.send(opcode, payload, false);
  };
  for (const Opcode opcode : sequence.first) feed(opcode);
  const bool in_send = sequence.first.size() == 1 && sequence.first[0] == Opcode::RC_SEND_FIRST;
  const std::uint32_t at = t.psn;
  feed(sequence.second);
  t.expect_fatal(kInvalid, at);
  const auto received = t.b.receives();
  const std::size_t good = sequence.first.size() == 2 ? 1 : 0;
  REQUIRE(received.size() == 2);
  CHECK(received[good].status == (in_send ? WcStatus::REM_INV_REQ_ERR : WcStatus::WR_FLUSH_ERR));
  CHECK(t.b.raised(verbs::AsyncEventType::QP_REQ_ERR) == !in_send);
  CHECK(t.b.counters.resp_invalid_request == 1);
}

TEST_CASE("Length rules: what does not fit the MTU or the RETH is NAKed 0x61") {
  Bench t;
  t.b.post_recv(1, 0, 8192);
  SECTION("SEND_ONLY over the MTU") {
    t.send(Opcode::RC_SEND_ONLY, 257);
  }
  SECTION("SEND_FIRST below the MTU") {
    t.send(Opcode::RC_SEND_FIRST, 255);
  }
  SECTION("SEND_MIDDLE below the MTU") {
    t.send(Opcode::RC_SEND_FIRST, 256, false);
    t.send(Opcode::RC_SEND_MIDDLE, 252, false);
  }
  SECTION("SEND_LAST empty") {
    t.send(Opcode::RC_SEND_FIRST, 256, false);
    t.send(Opcode::RC_SEND_LAST, 0);
  }
  SECTION("WRITE_ONLY shorter than its RETH") {
    t.write(Opcode::RC_RDMA_WRITE_ONLY, 20, 16);
  }
  SECTION("WRITE_ONLY longer than its RETH") {
    t.write(Opcode::RC_RDMA_WRITE_ONLY, 16, 20);
  }
  SECTION("WRITE_FIRST that holds all of its RETH") {
    t.write(Opcode::RC_RDMA_WRITE_FIRST, 256, 256);
  }
  SECTION("WRITE_LAST short of the rest") {
    t.write(Opcode::RC_RDMA_WRITE_FIRST, 512, 256);
    t.send(Opcode::RC_RDMA_WRITE_LAST, 100);
  }
  SECTION("WRITE_MIDDLE where the LAST was due") {
    t.write(Opcode::RC_RDMA_WRITE_FIRST, 512, 256);
    t.send(Opcode::RC_RDMA_WRITE_MIDDLE, 256);
  }
  SECTION("WRITE over 2^31") {
    t.write(Opcode::RC_RDMA_WRITE_FIRST, 0x8000'0001, 256);
  }
  SECTION("READ over 2^31") {
    t.read(0x8000'0001);
    t.psn = 0x101;
  }
  t.expect_fatal(kInvalid, t.psn - 1);
}

TEST_CASE("A SEND longer than the receive WR is NAKed 0x61 and completes LOC_LEN_ERR") {
  Bench t;
  t.b.post_recv(5, 0, 300);
  t.b.post_recv(6, 0, 300);
  t.send(Opcode::RC_SEND_FIRST, 256, false);
  t.send(Opcode::RC_SEND_LAST, 45);
  t.expect_fatal(kInvalid, 0x101);
  const auto received = t.b.receives();
  REQUIRE(received.size() == 2);
  CHECK(received[0].wr_id == 5);
  CHECK(received[0].status == WcStatus::LOC_LEN_ERR);
  CHECK(received[1].status == WcStatus::WR_FLUSH_ERR);
  CHECK(t.b.counters.resp_local_length_error == 1);
  CHECK_FALSE(t.b.raised(verbs::AsyncEventType::QP_REQ_ERR));
}

TEST_CASE("A receive WR with a bad lkey is NAKed 0x63 and completes LOC_PROT_ERR") {
  Bench t;
  const verbs::Sge bad[] = {{Host::kIova, 256, t.b.mr.lkey ^ 1}};
  REQUIRE(t.b.qp->post_recv({5, bad}) == PostResult::OK);
  t.send(Opcode::RC_SEND_ONLY, 45);
  t.expect_fatal(kOperational, 0x100);
  const auto received = t.b.receives();
  REQUIRE(received.size() == 1);
  CHECK(received[0].status == WcStatus::LOC_PROT_ERR);
}

TEST_CASE("Missing QP access flags are NAKed 0x61") {
  Bench t({.access = 0});
  SECTION("WRITE") {
    t.write(Opcode::RC_RDMA_WRITE_ONLY, 4, 4);
  }
  SECTION("READ") {
    t.read(4);
  }
  SECTION("atomic") {
    t.atomic(Host::kIova, t.b.mr.rkey);
  }
  t.expect_fatal(kInvalid, 0x100);
  CHECK(t.b.raised(verbs::AsyncEventType::QP_REQ_ERR));
}

TEST_CASE("Keys: unknown, other PD, lacking access or out of range are NAKed 0x62") {
  Bench t;
  std::vector<std::byte> memory(4096);
  const auto read_only = *t.b.memory.reg_mr(t.b.pd, memory, 0x7000, verbs::ACCESS_REMOTE_READ);
  const auto foreign = *t.b.memory.reg_mr(
      t.b.memory.alloc_pd(), memory, Host::kIova,
      verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE | verbs::ACCESS_REMOTE_READ);
  SECTION("WRITE, unknown key") {
    t.write(Opcode::RC_RDMA_WRITE_ONLY, 4, 4, 0xdead00);
  }
  SECTION("READ, unknown key") {
    t.read(4, 0xdead00);
  }
  SECTION("WRITE, other PD") {
    t.write(Opcode::RC_RDMA_WRITE_ONLY, 4, 4, foreign.rkey);
  }
  SECTION("WRITE, no access") {
    t.give(t.b, t.make(t.b, t.bth(t.b, Opcode::RC_RDMA_WRITE_ONLY, 0x100), 4,
                       [&](wire::FrameBuilder& f) {
                         f.reth().va.set(0x7000);
                         f.reth().rkey.set(read_only.rkey);
                         f.reth().dma_length.set(4);
                       }));
  }
  SECTION("WRITE, one byte past the end, found at the first packet") {
    t.write(Opcode::RC_RDMA_WRITE_FIRST, 512, 256, std::nullopt, Host::kBytes - 511);
  }
  SECTION("WRITE that wraps 2^64") {
    t.write(Opcode::RC_RDMA_WRITE_FIRST, 512, 256, std::nullopt, 0 - Host::kIova - 256);
  }
  SECTION("atomic past the end") {
    t.atomic(Host::kIova + Host::kBytes, t.b.mr.rkey);
  }
  SECTION("region gone between two packets of a WRITE") {
    t.psn = 0xff;
    t.give(t.b, t.make_reth(t.b, Opcode::RC_RDMA_WRITE_FIRST, 0x100, 0, 512, 256));
    t.expect_ack(0x100, 0);
    REQUIRE(t.b.memory.dereg_mr(t.b.mr.rkey));
    t.psn = 0x101;
    t.send(Opcode::RC_RDMA_WRITE_LAST, 256);
    t.expect_fatal(kAccess, 0x101);
    return;
  }
  t.expect_fatal(kAccess, 0x100);
  CHECK(t.b.raised(verbs::AsyncEventType::QP_ACCESS_ERR));
  CHECK(t.b.counters.resp_remote_access_errors == 1);
}

TEST_CASE("Zero-length WRITE and READ are not checked for key and address") {
  Bench t;
  t.write(Opcode::RC_RDMA_WRITE_ONLY, 0, 0, 0xdead00, 0x7777'0000'0000);
  t.expect_ack(0x100, 1);
  t.read(0, 0xdead00);
  const Frame only = t.answer();
  CHECK(only.opcode() == Opcode::RC_RDMA_READ_RESPONSE_ONLY);
  CHECK(only.packet().payload.empty());
  CHECK(t.b.qp->state() == QpState::RTS);
}

TEST_CASE("Misaligned atomics are NAKed 0x61, and so is any READ with no responder resources") {
  Bench t({.rd_atomic = GENERATE(std::uint8_t{0}, std::uint8_t{4})});
  t.atomic(Host::kIova + (t.options.rd_atomic == 0 ? 0 : 4), t.b.mr.rkey);
  t.expect_fatal(kInvalid, 0x100);
}

TEST_CASE("SEND_WITH_INV of a key that may not be invalidated is NAKed, not acknowledged") {
  Bench t;
  t.b.post_recv(1, 0, 64);
  t.give(t.b, t.make(t.b, t.bth(t.b, Opcode::RC_SEND_ONLY_WITH_INVALIDATE, 0x100, true), 4,
                     [&](wire::FrameBuilder& f) { f.ieth().rkey.set(t.b.mr.rkey); }));
  t.expect_fatal(kAccess, 0x100);
  const auto received = t.b.receives();
  REQUIRE(received.size() == 1);
  CHECK(received[0].status == WcStatus::REM_ACCESS_ERR);
}

TEST_CASE("No receive WR: RNR NAK at the packet that needs it, ePSN and MSN stand") {
  Bench t({.min_rnr_timer = 5});
  SECTION("SEND_ONLY") {
    t.send(Opcode::RC_SEND_ONLY, 4);
  }
  SECTION("SEND_FIRST") {
    t.send(Opcode::RC_SEND_FIRST, 256);
  }
  SECTION("WRITE_ONLY_WITH_IMM") {
    t.write(Opcode::RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, 4, 4);
  }
  Frame nak = t.answer();
  CHECK(nak.syndrome() == (0x20 | 5));
  CHECK(nak.psn() == 0x100);
  CHECK(nak.msn() == 0);
  CHECK(t.b.qp->state() == QpState::RTS);
  CHECK(t.b.counters.out_of_buffer == 1);
  // What follows is dropped silently, an early resend is answered anew.
  t.send(Opcode::RC_SEND_MIDDLE, 256);
  t.expect_quiet();
  CHECK(t.b.counters.drop_after_nak == 1);
  t.psn = 0x100;
  t.send(Opcode::RC_SEND_ONLY, 4);
  CHECK(t.answer().syndrome() == (0x20 | 5));
  t.b.post_recv(1, 0, 64);
  t.psn = 0x100;
  t.send(Opcode::RC_SEND_ONLY, 4);
  t.expect_ack(0x100, 1);
  CHECK(t.b.receives().size() == 1);
}

TEST_CASE("WRITE_WITH_IMM needs its receive WR at the last packet, and leaves its SGEs alone") {
  Bench t;
  t.b.buffer[0x9000] = std::byte{0x77};
  t.write(Opcode::RC_RDMA_WRITE_FIRST, 300, 256);
  t.expect_ack(0x100, 0);
  t.send(Opcode::RC_RDMA_WRITE_LAST_WITH_IMMEDIATE, 44);
  const Frame nak = t.answer();
  CHECK(nak.syndrome() == (0x20 | 12));
  CHECK(nak.psn() == 0x101);
  t.b.post_recv(3, 0x9000, 4);
  t.psn = 0x101;
  t.send(Opcode::RC_RDMA_WRITE_LAST_WITH_IMMEDIATE, 44);
  t.expect_ack(0x101, 1);
  const auto received = t.b.receives();
  REQUIRE(received.size() == 1);
  CHECK(received[0].opcode == verbs::WcOpcode::RECV_RDMA_WITH_IMM);
  CHECK(received[0].byte_len == 300);
  CHECK(t.b.buffer[0x9000] == std::byte{0x77});
}

TEST_CASE("Pending SENDs and WRITEs are acknowledged by an ACK of their own before a response") {
  Bench t;
  t.b.post_recv(1, 0, 64);
  t.send(Opcode::RC_SEND_ONLY, 4, false);  // nobody asked
  t.read(300);
  t.write(Opcode::RC_RDMA_WRITE_ONLY, 4, 4);
  t.atomic(Host::kIova, t.b.mr.rkey);
  t.expect_ack(0x100, 1);
  CHECK(t.answer().opcode() == Opcode::RC_RDMA_READ_RESPONSE_FIRST);
  CHECK(t.answer().opcode() == Opcode::RC_RDMA_READ_RESPONSE_LAST);
  t.expect_ack(0x103, 3);
  const Frame atomic = t.answer();
  CHECK(atomic.opcode() == Opcode::RC_ATOMIC_ACKNOWLEDGE);
  CHECK(atomic.psn() == 0x104);
  t.expect_quiet();
}

TEST_CASE("A refusal waits for the responses before it") {
  Bench t;
  t.read(600);
  t.write(Opcode::RC_RDMA_WRITE_ONLY, 4, 4, 0xdead00);
  CHECK(t.b.qp->state() == QpState::ERR);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(t.answer().psn() == 0x100 + i);
  t.expect_fatal(kAccess, 0x103);
}

TEST_CASE("A region that goes while a READ is answered ends it with NAK 0x62 at that PSN") {
  Bench t;
  t.read(256 * 5);
  CHECK(t.answer().psn() == 0x100);
  CHECK(t.answer().psn() == 0x101);
  REQUIRE(t.b.memory.dereg_mr(t.b.mr.rkey));
  t.expect_fatal(kAccess, 0x102);
  CHECK(t.b.raised(verbs::AsyncEventType::QP_ACCESS_ERR));
}

TEST_CASE("CE marks are counted") {
  Bench t;
  t.b.post_recv(1, 0, 64);
  auto path = t.path(t.a);
  path.traffic_class = 3;
  Frame frame;
  frame.bytes.resize(200);
  wire::FrameBuilder builder(frame.bytes, wire::make_path_headers(path),
                             t.bth(t.b, Opcode::RC_SEND_ONLY, 0x100), 4);
  frame.bytes.resize(builder.finish());
  t.give(t.b, frame);
  CHECK(t.b.counters.np_ecn_marked_roce_packets == 1);
  CHECK(t.b.receives().size() == 1);
}
