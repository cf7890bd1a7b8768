// The RC requester against made-up responses: completion rules, bad responses, credits.
#include "host.hpp"

using namespace roce;
using namespace roce::test;

namespace {

/// A requester under test: a, to which responses are made up.
struct Bench : Pair {
  explicit Bench(const Options& o = {}) : Pair(o) {}
  void send(std::uint64_t id, std::uint32_t length = 8) { a.post(WrOpcode::SEND, id, 0, length); }
  void write(std::uint64_t id, std::uint32_t length = 8, std::uint8_t flags = 2) {
    a.post(WrOpcode::RDMA_WRITE, id, 0, length, 0, 0x1234, flags);
  }
  void read(std::uint64_t id, std::uint32_t length, std::uint64_t at = 0x8000) {
    a.post(WrOpcode::RDMA_READ, id, at, length, 0, 0x1234);
  }
  void ack(std::uint32_t psn, std::uint8_t syndrome = 0x1f, std::uint32_t msn = 1) {
    give(a, make_ack(a, psn, syndrome, msn));
  }
  void response(Opcode opcode, std::uint32_t psn, std::size_t payload) {
    give(a, make(a, bth(a, opcode, psn), payload, [&](wire::FrameBuilder& f) {
           if (wire::info_of(opcode).has(wire::kAeth)) f.aeth().syndrome = 0x1f;
         }));
  }
  void atomic_response(std::uint32_t psn, std::uint8_t syndrome = 0x1f) {
    give(a, make(a, bth(a, Opcode::RC_ATOMIC_ACKNOWLEDGE, psn), 0, [&](wire::FrameBuilder& f) {
           f.aeth().syndrome = syndrome;
           f.atomic_ack().original.set(77);
         }));
  }
  /// PSNs of what a has to send.
  [[nodiscard]] std::vector<std::uint32_t> psns() {
    std::vector<std::uint32_t> out;
    for (const Frame& f : pull_all(a)) out.push_back(f.psn());
    return out;
  }
  /// wr_ids of new completions, all of them successful.
  [[nodiscard]] std::vector<std::uint64_t> done() {
    std::vector<std::uint64_t> out;
    for (const auto& wc : a.sends()) {
      CHECK(wc.status == WcStatus::SUCCESS);
      out.push_back(wc.wr_id);
    }
    return out;
  }
  /// The QP has failed: the first completion has this status, the others are flushed.
  void expect_failed(WcStatus status, std::uint64_t id) {
    CHECK(a.qp->state() == QpState::ERR);
    const auto wcs = a.sends();
    REQUIRE_FALSE(wcs.empty());
    CHECK(verbs::name_of(wcs[0].status) == verbs::name_of(status));
    CHECK(wcs[0].wr_id == id);
    for (std::size_t i = 1; i < wcs.size(); ++i) {
      CHECK(wcs[i].status == WcStatus::WR_FLUSH_ERR);
      CHECK(wcs[i].wr_id == id + i);
    }
    CHECK(a.qp->next_deadline().is_never());
    CHECK_FALSE(a.qp->wants_tx());
  }
};

using Ids = std::vector<std::uint64_t>;
using Psns = std::vector<std::uint32_t>;

constexpr Opcode kFirst = Opcode::RC_RDMA_READ_RESPONSE_FIRST;
constexpr Opcode kMiddle = Opcode::RC_RDMA_READ_RESPONSE_MIDDLE;
constexpr Opcode kLast = Opcode::RC_RDMA_READ_RESPONSE_LAST;
constexpr Opcode kOnly = Opcode::RC_RDMA_READ_RESPONSE_ONLY;

}  // namespace

