// Loss and refusal at the RC requester: go-back, timeouts, RNR waits, giving up.
#include "host.hpp"

using namespace roce;
using namespace roce::test;

namespace {

struct Bench : Pair {
  explicit Bench(const Options& o = {}) : Pair(o) {}
  void write(std::uint64_t id, std::uint32_t length = 8) {
    a.post(WrOpcode::RDMA_WRITE, id, 0, length, 0, b.mr.rkey);
  }
  void ack(std::uint32_t psn, std::uint8_t syndrome = 0x1f) { give(a, make_ack(a, psn, syndrome)); }
  [[nodiscard]] std::vector<std::uint32_t> psns() {
    std::vector<std::uint32_t> out;
    for (const Frame& f : pull_all(a)) out.push_back(f.psn());
    return out;
  }
  [[nodiscard]] WcStatus first_status() {
    const auto wcs = a.sends();
    return wcs.empty() ? WcStatus::GENERAL_ERR : wcs[0].status;
  }
};

using Psns = std::vector<std::uint32_t>;
constexpr std::uint8_t kSequence = 0x60;

/// 4.096 us * 2^n
Duration ack_timeout(int n) {
  return Duration::nanoseconds(std::int64_t{4096} << n);
}

}  // namespace

TEST_CASE("NAK 0x60 acknowledges what is before and resends from its PSN, byte for byte") {
  Bench t;
  t.write(1);
  t.write(2, 700);
  const auto sent = t.pull_all(t.a);
  REQUIRE(sent.size() == 4);
  t.ack(0x102, kSequence);
  CHECK(t.a.sends().size() == 1);
  const auto again = t.pull_all(t.a);
  REQUIRE(again.size() == 2);
  // MIDDLE and LAST, with the PSNs they had: the responder goes on in mid-message.
  CHECK(again[0].bytes == sent[2].bytes);
  CHECK(again[1].bytes == sent[3].bytes);
  CHECK(t.a.counters.packet_seq_err == 1);
  CHECK(t.a.counters.retransmitted_packets == 2);
  CHECK(t.a.counters.roce_slow_restart == 1);
}

TEST_CASE("Another NAK 0x60 with the same PSN changes nothing until there is progress") {
  Bench t;
  for (std::uint64_t i = 0; i < 4; ++i) t.write(i);
  CHECK(t.psns().size() == 4);
  t.ack(0x101, kSequence);
  CHECK(t.psns() == Psns{0x101, 0x102, 0x103});
  t.ack(0x101, kSequence);
  t.ack(0x101, kSequence);
  CHECK(t.psns().empty());
  CHECK(t.a.counters.roce_slow_restart == 1);
  CHECK(t.a.counters.packet_seq_err == 3);
  t.ack(0x101);
  t.ack(0x102, kSequence);  // a new loss
  CHECK(t.psns() == Psns{0x102, 0x103});
  CHECK(t.a.counters.roce_slow_restart == 2);
}

TEST_CASE("An ACK that overtakes the resend saves it") {
  Bench t;
  for (std::uint64_t i = 0; i < 4; ++i) t.write(i);
  CHECK(t.psns().size() == 4);
  t.ack(0x100, kSequence);
  CHECK(t.pull(t.a)->psn() == 0x100);
  t.ack(0x102);
  CHECK(t.psns() == Psns{0x103});
  CHECK(t.a.sends().size() == 3);
}

