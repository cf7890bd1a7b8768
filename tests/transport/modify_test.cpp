// The transition table of modify(), and what each state takes and drops.
#include "host.hpp"

using namespace roce;
using namespace roce::test;

namespace {

std::string place_of(const Result<void>& result) {
  return result ? "" : result.error().place;
}

/// A host of pair's options that has not been modified.
struct Fresh {
  explicit Fresh(QpType type = QpType::RC) : pair({.type = type}) { pair.a.create(type); }
  Pair pair;
  Host& host = pair.a;
  void reach(QpState state) {
    if (state == QpState::RESET) return;
    pair.to_init(host);
    if (state == QpState::INIT) return;
    pair.to_rtr(host);
    if (state == QpState::RTR) return;
    pair.to_rts(host);
    if (state == QpState::RTS) return;
    verbs::QpAttributes q;
    q.qp_state = state;
    REQUIRE(host.modify(q));
  }
  [[nodiscard]] verbs::QpAttributes to(QpState state) const {
    switch (state) {
      case QpState::INIT:
        return pair.init_attributes();
      case QpState::RTR:
        return pair.rtr_attributes(host);
      case QpState::RTS:
        return pair.rts_attributes(host);
      default: {
        verbs::QpAttributes q;
        q.qp_state = state;
        return q;
      }
    }
  }
};

constexpr QpState kStates[] = {QpState::RESET, QpState::INIT, QpState::RTR, QpState::RTS,
                               QpState::SQD,   QpState::SQE,  QpState::ERR};

bool allowed(QpState from, QpState to) {
  if (to == QpState::RESET) return true;
  if (to == QpState::ERR) return from != QpState::RESET;
  switch (from) {
    case QpState::RESET:
      return to == QpState::INIT;
    case QpState::INIT:
      return to == QpState::RTR;  // INIT to INIT takes other attributes, see below
    case QpState::RTR:
      return to == QpState::RTS;
    case QpState::RTS:
      return to == QpState::SQD;
    case QpState::SQD:
      return to == QpState::SQD;
    default:
      return false;
  }
}

}  // namespace

TEST_CASE("Only the transitions of verbs are allowed, and a refused one changes nothing") {
  const auto type = GENERATE(QpType::RC, QpType::UC, QpType::UD);
  for (const QpState from :
       {QpState::RESET, QpState::INIT, QpState::RTR, QpState::RTS, QpState::SQD, QpState::ERR}) {
    for (const QpState to : kStates) {
      Fresh fresh(type);
      fresh.reach(from);
      REQUIRE(fresh.host.qp->state() == from);
      auto attributes = fresh.to(to);
      if (from == QpState::INIT && to == QpState::INIT) continue;
      // RTS to RTS and SQD to RTS do not take what RTR to RTS needs.
      if (to == QpState::RTS && (from == QpState::RTS || from == QpState::SQD)) continue;
      CAPTURE(verbs::name_of(type), verbs::name_of(from), verbs::name_of(to));
      const auto result = fresh.host.modify(attributes);
      CHECK(result.has_value() == allowed(from, to));
      CHECK(fresh.host.qp->state() == (allowed(from, to) ? to : from));
      if (!result) CHECK(place_of(result) == "qp_state");
    }
  }
}

TEST_CASE("Each mandatory attribute is asked for by name") {
  Fresh fresh;
  auto q = fresh.pair.init_attributes();
  q.qp_access_flags.reset();
  CHECK(place_of(fresh.host.modify(q)) == "qp_access_flags");
  fresh.reach(QpState::INIT);

  const auto rtr = fresh.to(QpState::RTR);
  const auto lacks = [&](auto verbs::QpAttributes::*member, const verbs::QpAttributes& full,
                         const char* name) {
    auto lacking = full;
    (lacking.*member).reset();
    CAPTURE(name);
    CHECK(place_of(fresh.host.modify(lacking)) == name);
  };
  lacks(&verbs::QpAttributes::path_mtu, rtr, "path_mtu");
  lacks(&verbs::QpAttributes::path, rtr, "path");
  lacks(&verbs::QpAttributes::dest_qp_num, rtr, "dest_qp_num");
  lacks(&verbs::QpAttributes::rq_psn, rtr, "rq_psn");
  lacks(&verbs::QpAttributes::max_dest_rd_atomic, rtr, "max_dest_rd_atomic");
  lacks(&verbs::QpAttributes::min_rnr_timer, rtr, "min_rnr_timer");
  CHECK(fresh.host.qp->state() == QpState::INIT);
  REQUIRE(fresh.host.modify(rtr));

  const auto rts = fresh.to(QpState::RTS);
  lacks(&verbs::QpAttributes::sq_psn, rts, "sq_psn");
  lacks(&verbs::QpAttributes::timeout, rts, "timeout");
  lacks(&verbs::QpAttributes::retry_cnt, rts, "retry_cnt");
  lacks(&verbs::QpAttributes::rnr_retry, rts, "rnr_retry");
  lacks(&verbs::QpAttributes::max_rd_atomic, rts, "max_rd_atomic");
  REQUIRE(fresh.host.modify(rts));
  CHECK(fresh.host.qp->attributes().timeout == 8);
  CHECK(fresh.host.qp->attributes().qp_state == QpState::RTS);

  Fresh ud(QpType::UD);
  q = ud.pair.init_attributes();
  q.qkey.reset();
  CHECK(place_of(ud.host.modify(q)) == "qkey");
}