TEST_CASE("AckReq: first packet after RTS, last of each message, and at least every 64") {
  Bench t;
  t.write(1, 256 * 200);
  t.write(2, 10);
  const auto frames = t.pull_all(t.a);
  REQUIRE(frames.size() == 201);
  CHECK(frames[0].ack_request());
  CHECK(frames[199].ack_request());
  CHECK(frames[200].ack_request());
  std::size_t since = 0;
  std::size_t asked = 0;
  for (const auto& f : frames) {
    since = f.ack_request() ? 0 : since + 1;
    asked += f.ack_request() ? 1u : 0u;
    CHECK(since < 64);
  }
  CHECK(asked == 6);  // 0, 64, 128, 192, 199, 200
  // The second message's first packet is not special.
  t.ack(0x100 + 200);
  t.write(3, 600);
  CHECK_FALSE(t.pull(t.a)->ack_request());
}

TEST_CASE("PSNs: a READ takes one per response packet, others one per packet, wrapping") {
  Bench t({.psn_a = Psn{0xfffffd}});
  t.write(1, 0);
  t.read(2, 256 * 3);
  t.read(3, 0);
  t.write(4, 257);
  CHECK(t.psns() == Psns{0xfffffd, 0xfffffe, 0x000001, 0x000002, 0x000003});
}

TEST_CASE("An ACK completes all SENDs and WRITEs up to its PSN, partly sent messages not") {
  Bench t;
  t.send(1);
  t.write(2, 512);
  t.write(3, 512);
  CHECK(t.psns().size() == 5);
  t.ack(0x103);
  CHECK(t.done() == Ids{1, 2});
  CHECK(t.a.qp->outstanding_sends() == 1);
  t.ack(0x104);
  CHECK(t.done() == Ids{3});
  CHECK(t.a.qp->next_deadline().is_never());
}

TEST_CASE("Ghost and stale ACKs are ignored and counted") {
  Bench t;
  t.write(1);
  CHECK(t.psns() == Psns{0x100});
  t.ack(0x101);             // never sent
  t.ack(0x0ff);             // older than all
  t.ack(0x100 + 0x7fffff);  // far ahead
  CHECK(t.done().empty());
  CHECK(t.a.counters.unexpected_response == 3);
  t.ack(0x100);
  CHECK(t.done() == Ids{1});
  t.ack(0x100);
  CHECK(t.a.counters.unexpected_response == 4);
  t.response(kOnly, 0x100, 8);
  CHECK(t.a.counters.unexpected_response == 5);
  CHECK(t.a.qp->state() == QpState::RTS);
}

TEST_CASE("A plain ACK within a READ's or atomic's PSNs completes nothing and repeats nothing") {
  Bench t;
  t.write(1);
  t.read(2, 600);
  CHECK(t.psns() == Psns{0x100, 0x101});
  t.ack(0x103);
  CHECK(t.done() == Ids{1});  // what is before the READ
  t.ack(0x101);
  t.ack(0x103);
  CHECK(t.done().empty());
  CHECK(t.psns().empty());
  CHECK(t.a.counters.implied_nak_seq_err == 0);
  t.response(kFirst, 0x101, 256);
  t.response(kMiddle, 0x102, 256);
  t.response(kLast, 0x103, 88);
  CHECK(t.done() == Ids{2});
}

TEST_CASE("An ACK or response beyond an incomplete READ is an implied NAK, once per loss") {
  Bench t;
  t.read(1, 256 * 4);
  t.write(2);
  t.read(3, 256, 0xc000);
  CHECK(t.psns() == Psns{0x100, 0x104, 0x105});
  t.response(kFirst, 0x100, 256);
  SECTION("an ACK") {
    t.ack(0x104);
  }
  SECTION("the READ's own later response") {
    t.response(kMiddle, 0x102, 256);
  }
  SECTION("the next READ's response") {
    t.response(kOnly, 0x105, 256);
  }
  CHECK(t.a.counters.implied_nak_seq_err == 1);
  CHECK(t.done().empty());
  const auto again = t.pull_all(t.a);
  REQUIRE(again.size() == 3);
  // Only what is missing is asked for.
  CHECK(again[0].psn() == 0x101);
  CHECK(again[0].packet().reth().va.get() == Host::kIova + 256);
  CHECK(again[0].packet().reth().dma_length.get() == 256 * 3);
  CHECK(again[1].psn() == 0x104);
  CHECK(again[2].psn() == 0x105);
  // Late news of the same loss.
  t.response(kMiddle, 0x102, 256);
  t.ack(0x104);
  CHECK(t.psns().empty());
  CHECK(t.a.counters.roce_slow_restart == 1);
  t.response(kFirst, 0x101, 256);
  t.response(kMiddle, 0x102, 256);
  t.response(kLast, 0x103, 256);
  t.ack(0x104);
  t.response(kOnly, 0x105, 256);
  CHECK(t.done() == Ids{1, 2, 3});
}

