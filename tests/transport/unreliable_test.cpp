// UC and UD: what they carry, what they drop, and their send errors.
#include "host.hpp"

using namespace roce;
using namespace roce::test;

namespace {

struct Uc : Pair {
  Uc() : Pair({.type = QpType::UC}) {}
  std::uint32_t psn = 0x100;
  void send(Opcode opcode, std::size_t payload) {
    give(b, make(b, bth(b, opcode, psn++), payload));
  }
  void write(Opcode opcode, std::uint32_t length, std::size_t payload,
             std::optional<std::uint32_t> rkey = std::nullopt) {
    give(b, make_reth(b, opcode, psn++, 0x4000, length, payload, rkey));
  }
};

struct Ud : Pair {
  Ud() : Pair({.type = QpType::UD}), ah(wire::make_path_headers(path(a))) {}
  wire::PathHeaders ah;
  PostResult send(std::uint32_t length, std::uint32_t qkey = 0x1111,
                  WrOpcode opcode = WrOpcode::SEND) {
    const verbs::Sge list[] = {a.sge(0, length)};
    verbs::SendWr wr;
    wr.wr_id = length;
    wr.opcode = opcode;
    wr.send_flags = verbs::SEND_SIGNALED;
    wr.sg_list = list;
    wr.imm_data = {9, 8, 7, 6};
    wr.ud = {&ah, b.qp->number(), qkey};
    return a.qp->post_send(wr);
  }
};

}  // namespace

TEST_CASE("UC carries SEND and WRITE with and without immediate, asks for no ACK and gets none") {
  Uc t;
  t.b.post_recv(1, 0x8000, 1000);
  t.b.post_recv(2, 0x8800, 1000);
  t.b.post_recv(3, 0, 0);
  t.a.post(WrOpcode::SEND, 1, 0, 700);
  t.a.post(WrOpcode::SEND_WITH_IMM, 2, 100, 256);
  t.a.post(WrOpcode::RDMA_WRITE, 3, 0, 600, 0xa000, t.b.mr.rkey);
  t.a.post(WrOpcode::RDMA_WRITE_WITH_IMM, 4, 0, 0, 0, 0xdead00);
  const auto frames = t.pull_all(t.a);
  REQUIRE(frames.size() == 8);
  for (const Frame& f : frames) {
    CHECK_FALSE(f.ack_request());
    CHECK(f.packet().info().transport == wire::Transport::UC);
    t.give(t.b, f);
  }
  CHECK(t.a.sends().size() == 4);  // sent is done
  CHECK(t.a.qp->next_deadline().is_never());
  CHECK_FALSE(t.b.qp->wants_tx());
  const auto received = t.b.receives();
  REQUIRE(received.size() == 3);
  CHECK(received[0].byte_len == 700);
  CHECK(received[1].wc_flags == verbs::WC_WITH_IMM);
  CHECK(received[2].opcode == verbs::WcOpcode::RECV_RDMA_WITH_IMM);
  CHECK(received[2].byte_len == 0);
  CHECK(same_bytes(t.b, 0x8000, t.a, 0, 700));
  CHECK(same_bytes(t.b, 0x8800, t.a, 100, 256));
  CHECK(same_bytes(t.b, 0xa000, t.a, 0, 600));
}

TEST_CASE("A gap in UC drops the message under way and what follows until FIRST or ONLY") {
  Uc t;
  t.b.post_recv(1, 0, 1000);
  t.send(Opcode::UC_SEND_FIRST, 256);
  t.psn += 1;
  t.send(Opcode::UC_SEND_MIDDLE, 256);
  t.send(Opcode::UC_SEND_LAST, 10);
  CHECK(t.b.counters.out_of_sequence == 1);
  CHECK(t.b.counters.drop_sequence == 2);
  CHECK(t.b.receives().empty());
  t.psn += 100;
  t.send(Opcode::UC_SEND_FIRST, 256);  // any PSN will do: ePSN is set anew
  t.send(Opcode::UC_SEND_LAST, 10);
  const auto received = t.b.receives();
  REQUIRE(received.size() == 1);
  CHECK(received[0].wr_id == 1);  // the WR of the lost message is used
  CHECK(received[0].byte_len == 266);
}