TEST_CASE("Attributes out of range or out of place are refused by name") {
  Fresh fresh;
  fresh.reach(QpState::INIT);
  const auto bad = [&](QpState to, auto change) {
    auto q = fresh.to(to);
    change(q);
    return place_of(fresh.host.modify(q));
  };
  using Q = verbs::QpAttributes;
  CHECK(bad(QpState::RTR, [](Q& q) { q.min_rnr_timer = 32; }) == "min_rnr_timer");
  CHECK(bad(QpState::RTR, [](Q& q) { q.max_dest_rd_atomic = 129; }) == "max_dest_rd_atomic");
  CHECK(bad(QpState::RTR, [](Q& q) { q.path_mtu = static_cast<verbs::Mtu>(6); }) == "path_mtu");
  CHECK(bad(QpState::RTR, [](Q& q) { q.path->source = *IpAddress::from_string("fd00::1"); }) ==
        "path");
  CHECK(bad(QpState::RTR, [](Q& q) { q.timeout = 14; }) == "timeout");
  CHECK(bad(QpState::RTR, [](Q& q) { q.qkey = 1; }) == "qkey");
  fresh.pair.to_rtr(fresh.host);
  CHECK(bad(QpState::RTS, [](Q& q) { q.timeout = 32; }) == "timeout");
  CHECK(bad(QpState::RTS, [](Q& q) { q.retry_cnt = 8; }) == "retry_cnt");
  CHECK(bad(QpState::RTS, [](Q& q) { q.rnr_retry = 8; }) == "rnr_retry");
  CHECK(bad(QpState::RTS, [](Q& q) { q.max_rd_atomic = 129; }) == "max_rd_atomic");
  CHECK(bad(QpState::RTS, [](Q& q) { q.path_mtu = verbs::Mtu::MTU_512; }) == "path_mtu");
  fresh.pair.to_rts(fresh.host);
  Q q;
  q.qp_access_flags = 0;
  CHECK(fresh.host.modify(q));  // RTS to RTS
  q.qp_access_flags = 0x10;
  CHECK(place_of(fresh.host.modify(q)) == "qp_access_flags");
}

TEST_CASE("Sends are taken from RTS on, receives from INIT on, and ERR flushes both in order") {
  Fresh fresh;
  const auto receive = [&](std::uint64_t id) { return fresh.host.qp->post_recv({id, {}}); };
  CHECK(receive(1) == PostResult::BAD_STATE);
  CHECK(fresh.host.try_post(WrOpcode::SEND, 1, 0, 1) == PostResult::BAD_STATE);
  fresh.pair.to_init(fresh.host);
  CHECK(receive(1) == PostResult::OK);
  CHECK(fresh.host.try_post(WrOpcode::SEND, 1, 0, 1) == PostResult::BAD_STATE);
  fresh.pair.to_rtr(fresh.host);
  CHECK(fresh.host.try_post(WrOpcode::SEND, 1, 0, 1) == PostResult::BAD_STATE);
  fresh.pair.to_rts(fresh.host);
  CHECK(receive(2) == PostResult::OK);
  fresh.host.post(WrOpcode::SEND, 11, 0, 1);
  fresh.host.post(WrOpcode::SEND, 12, 0, 1, 0, 0, 0);  // flushed ones complete though unsignalled
  REQUIRE(fresh.host.modify(fresh.to(QpState::ERR)));
  CHECK(receive(3) == PostResult::OK);
  fresh.host.post(WrOpcode::SEND, 13, 0, 1);
  const auto sends = fresh.host.sends();
  const auto receives = fresh.host.receives();
  REQUIRE(sends.size() == 3);
  REQUIRE(receives.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(sends[i].wr_id == 11 + i);
    CHECK(sends[i].status == WcStatus::WR_FLUSH_ERR);
    CHECK(receives[i].wr_id == 1 + i);
    CHECK(receives[i].status == WcStatus::WR_FLUSH_ERR);
  }
  CHECK_FALSE(fresh.host.qp->wants_tx());
}