TEST_CASE("After a partial retry the response may begin with FIRST, ONLY, MIDDLE or LAST") {
  Bench t;
  t.read(1, 256 * 4);
  CHECK(t.psns() == Psns{0x100});
  t.response(kFirst, 0x100, 256);
  REQUIRE(t.expire(t.a));
  const auto again = t.pull(t.a);
  REQUIRE(again.has_value());
  CHECK(again->psn() == 0x101);
  SECTION("FIRST") {
    t.response(kFirst, 0x101, 256);
    t.response(kMiddle, 0x102, 256);
    t.response(kLast, 0x103, 256);
  }
  SECTION("MIDDLE, as older Soft-RoCE answers") {
    t.response(kMiddle, 0x101, 256);
    t.response(kMiddle, 0x102, 256);
    t.response(kLast, 0x103, 256);
  }
  SECTION("ONLY, after another retry") {
    t.response(kMiddle, 0x101, 256);
    t.response(kMiddle, 0x102, 256);
    REQUIRE(t.expire(t.a));
    CHECK(t.pull(t.a)->psn() == 0x103);
    t.response(kOnly, 0x103, 256);
  }
  CHECK(t.done() == Ids{1});
  for (std::size_t i = 0; i < 1024; ++i)
    REQUIRE(t.a.buffer[0x8000 + i] == static_cast<std::byte>(i % 256));
}

TEST_CASE("A response acknowledges SENDs and WRITEs before its request") {
  Bench t;
  t.write(1);
  t.send(2);
  t.read(3, 10);
  CHECK(t.psns().size() == 3);
  t.response(kOnly, 0x102, 10);
  CHECK(t.done() == Ids{1, 2, 3});
}

TEST_CASE("READ responses that break order, length or kind end the QP with the right status") {
  Bench t;
  t.read(1, 256 * 3);
  t.write(2);
  CHECK(t.psns().size() == 2);
  SECTION("MIDDLE where FIRST was due") {
    t.response(kMiddle, 0x100, 256);
    t.expect_failed(WcStatus::BAD_RESP_ERR, 1);
  }
  SECTION("ONLY for three packets") {
    t.response(kOnly, 0x100, 256);
    t.expect_failed(WcStatus::BAD_RESP_ERR, 1);
  }
  SECTION("FIRST twice") {
    t.response(kFirst, 0x100, 256);
    t.response(kFirst, 0x101, 256);
    t.expect_failed(WcStatus::BAD_RESP_ERR, 1);
  }
  SECTION("LAST too early") {
    t.response(kFirst, 0x100, 256);
    t.response(kLast, 0x101, 256);
    t.expect_failed(WcStatus::BAD_RESP_ERR, 1);
  }
  SECTION("FIRST short of the MTU") {
    t.response(kFirst, 0x100, 252);
    t.expect_failed(WcStatus::LOC_LEN_ERR, 1);
  }
  SECTION("LAST too short") {
    t.response(kFirst, 0x100, 256);
    t.response(kMiddle, 0x101, 256);
    t.response(kLast, 0x102, 200);
    t.expect_failed(WcStatus::LOC_LEN_ERR, 1);
  }
  SECTION("an atomic's answer to a READ") {
    t.atomic_response(0x100);
    t.expect_failed(WcStatus::BAD_RESP_ERR, 1);
  }
  CHECK(t.a.counters.req_cqe_error == 1);
  CHECK(t.a.counters.req_cqe_flush_error == 1);
}