TEST_CASE("The ACK timer fires no sooner than T and no later than 4 T after the last progress") {
  const int n = GENERATE(1, 8, 14, 20, 31);
  Bench t({.timeout = static_cast<std::uint8_t>(n)});
  CHECK(t.a.qp->next_deadline().is_never());
  t.write(1);
  t.write(2);
  CHECK(t.psns().size() == 2);
  const auto in_range = [&] {
    const Duration left = t.a.qp->next_deadline() - t.now;
    return left >= ack_timeout(n) && left <= ack_timeout(n) * 4;
  };
  CHECK(in_range());
  // Sending more does not restart it.
  const Instant deadline = t.a.qp->next_deadline();
  t.pass(ack_timeout(n) / 2);
  t.write(3);
  CHECK(t.psns().size() == 1);
  CHECK(t.a.qp->next_deadline() == deadline);
  // Neither does a stale ACK, progress does.
  t.ack(0xff);
  CHECK(t.a.qp->next_deadline() == deadline);
  t.ack(0x100);
  CHECK(in_range());
  // Called early, it does nothing.
  t.a.qp->on_timeout(t.now, t.a.effects);
  CHECK(t.psns().empty());
  CHECK(t.a.counters.local_ack_timeout_err == 0);
  REQUIRE(t.expire(t.a, Duration::seconds(100'000)));
  CHECK(t.psns() == Psns{0x101, 0x102});
  CHECK(t.a.counters.local_ack_timeout_err == 1);
  t.ack(0x102);
  CHECK(t.a.qp->next_deadline().is_never());
}

TEST_CASE("timeout 0 runs no timer") {
  Bench t({.timeout = 0});
  t.write(1);
  CHECK(t.psns().size() == 1);
  CHECK(t.a.qp->next_deadline().is_never());
  t.a.qp->on_timeout(t.now + Duration::seconds(1000), t.a.effects);
  CHECK(t.psns().empty());
}

TEST_CASE("After retry_cnt timeouts without progress the WR ends RETRY_EXC_ERR; 7 is finite") {
  const std::uint8_t retries = GENERATE(std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{7});
  Bench t({.retry_cnt = retries});
  t.write(1);
  t.write(2);
  CHECK(t.psns().size() == 2);
  for (int i = 0; i < retries; ++i) {
    REQUIRE(t.expire(t.a));
    CHECK(t.psns() == Psns{0x100, 0x101});
  }
  REQUIRE(t.expire(t.a));
  CHECK(t.a.qp->state() == QpState::ERR);
  const auto wcs = t.a.sends();
  REQUIRE(wcs.size() == 2);
  CHECK(wcs[0].status == WcStatus::RETRY_EXC_ERR);
  CHECK(wcs[1].status == WcStatus::WR_FLUSH_ERR);
  CHECK(t.a.counters.req_transport_retries_exceeded == 1);
  CHECK(t.a.qp->next_deadline().is_never());
}

TEST_CASE("Progress gives all retries back") {
  Bench t({.retry_cnt = 2});
  for (std::uint64_t i = 0; i < 3; ++i) t.write(i);
  CHECK(t.psns().size() == 3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    REQUIRE(t.expire(t.a));
    REQUIRE(t.expire(t.a));
    t.ack(0x100 + i);
    CHECK(t.a.sends().size() == 1);
  }
  CHECK(t.a.qp->state() == QpState::RTS);
}

TEST_CASE("READ data received is progress, and a timeout asks for the rest only") {
  Bench t({.retry_cnt = 1});
  t.a.post(WrOpcode::RDMA_READ, 1, 0, 256 * 6, 0x8000, t.b.mr.rkey);
  auto request = t.pull(t.a);
  for (int i = 0; i < 5; ++i) {
    REQUIRE(request.has_value());
    t.give(t.b, *request);
    const auto responses = t.pull_all(t.b);
    REQUIRE(responses.size() == static_cast<std::size_t>(6 - i));
    t.give(t.a, responses[0]);  // the others are lost
    REQUIRE(t.expire(t.a));
    request = t.pull(t.a);
  }
  t.give(t.b, *request);
  t.settle();
  CHECK(t.first_status() == WcStatus::SUCCESS);
  CHECK(same_bytes(t.a, 0, t.b, 0x8000, 256 * 6));
}

TEST_CASE("Each code of the RNR timer is waited for, with a margin below a tenth and 2 us") {
  for (std::uint8_t code = 0; code < 32; ++code) {
    Bench t;
    t.write(1);
    CHECK(t.psns().size() == 1);
    t.ack(0x100, static_cast<std::uint8_t>(0x20 | code));
    const Duration coded = wire::rnr_timer(code);
    const Duration wait = t.a.qp->next_deadline() - t.now;
    CAPTURE(code);
    CHECK(wait >= coded);
    CHECK(wait <= coded + coded / 10 + Duration::microseconds(2));
    CHECK_FALSE(t.a.qp->wants_tx());
    t.pass(coded);
    t.a.qp->on_timeout(t.now, t.a.effects);
    REQUIRE(t.expire(t.a));
    CHECK(t.psns() == Psns{0x100});
    CHECK(t.a.counters.rnr_nak_retry_err == 1);
  }
  CHECK(wire::rnr_timer(0) == Duration::microseconds(655'360));
  CHECK(wire::rnr_timer(1) == Duration::microseconds(10));
  CHECK(wire::rnr_timer(12) == Duration::microseconds(640));
  CHECK(wire::rnr_timer(25) == Duration::microseconds(61'440));
  CHECK(wire::rnr_timer(31) == Duration::microseconds(491'520));
}

TEST_CASE("During an RNR wait nothing is sent, whatever else happens; earlier WRs complete") {
  Bench t;
  for (std::uint64_t i = 1; i <= 3; ++i) t.write(i);
  CHECK(t.psns().size() == 3);
  t.ack(0x101, 0x2c);
  CHECK(t.a.sends().size() == 1);
  t.write(4);
  t.ack(0x101, 0x2c);       // the same refusal again
  t.ack(0x101, kSequence);  // and a NAK that it overtook
  CHECK_FALSE(t.a.qp->wants_tx());
  CHECK(t.psns().empty());
  REQUIRE(t.expire(t.a));
  CHECK(t.psns() == Psns{0x101, 0x102, 0x103});
  CHECK(t.a.counters.rnr_nak_received == 2);
}

TEST_CASE("rnr_retry RNR NAKs are survived, one more ends RNR_RETRY_EXC_ERR; 7 is for ever") {
  const std::uint8_t limit = GENERATE(std::uint8_t{0}, std::uint8_t{2}, std::uint8_t{7});
  Bench t({.rnr_retry = limit});
  t.write(1);
  t.write(2);
  const int survived = limit == 7 ? 50 : limit;
  for (int i = 0; i < survived; ++i) {
    CHECK(t.psns().size() == 2);
    t.ack(0x100, 0x2c);
    REQUIRE(t.a.qp->state() == QpState::RTS);
    REQUIRE(t.expire(t.a));
  }
  CHECK(t.psns().size() == 2);
  t.ack(0x100, 0x2c);
  if (limit == 7) {
    CHECK(t.a.qp->state() == QpState::RTS);
    return;
  }
  CHECK(t.a.qp->state() == QpState::ERR);
  const auto wcs = t.a.sends();
  REQUIRE(wcs.size() == 2);
  CHECK(wcs[0].status == WcStatus::RNR_RETRY_EXC_ERR);
  CHECK(wcs[0].vendor_err == 0x2c);
  CHECK(wcs[1].status == WcStatus::WR_FLUSH_ERR);
}

TEST_CASE("A QP with infinite RNR retries can still be ended") {
  Bench t;
  t.write(1);
  CHECK(t.psns().size() == 1);
  t.ack(0x100, 0x2c);
  verbs::QpAttributes q;
  q.qp_state = QpState::ERR;
  REQUIRE(t.a.modify(q));
  CHECK(t.first_status() == WcStatus::WR_FLUSH_ERR);
  CHECK(t.a.qp->next_deadline().is_never());
}

TEST_CASE("An RNR NAK beyond an incomplete READ waits, then resends the READ first") {
  Bench t;
  t.a.post(WrOpcode::RDMA_READ, 1, 0, 256, 0x8000, t.b.mr.rkey);
  t.a.post(WrOpcode::SEND, 2, 0, 8);
  CHECK(t.psns() == Psns{0x100, 0x101});
  t.ack(0x101, 0x2c);
  CHECK(t.psns().empty());
  REQUIRE(t.expire(t.a));
  CHECK(t.psns() == Psns{0x100, 0x101});
  CHECK(t.a.sends().empty());
}

TEST_CASE("RNR NAKs beyond a READ whose response never comes use up retry_cnt") {
  Bench t({.retry_cnt = 3, .rnr_retry = 7});
  t.a.post(WrOpcode::RDMA_READ, 1, 0, 256, 0x8000, t.b.mr.rkey);
  t.a.post(WrOpcode::SEND, 2, 0, 8);
  for (int i = 0; i < 3; ++i) {
    CHECK(t.psns() == Psns{0x100, 0x101});
    t.ack(0x101, 0x2c);
    REQUIRE(t.a.qp->state() == QpState::RTS);
    REQUIRE(t.expire(t.a));
  }
  CHECK(t.psns() == Psns{0x100, 0x101});
  t.ack(0x101, 0x2c);
  CHECK(t.first_status() == WcStatus::RETRY_EXC_ERR);
  CHECK(t.a.counters.req_transport_retries_exceeded == 1);
}

TEST_CASE("A loss halves the window, whose last packet asks for an ACK; ACKs let it grow again") {
  Bench t;
  for (std::uint64_t i = 0; i < 60; ++i) t.write(i);
  REQUIRE(t.psns().size() == 60);
  t.ack(0x100, kSequence);
  const auto resent = t.pull_all(t.a);
  REQUIRE(resent.size() == 30);
  CHECK(resent.back().ack_request());
  t.ack(0x100 + 7);  // 8 more packets are through: room for them, and one more
  CHECK(t.psns().size() == 9);
  REQUIRE(t.expire(t.a));
  CHECK(t.psns().size() == 16);  // half of 31 would be less
  t.ack(0x108 + 15);
  CHECK(t.psns().size() == 18);
}

TEST_CASE("Loss of any single packet of a multi-packet message is mended, for each operation") {
  const auto opcode = GENERATE(WrOpcode::SEND, WrOpcode::RDMA_WRITE, WrOpcode::RDMA_WRITE_WITH_IMM,
                               WrOpcode::RDMA_READ);
  constexpr std::uint32_t kLength = 256 * 6 + 5;
  for (std::size_t lost = 0; lost < 9; ++lost) {
    for (const bool from_a : {true, false}) {
      Bench t({.psn_a = Psn{0xfffffc}});
      for (auto& byte : t.b.buffer)
        byte = static_cast<std::byte>(std::to_integer<int>(byte) ^ 0x3c);
      t.b.post_recv(1, 0x8000, kLength);
      t.a.post(opcode, 1, 0, kLength, 0x8000, t.b.mr.rkey);
      t.write(2);
      std::size_t count = 0;
      for (int i = 0; i < 200 && t.a.qp->outstanding_sends() != 0; ++i) {
        auto frames = t.pull_all(t.a);
        for (const Frame& f : frames)
          if (!from_a || count++ != lost) t.give(t.b, f);
        auto back = t.pull_all(t.b);
        for (const Frame& f : back)
          if (from_a || count++ != lost) t.give(t.a, f);
        if (frames.empty() && back.empty()) static_cast<void>(t.expire(t.a));
      }
      CAPTURE(verbs::name_of(opcode), lost, from_a);
      const auto wcs = t.a.sends();
      REQUIRE(wcs.size() == 2);
      CHECK(wcs[0].status == WcStatus::SUCCESS);
      CHECK(wcs[1].status == WcStatus::SUCCESS);
      if (opcode == WrOpcode::RDMA_READ)
        CHECK(same_bytes(t.a, 0, t.b, 0x8000, kLength));
      else
        CHECK(same_bytes(t.b, 0x8000, t.a, 0, kLength));
      if (opcode == WrOpcode::SEND || opcode == WrOpcode::RDMA_WRITE_WITH_IMM)
        CHECK(t.b.receives().size() == 1);
      CHECK(t.b.qp->state() == QpState::RTS);
    }
  }
}

TEST_CASE("A refused request ends both ends as the rules say, and all is flushed in order") {
  Pair t;
  t.b.post_recv(1, 0, 64);
  t.a.post(WrOpcode::RDMA_WRITE, 1, 0, 8, 0, t.b.mr.rkey);
  t.a.post(WrOpcode::RDMA_READ, 2, 0, 800, 0, t.b.mr.rkey);
  t.a.post(WrOpcode::RDMA_WRITE, 3, 0, 8, 0, 0xdead00);
  t.a.post(WrOpcode::RDMA_WRITE, 4, 0, 8, 0, t.b.mr.rkey);
  t.settle();
  const auto wcs = t.a.sends();
  REQUIRE(wcs.size() == 4);
  CHECK(wcs[0].status == WcStatus::SUCCESS);
  CHECK(wcs[1].status == WcStatus::SUCCESS);
  CHECK(wcs[2].status == WcStatus::REM_ACCESS_ERR);
  CHECK(wcs[3].status == WcStatus::WR_FLUSH_ERR);
  CHECK(t.a.qp->state() == QpState::ERR);
  CHECK(t.b.qp->state() == QpState::ERR);
  const auto received = t.b.receives();
  REQUIRE(received.size() == 1);
  CHECK(received[0].status == WcStatus::WR_FLUSH_ERR);
}