TEST_CASE("RESET forgets what was posted and the QP can be connected again") {
  Pair pair;
  pair.b.post_recv(1, 0, 256);
  pair.a.post(WrOpcode::SEND, 1, 0, 100);
  pair.a.post(WrOpcode::RDMA_READ, 2, 0, 1000, 0, pair.b.mr.rkey);
  const auto old = pair.pull_all(pair.a);
  verbs::QpAttributes reset;
  reset.qp_state = QpState::RESET;
  for (Host* h : {&pair.a, &pair.b}) {
    REQUIRE(h->modify(reset));
    CHECK(h->qp->outstanding_sends() == 0);
    CHECK(h->qp->outstanding_receives() == 0);
    CHECK(h->qp->next_deadline().is_never());
  }
  CHECK(pair.a.sends().empty());
  pair.give(pair.b, old);
  CHECK(pair.b.counters.drop_qp_state == old.size());
  pair.options.psn_a = Psn{0x5000};
  for (Host* h : {&pair.a, &pair.b}) {
    pair.to_init(*h);
    pair.to_rtr(*h);
    pair.to_rts(*h);
  }
  pair.b.post_recv(2, 0, 256);
  pair.a.post(WrOpcode::SEND, 3, 0, 100);
  pair.settle();
  CHECK(pair.a.sends().size() == 1);
  const auto received = pair.b.receives();
  REQUIRE(received.size() == 1);
  CHECK(received[0].wr_id == 2);
}

TEST_CASE("Packets before RTR are dropped silently, the first one in RTR raises COMM_EST once") {
  Fresh fresh;
  Pair& pair = fresh.pair;
  fresh.reach(QpState::INIT);
  fresh.host.post_recv(1, 0, 64);
  pair.b.post(WrOpcode::SEND, 1, 0, 8);
  pair.b.post(WrOpcode::SEND, 2, 0, 8);
  const auto frames = pair.pull_all(pair.b);
  pair.give(fresh.host, frames);
  CHECK(fresh.host.counters.drop_qp_state == 2);
  CHECK_FALSE(fresh.host.qp->wants_tx());
  pair.to_rtr(fresh.host);
  pair.give(fresh.host, frames[0]);
  CHECK(fresh.host.raised(verbs::AsyncEventType::COMM_EST));
  CHECK(fresh.host.receives().size() == 1);
  fresh.host.effects.clear();
  CHECK(pair.pull(fresh.host)->opcode() == Opcode::RC_ACKNOWLEDGE);  // RTR answers
  fresh.host.post_recv(2, 0, 64);
  pair.give(fresh.host, frames[1]);
  CHECK(fresh.host.effects.events().empty());
  CHECK(fresh.host.receives().size() == 1);
}

TEST_CASE("SQD begins no new WR, ends the begun ones and raises SQ_DRAINED once; RTS goes on") {
  Pair pair;
  pair.a.post(WrOpcode::RDMA_WRITE, 1, 0, 600, 0, pair.b.mr.rkey);
  pair.a.post(WrOpcode::RDMA_WRITE, 2, 0, 600, 0, pair.b.mr.rkey);
  const auto first = pair.pull(pair.a);
  verbs::QpAttributes q;
  q.qp_state = QpState::SQD;
  REQUIRE(pair.a.modify(q));
  CHECK_FALSE(pair.a.raised(verbs::AsyncEventType::SQ_DRAINED));
  pair.give(pair.b, *first);
  pair.settle();
  CHECK(pair.a.sends().size() == 1);
  CHECK(pair.a.raised(verbs::AsyncEventType::SQ_DRAINED));
  CHECK(pair.a.effects.events().size() == 1);
  pair.a.post(WrOpcode::RDMA_WRITE, 3, 0, 6, 0, pair.b.mr.rkey);
  CHECK_FALSE(pair.a.qp->wants_tx());
  q.timeout = 10;
  REQUIRE(pair.a.modify(q));  // SQD to SQD
  q = {};
  q.qp_state = QpState::RTS;
  REQUIRE(pair.a.modify(q));
  pair.settle();
  CHECK(pair.a.sends().size() == 2);
  // With nothing under way SQD is drained at once.
  pair.a.effects.clear();
  q.qp_state = QpState::SQD;
  REQUIRE(pair.a.modify(q));
  CHECK(pair.a.raised(verbs::AsyncEventType::SQ_DRAINED));
}