TEST_CASE("READ data for a WRITE is a bad response") {
  Bench t;
  t.write(1);
  CHECK(t.psns().size() == 1);
  t.response(kOnly, 0x100, 8);
  t.expect_failed(WcStatus::BAD_RESP_ERR, 1);
}

TEST_CASE("A READ into memory that may not be written completes LOC_PROT_ERR") {
  Bench t;
  std::vector<std::byte> memory(512);
  const auto mr = *t.a.memory.reg_mr(t.a.pd, memory, 0x1000, 0);
  const verbs::Sge list[] = {{0x1000, 300, mr.lkey}};
  REQUIRE(t.a.qp->post_send({.wr_id = 1, .opcode = WrOpcode::RDMA_READ, .sg_list = list}) ==
          PostResult::OK);
  CHECK(t.psns().size() == 1);
  t.response(kFirst, 0x100, 256);
  t.expect_failed(WcStatus::LOC_PROT_ERR, 1);
}

TEST_CASE("A local fault waits for the WRs before it, then fails its own and flushes the rest") {
  Bench t;
  const verbs::Sge bad[] = {{Host::kIova, 8, t.a.mr.lkey ^ 1}};
  t.write(1);
  REQUIRE(t.a.qp->post_send({.wr_id = 2, .opcode = WrOpcode::SEND, .sg_list = bad}) ==
          PostResult::OK);
  t.write(3);
  CHECK(t.psns() == Psns{0x100});
  CHECK(t.a.qp->state() == QpState::RTS);
  CHECK(t.a.sends().empty());
  t.ack(0x100);
  CHECK(t.a.qp->state() == QpState::ERR);
  const auto wcs = t.a.sends();
  REQUIRE(wcs.size() == 3);
  CHECK(wcs[0].status == WcStatus::SUCCESS);
  CHECK(wcs[1].status == WcStatus::LOC_PROT_ERR);
  CHECK(wcs[1].wr_id == 2);
  CHECK(wcs[2].status == WcStatus::WR_FLUSH_ERR);

  Bench first;
  REQUIRE(first.a.qp->post_send({.wr_id = 1, .opcode = WrOpcode::SEND, .sg_list = bad}) ==
          PostResult::OK);
  CHECK(first.psns().empty());
  first.expect_failed(WcStatus::LOC_PROT_ERR, 1);
}

TEST_CASE("NAKs end the WR they name with their status, earlier ones succeed, later are flushed") {
  const auto row = GENERATE(
      std::pair{0x61, WcStatus::REM_INV_REQ_ERR}, std::pair{0x62, WcStatus::REM_ACCESS_ERR},
      std::pair{0x63, WcStatus::REM_OP_ERR}, std::pair{0x64, WcStatus::REM_INV_RD_REQ_ERR},
      std::pair{0x7f, WcStatus::REM_OP_ERR});
  Bench t;
  t.write(1);
  t.write(2, 600);
  t.write(3, 10, 0);  // unsignalled, flushed nevertheless
  CHECK(t.psns().size() == 5);
  t.ack(0x102, static_cast<std::uint8_t>(row.first));
  auto wcs = t.a.sends();
  REQUIRE(wcs.size() == 3);
  CHECK(wcs[0].status == WcStatus::SUCCESS);
  CHECK(wcs[1].status == row.second);
  CHECK(wcs[1].vendor_err == static_cast<std::uint32_t>(row.first));
  CHECK(wcs[2].status == WcStatus::WR_FLUSH_ERR);
  CHECK(wcs[2].wr_id == 3);
  CHECK(t.a.qp->state() == QpState::ERR);
}