TEST_CASE("UC messages that break a rule are dropped silently, each with its counter") {
  Uc t;
  SECTION("a message begins within another: the first is lost") {
    t.b.post_recv(1, 0, 1000);
    t.send(Opcode::UC_SEND_FIRST, 256);
    t.send(Opcode::UC_SEND_ONLY, 5);
    const auto received = t.b.receives();
    REQUIRE(received.size() == 1);
    CHECK(received[0].byte_len == 5);
    return;
  }
  SECTION("no receive WR") {
    t.send(Opcode::UC_SEND_FIRST, 256);
    t.send(Opcode::UC_SEND_LAST, 5);
    CHECK(t.b.counters.out_of_buffer == 1);
    CHECK(t.b.counters.drop_sequence == 1);
  }
  SECTION("no receive WR for the immediate") {
    t.write(Opcode::UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE, 4, 4);
    CHECK(t.b.counters.out_of_buffer == 1);
  }
  SECTION("SEND longer than its receive WR") {
    t.b.post_recv(1, 0, 4);
    t.send(Opcode::UC_SEND_ONLY, 5);
    CHECK(t.b.counters.drop_length == 1);
  }
  SECTION("FIRST below the MTU") {
    t.b.post_recv(1, 0, 1000);
    t.send(Opcode::UC_SEND_FIRST, 252);
    CHECK(t.b.counters.drop_length == 1);
  }
  SECTION("WRITE of another length than its RETH's") {
    t.write(Opcode::UC_RDMA_WRITE_ONLY, 8, 4);
    CHECK(t.b.counters.drop_length == 1);
  }
  SECTION("WRITE with a bad key") {
    t.write(Opcode::UC_RDMA_WRITE_FIRST, 300, 256, 0xdead00);
    t.send(Opcode::UC_RDMA_WRITE_LAST, 44);
    CHECK(t.b.counters.drop_access == 1);
    CHECK(t.b.counters.drop_sequence == 1);
  }
  CHECK(t.b.receives().empty());
  CHECK(t.b.qp->state() == QpState::RTS);
  CHECK_FALSE(t.b.qp->wants_tx());
  CHECK(t.b.effects.events().empty());
}

TEST_CASE("A send error stops the send queue of UC and UD (SQE) while receiving goes on") {
  Uc t;
  const verbs::Sge bad[] = {{Host::kIova, 8, t.a.mr.lkey ^ 1}};
  t.a.post(WrOpcode::SEND, 1, 0, 8);
  REQUIRE(t.a.qp->post_send({.wr_id = 2, .opcode = WrOpcode::SEND, .sg_list = bad}) ==
          PostResult::OK);
  t.a.post(WrOpcode::SEND, 3, 0, 8);
  CHECK(t.pull_all(t.a).size() == 1);
  CHECK(t.a.qp->state() == QpState::SQE);
  const auto wcs = t.a.sends();
  REQUIRE(wcs.size() == 3);
  CHECK(wcs[0].status == WcStatus::SUCCESS);
  CHECK(wcs[1].status == WcStatus::LOC_PROT_ERR);
  CHECK(wcs[2].status == WcStatus::WR_FLUSH_ERR);
  // Posted in SQE: flushed.
  t.a.post(WrOpcode::SEND, 4, 0, 8);
  CHECK(t.a.sends()[0].status == WcStatus::WR_FLUSH_ERR);
  // Receiving goes on.
  t.a.post_recv(1, 0, 64);
  t.b.post(WrOpcode::SEND, 1, 0, 8);
  t.give(t.a, t.pull_all(t.b));
  CHECK(t.a.receives().size() == 1);
  // And RTS brings the send queue back, with the next PSN.
  verbs::QpAttributes q;
  q.qp_state = QpState::RTS;
  REQUIRE(t.a.modify(q));
  t.a.post(WrOpcode::SEND, 5, 0, 8);
  const auto frame = t.pull(t.a);
  REQUIRE(frame.has_value());
  CHECK(frame->psn() == 0x101);
}