TEST_CASE("Wrong transport, P_Key and source are dropped, each with its counter") {
  Pair pair;
  Host& b = pair.b;
  b.post_recv(1, 0, 4096);
  const std::uint32_t psn = pair.options.psn_a.value();
  const auto give = [&](auto change) {
    auto fields = pair.bth(b, Opcode::RC_SEND_ONLY, psn, true);
    change(fields);
    pair.give(b, pair.make(b, fields, 4));
  };
  give([](auto& f) { f.opcode = Opcode::UC_SEND_ONLY; });
  CHECK(b.counters.drop_opcode == 1);
  give([](auto& f) { f.opcode = Opcode::UD_SEND_ONLY; });
  CHECK(b.counters.drop_opcode == 2);
  give([](auto& f) { f.pkey = 0xfffe; });
  CHECK(b.counters.drop_pkey == 1);
  CHECK_FALSE(b.qp->wants_tx());

  auto stranger = pair.path(pair.a);
  stranger.source = IpAddress::v4(198, 18, 0, 77);
  Frame frame;
  frame.bytes.resize(200);
  wire::FrameBuilder builder(frame.bytes, wire::make_path_headers(stranger),
                             pair.bth(b, Opcode::RC_SEND_ONLY, psn, true), 4);
  frame.bytes.resize(builder.finish());
  pair.give(b, frame);
  CHECK(b.counters.drop_source == 1);
  CHECK(b.receives().empty());

  // A limited member talks to a full one.
  give([](auto& f) { f.pkey = 0x7fff; });
  CHECK(b.receives().size() == 1);

  auto cnp = pair.bth(b, Opcode::CNP, 0);
  cnp.becn = true;
  pair.give(b, pair.make(b, cnp));
  CHECK(b.counters.rp_cnp_ignored == 1);
  CHECK(b.counters.rcvd_pkts == 6);
}

TEST_CASE("Two limited members do not talk") {
  Fresh fresh;
  auto q = fresh.pair.init_attributes();
  q.pkey = 0x7fff;
  REQUIRE(fresh.host.modify(q));
  fresh.pair.to_rtr(fresh.host);
  auto fields = fresh.pair.bth(fresh.host, Opcode::RC_SEND_ONLY, 0x900);
  fields.pkey = 0x7fff;
  fresh.pair.give(fresh.host, fresh.pair.make(fresh.host, fields, 0));
  CHECK(fresh.host.counters.drop_pkey == 1);
}

TEST_CASE("post_send names what is wrong with a WR") {
  Pair pair;
  Host& a = pair.a;
  CHECK(a.try_post(static_cast<WrOpcode>(7), 1, 0, 1) == PostResult::BAD_OPCODE);
  CHECK(a.try_post(WrOpcode::ATOMIC_FETCH_AND_ADD, 1, 0, 4) == PostResult::TOO_LONG);
  const verbs::Sge huge[] = {a.sge(0, 0x8000'0000), a.sge(0, 1)};
  CHECK(a.qp->post_send({.opcode = WrOpcode::SEND, .sg_list = huge}) == PostResult::TOO_LONG);
  Pair none({.rd_atomic = 0});
  CHECK(none.a.try_post(WrOpcode::RDMA_READ, 1, 0, 4) == PostResult::NO_RD_ATOMIC);
  CHECK(none.a.try_post(WrOpcode::ATOMIC_CMP_AND_SWP, 1, 0, 8) == PostResult::NO_RD_ATOMIC);
  Pair uc({.type = QpType::UC});
  CHECK(uc.a.try_post(WrOpcode::RDMA_READ, 1, 0, 4) == PostResult::BAD_OPCODE);
  CHECK(uc.a.try_post(WrOpcode::SEND_WITH_INV, 1, 0, 4) == PostResult::BAD_OPCODE);
  Pair ud({.type = QpType::UD});
  CHECK(ud.a.try_post(WrOpcode::RDMA_WRITE, 1, 0, 4) == PostResult::BAD_OPCODE);
  CHECK(ud.a.try_post(WrOpcode::SEND, 1, 0, 4) == PostResult::BAD_DESTINATION);
  CHECK(transport::name_of(PostResult::BAD_DESTINATION) == "BAD_DESTINATION");
}

TEST_CASE("A CQ that overruns raises CQ_ERR once and ends the QP") {
  Pair pair;
  verbs::CompletionQueue small{2};
  verbs::QpInitAttributes init;
  init.pd = pair.a.pd;
  init.send_cq = &small;
  init.recv_cq = &pair.a.recv_cq;
  pair.a.qp = std::make_unique<transport::Qp>(
      Qpn{0x100}, init, transport::Environment{pair.a.memory, pair.a.counters});
  pair.to_init(pair.a);
  pair.to_rtr(pair.a);
  pair.to_rts(pair.a);
  for (std::uint64_t i = 0; i < 5; ++i)
    pair.a.post(WrOpcode::RDMA_WRITE, i, 0, 8, 0, pair.b.mr.rkey);
  pair.settle();
  CHECK(pair.a.qp->state() == QpState::ERR);
  REQUIRE(pair.a.effects.events().size() == 1);
  CHECK(pair.a.effects.events()[0].type == verbs::AsyncEventType::CQ_ERR);
  CHECK(pair.a.effects.events()[0].qpn == Qpn{0x100});
}