TEST_CASE("A NAK to a READ or atomic fails it, by either opcode") {
  Bench t;
  t.a.post(WrOpcode::ATOMIC_FETCH_AND_ADD, 1, 0, 8, 0, 0x1234);
  CHECK(t.psns().size() == 1);
  SECTION("by ACKNOWLEDGE") {
    t.ack(0x100, 0x62);
  }
  SECTION("by ATOMIC_ACKNOWLEDGE") {
    t.atomic_response(0x100, 0x62);
  }
  t.expect_failed(WcStatus::REM_ACCESS_ERR, 1);

  Bench r;
  r.read(1, 256 * 4);
  CHECK(r.psns().size() == 1);
  r.response(kFirst, 0x100, 256);
  r.ack(0x101, 0x62);  // the region went half way
  r.expect_failed(WcStatus::REM_ACCESS_ERR, 1);
}

TEST_CASE("The reserved syndrome class is dropped") {
  Bench t;
  t.write(1);
  CHECK(t.psns().size() == 1);
  t.ack(0x100, 0x45);
  CHECK(t.done().empty());
  CHECK(t.a.counters.unexpected_response == 1);
}

TEST_CASE("At most max_rd_atomic READs and atomics are under way") {
  Bench t({.rd_atomic = 2});
  for (std::uint64_t i = 1; i <= 4; ++i) t.read(i, 10);
  t.write(5);
  CHECK(t.psns() == Psns{0x100, 0x101});
  t.response(kOnly, 0x100, 10);
  CHECK(t.psns() == Psns{0x102});
  t.response(kOnly, 0x101, 10);
  t.response(kOnly, 0x102, 10);
  CHECK(t.psns() == Psns{0x103, 0x104});
}

TEST_CASE("A fenced WR waits for earlier READs and atomics, not for WRITEs") {
  Bench t;
  t.read(1, 10);
  t.write(2);
  t.write(3, 8, verbs::SEND_FENCE | verbs::SEND_SIGNALED);
  CHECK(t.psns() == Psns{0x100, 0x101});
  t.response(kOnly, 0x100, 10);
  CHECK(t.psns() == Psns{0x102});
}

TEST_CASE("Finite credits limit SENDs, not WRITEs; one SEND may probe; no limit stays") {
  Bench t;
  t.send(1);
  CHECK(t.psns().size() == 1);
  t.ack(0x100, wire::ack_syndrome(2), 1);  // two more
  for (std::uint64_t i = 2; i <= 5; ++i) t.send(i);
  CHECK(t.psns() == Psns{0x101, 0x102});
  t.ack(0x102, wire::ack_syndrome(0), 3);
  CHECK(t.done() == Ids{1, 2, 3});
  CHECK(t.psns() == Psns{0x103});  // none left: one goes as a probe
  CHECK_FALSE(t.a.qp->wants_tx());
  t.ack(0x103, wire::ack_syndrome(31), 4);
  CHECK(t.psns() == Psns{0x104});
  t.ack(0x104, wire::ack_syndrome(0), 5);
  for (std::uint64_t i = 6; i <= 8; ++i) t.send(i);
  CHECK(t.psns().size() == 3);
}

TEST_CASE("The window of 2^23 PSNs does not stall the longest message at the smallest MTU") {
  // The memory is one page; a READ of 2^31 bytes needs no local copy until data comes.
  Bench t;
  const verbs::Sge huge[] = {t.a.sge(0, 0x8000'0000)};
  REQUIRE(t.a.qp->post_send({.wr_id = 1, .opcode = WrOpcode::RDMA_READ, .sg_list = huge}) ==
          PostResult::OK);
  t.write(2);
  CHECK(t.psns() == Psns{0x100});  // the WRITE is outside the window
  CHECK_FALSE(t.a.qp->wants_tx());
  t.response(kFirst, 0x100, 256);
  CHECK(t.psns() == Psns{(0x100 + 0x800000) & 0xffffff});
  // The peer's view: the retry of the READ's rest is a duplicate.
  REQUIRE(t.expire(t.a));
  const auto again = t.pull(t.a);
  REQUIRE(again.has_value());
  CHECK(again->psn() == 0x101);
  CHECK(again->packet().reth().dma_length.get() == 0x8000'0000 - 256);
}