TEST_CASE("UD delivers payload behind 40 bytes, with the IPv4 header in the last 20") {
  Ud t;
  t.b.post_recv(7, 0x8000, 400);
  t.b.post_recv(8, 0x9000, 400);
  t.b.buffer[0x8000] = std::byte{0xff};
  REQUIRE(t.send(100) == PostResult::OK);
  REQUIRE(t.send(4, 0x1111, WrOpcode::SEND_WITH_IMM) == PostResult::OK);
  const auto frames = t.pull_all(t.a);
  REQUIRE(frames.size() == 2);
  CHECK_FALSE(frames[0].ack_request());
  CHECK(t.a.sends().size() == 2);
  t.give(t.b, frames);
  const auto received = t.b.receives();
  REQUIRE(received.size() == 2);
  CHECK(received[0].byte_len == 140);
  CHECK(received[0].src_qp == t.a.qp->number());
  CHECK(received[0].wc_flags == verbs::WC_GRH);
  CHECK(received[1].wc_flags == (verbs::WC_GRH | verbs::WC_WITH_IMM));
  CHECK(received[1].imm_data == verbs::Immediate{9, 8, 7, 6});
  CHECK(same_bytes(t.b, 0x8000 + 40, t.a, 0, 100));
  CHECK(std::memcmp(&t.b.buffer[0x8000 + 20], frames[0].packet().l3, 20) == 0);
  CHECK(t.b.buffer[0x8000] == std::byte{0});
}

TEST_CASE("UD over IPv6 has the IPv6 header as its GRH") {
  Ud t;
  wire::PathAttributes p;
  p.source = *IpAddress::from_string("fd00::1");
  p.destination = *IpAddress::from_string("fd00::2");
  t.ah = wire::make_path_headers(p);
  t.b.post_recv(7, 0x8000, 400);
  REQUIRE(t.send(100) == PostResult::OK);
  const auto frame = t.pull(t.a);
  REQUIRE(frame.has_value());
  t.give(t.b, *frame);
  REQUIRE(t.b.receives().size() == 1);
  CHECK(std::memcmp(&t.b.buffer[0x8000], frame->packet().l3, 40) == 0);
}

TEST_CASE("UD drops silently: wrong Q_Key, no receive WR, too small a WR, over the MTU") {
  Ud t;
  REQUIRE(t.send(10, 0x2222) == PostResult::OK);
  t.b.post_recv(1, 0, 49);
  t.give(t.b, t.pull_all(t.a));
  CHECK(t.b.counters.drop_qkey == 1);
  REQUIRE(t.send(10) == PostResult::OK);
  t.give(t.b, t.pull_all(t.a));
  CHECK(t.b.counters.drop_length == 1);
  REQUIRE(t.send(9) == PostResult::OK);
  REQUIRE(t.send(9) == PostResult::OK);
  t.give(t.b, t.pull_all(t.a));
  CHECK(t.b.receives().size() == 1);
  CHECK(t.b.counters.out_of_buffer == 1);
  t.b.post_recv(2, 0, 1000);
  auto fields = t.bth(t.b, Opcode::UD_SEND_ONLY, 0);
  t.give(t.b, t.make(t.b, fields, 257, [](wire::FrameBuilder& f) { f.deth().qkey.set(0x1111); }));
  CHECK(t.b.counters.drop_length == 2);
  CHECK(t.b.qp->state() == QpState::RTS);
  CHECK(t.b.effects.events().empty());
  CHECK(t.send(257) == PostResult::TOO_LONG);
  // PSNs are not checked.
  fields.psn = Psn{0xabcdef};
  t.give(t.b, t.make(t.b, fields, 4, [](wire::FrameBuilder& f) { f.deth().qkey.set(0x1111); }));
  CHECK(t.b.receives().size() == 1);
}

TEST_CASE("A WR's Q_Key with its top bit set stands for the QP's own") {
  Ud t;
  t.b.post_recv(1, 0, 100);
  REQUIRE(t.send(8, 0x8000'0000) == PostResult::OK);
  const auto frame = t.pull(t.a);
  REQUIRE(frame.has_value());
  CHECK(frame->packet().deth().qkey.get() == 0x1111);
  t.give(t.b, *frame);
  CHECK(t.b.receives().size() == 1);
}
