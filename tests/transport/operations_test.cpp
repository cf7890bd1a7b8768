// Each operation over a wire that loses nothing.
#include "host.hpp"

using namespace roce;
using namespace roce::test;

TEST_CASE("RC carries each operation of any length and completes it in post order") {
  const auto mtu = GENERATE(verbs::Mtu::MTU_256, verbs::Mtu::MTU_1024, verbs::Mtu::MTU_4096);
  Pair pair({.mtu = mtu, .psn_a = Psn{0xffff'f0}});
  const std::uint32_t m = verbs::bytes_of(mtu);
  std::uint64_t wr_id = 0;
  for (const std::uint32_t length : {0u, 1u, 3u, m - 1, m, m + 1, 2 * m, 5 * m + 7}) {
    for (auto& byte : pair.b.buffer) byte = std::byte{0xee};
    pair.b.post_recv(900 + wr_id, 0x10000, 6 * m);
    pair.a.post(WrOpcode::SEND, ++wr_id, 0, length);
    pair.a.post(WrOpcode::RDMA_WRITE, ++wr_id, 0, length, 0x20000, pair.b.mr.rkey);
    pair.b.post_recv(901 + wr_id, 0, 0);
    pair.a.post(WrOpcode::RDMA_WRITE_WITH_IMM, ++wr_id, 0, length, 0x30000, pair.b.mr.rkey);
    pair.a.post(WrOpcode::RDMA_READ, ++wr_id, 0x38000, length, 0x20000, pair.b.mr.rkey);
    pair.settle();
    const auto sent = pair.a.sends();
    REQUIRE(sent.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(sent[i].status == WcStatus::SUCCESS);
      CHECK(sent[i].wr_id == wr_id - 3 + i);
      CHECK(sent[i].qp_num == pair.a.qp->number());
    }
    CHECK(sent[3].opcode == verbs::WcOpcode::RDMA_READ);
    CHECK(sent[3].byte_len == length);
    CHECK(same_bytes(pair.b, 0x10000, pair.a, 0, length));
    CHECK(same_bytes(pair.b, 0x20000, pair.a, 0, length));
    CHECK(same_bytes(pair.b, 0x30000, pair.a, 0, length));
    CHECK(same_bytes(pair.a, 0x38000, pair.a, 0, length));
    CHECK(pair.b.buffer[0x10000 + length] == std::byte{0xee});
    CHECK(pair.b.buffer[0x20000 + length] == std::byte{0xee});
    const auto received = pair.b.receives();
    REQUIRE(received.size() == 2);
    CHECK(received[0].opcode == verbs::WcOpcode::RECV);
    CHECK(received[0].byte_len == length);
    CHECK(received[0].wc_flags == 0);
    CHECK(received[1].opcode == verbs::WcOpcode::RECV_RDMA_WITH_IMM);
    CHECK(received[1].byte_len == length);
    CHECK(received[1].wc_flags == verbs::WC_WITH_IMM);
    CHECK(received[1].imm_data == verbs::Immediate{1, 2, 3, 4});
  }
  CHECK(pair.a.counters.retransmitted_packets == 0);
  CHECK(pair.a.counters.unexpected_response == 0);
  CHECK(pair.b.counters.duplicate_request == 0);
  CHECK(pair.a.qp->next_deadline().is_never());
}

TEST_CASE("Atomics return the old value in host order and change the remote one") {
  Pair pair;
  const std::uint64_t start = 0xffff'ffff'ffff'fff0;
  std::memcpy(&pair.b.buffer[0x40], &start, 8);
  verbs::Sge list[] = {pair.a.sge(0x80, 8)};
  verbs::SendWr wr;
  wr.opcode = WrOpcode::ATOMIC_FETCH_AND_ADD;
  wr.send_flags = verbs::SEND_SIGNALED;
  wr.sg_list = list;
  wr.remote_addr = Host::kIova + 0x40;
  wr.rkey = pair.b.mr.rkey;
  wr.compare_add = 0x20;
  REQUIRE(pair.a.qp->post_send(wr) == PostResult::OK);
  pair.settle();
  std::uint64_t old = 0;
  std::uint64_t value = 0;
  const auto read = [&] {
    std::memcpy(&old, &pair.a.buffer[0x80], 8);
    std::memcpy(&value, &pair.b.buffer[0x40], 8);
  };
  read();
  CHECK(old == start);
  CHECK(value == 0x10);  // wraps modulo 2^64

  wr.opcode = WrOpcode::ATOMIC_CMP_AND_SWP;
  wr.compare_add = 0x10;
  wr.swap = 0x1234;
  REQUIRE(pair.a.qp->post_send(wr) == PostResult::OK);
  pair.settle();
  read();
  CHECK(old == 0x10);
  CHECK(value == 0x1234);
  REQUIRE(pair.a.qp->post_send(wr) == PostResult::OK);  // does not compare equal now
  pair.settle();
  read();
  CHECK(old == 0x1234);
  CHECK(value == 0x1234);
  const auto done = pair.a.sends();
  REQUIRE(done.size() == 3);
  CHECK(done[0].opcode == verbs::WcOpcode::FETCH_ADD);
  CHECK(done[1].opcode == verbs::WcOpcode::COMP_SWAP);
  CHECK(pair.b.counters.rx_atomic_requests == 3);
}

TEST_CASE("SEND_WITH_INV kills the named region and says so in the completion") {
  Pair pair;
  std::vector<std::byte> memory(64);
  const auto region = *pair.b.memory.reg_mr(pair.b.pd, memory, 0x5000,
                                            verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE,
                                            verbs::RemoteInvalidate::ALLOW);
  pair.b.post_recv(7, 0, 64);
  verbs::SendWr wr;
  wr.opcode = WrOpcode::SEND_WITH_INV;
  wr.invalidate_rkey = region.rkey;
  wr.send_flags = verbs::SEND_SIGNALED;
  REQUIRE(pair.a.qp->post_send(wr) == PostResult::OK);
  pair.settle();
  const auto received = pair.b.receives();
  REQUIRE(received.size() == 1);
  CHECK(received[0].wc_flags == verbs::WC_WITH_INV);
  CHECK(received[0].invalidated_rkey == region.rkey);
  CHECK_FALSE(
      pair.b.memory.check(region.rkey, pair.b.pd, 0x5000, 1, verbs::ACCESS_REMOTE_WRITE).ok());
  CHECK(pair.a.sends().size() == 1);
}

TEST_CASE("SGE lists of 32 pieces and empty pieces are gathered and scattered") {
  Pair pair({.cap = {.max_send_sge = 32, .max_recv_sge = 32}});
  std::vector<verbs::Sge> from, to;
  std::uint32_t total = 0;
  for (std::uint32_t i = 0; i < 32; ++i) {
    from.push_back(pair.a.sge(i * 200, i == 5 ? 0 : 37 + i));
    to.push_back(pair.b.sge(0x8000 + i * 300, 68 - i));
    total += from.back().length;
  }
  REQUIRE(pair.b.qp->post_recv({1, to}) == PostResult::OK);
  verbs::SendWr wr;
  wr.opcode = WrOpcode::SEND;
  wr.send_flags = verbs::SEND_SIGNALED;
  wr.sg_list = from;
  REQUIRE(pair.a.qp->post_send(wr) == PostResult::OK);
  pair.settle();
  const auto received = pair.b.receives();
  REQUIRE(received.size() == 1);
  CHECK(received[0].byte_len == total);
  std::vector<std::byte> sent, got;
  for (const auto& s : from)
    for (std::uint32_t i = 0; i < s.length; ++i)
      sent.push_back(pair.a.buffer[s.addr - Host::kIova + i]);
  for (const auto& s : to)
    for (std::uint32_t i = 0; i < s.length; ++i)
      got.push_back(pair.b.buffer[s.addr - Host::kIova + i]);
  got.resize(sent.size());
  CHECK(sent == got);
  from.push_back(from[0]);
  wr.sg_list = from;
  CHECK(pair.a.qp->post_send(wr) == PostResult::TOO_MANY_SGES);
}

TEST_CASE("Inline data are taken at posting and need no key") {
  Pair pair;
  std::array<std::byte, 200> data{};
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i ^ 0x5a);
  const auto expected = data;
  const verbs::Sge list[] = {{reinterpret_cast<std::uintptr_t>(data.data()), 120, 0},
                             {reinterpret_cast<std::uintptr_t>(data.data()) + 120, 80, 0}};
  verbs::SendWr wr;
  wr.opcode = WrOpcode::RDMA_WRITE;
  wr.send_flags = verbs::SEND_INLINE | verbs::SEND_SIGNALED;
  wr.sg_list = list;
  wr.remote_addr = Host::kIova;
  wr.rkey = pair.b.mr.rkey;
  REQUIRE(pair.a.qp->post_send(wr) == PostResult::OK);
  data.fill(std::byte{0});
  pair.settle();
  CHECK(std::memcmp(pair.b.buffer.data(), expected.data(), expected.size()) == 0);
  const verbs::Sge long_list[] = {{reinterpret_cast<std::uintptr_t>(pair.a.buffer.data()), 257, 0}};
  wr.sg_list = long_list;
  CHECK(pair.a.qp->post_send(wr) == PostResult::TOO_LONG);
}

TEST_CASE("Unsignalled WRs free their slot without a completion, sq_sig_all signals all") {
  Pair pair({.cap = {.max_send_wr = 4}});
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 4; ++i)
      pair.a.post(WrOpcode::RDMA_WRITE, i, 0, 10, 0, pair.b.mr.rkey, 0);
    CHECK(pair.a.try_post(WrOpcode::SEND, 9, 0, 1) == PostResult::QUEUE_FULL);
    CHECK(pair.a.qp->outstanding_sends() == 4);
    pair.settle();
    CHECK(pair.a.qp->outstanding_sends() == 0);
    CHECK(pair.a.sends().empty());
  }
  Pair all({.signal_all = true});
  all.a.post(WrOpcode::RDMA_WRITE, 1, 0, 10, 0, all.b.mr.rkey, 0);
  all.settle();
  CHECK(all.a.sends().size() == 1);
}

TEST_CASE("SE stands on the last or only packet of SEND and WRITE_WITH_IMM alone") {
  Pair pair;
  const auto flags = static_cast<std::uint8_t>(verbs::SEND_SOLICITED | verbs::SEND_SIGNALED);
  pair.b.post_recv(1, 0, 4096);
  pair.b.post_recv(2, 0, 4096);
  pair.a.post(WrOpcode::SEND, 1, 0, 700, 0, 0, flags);
  pair.a.post(WrOpcode::RDMA_WRITE_WITH_IMM, 2, 0, 10, 0, pair.b.mr.rkey, flags);
  pair.a.post(WrOpcode::RDMA_WRITE, 3, 0, 10, 0, pair.b.mr.rkey, flags);
  std::vector<bool> solicited;
  const auto frames = pair.pull_all(pair.a);
  for (const auto& frame : frames) {
    solicited.push_back(frame.packet().bth->solicited());
    CHECK(frame.packet().bth->mig_req());
  }
  CHECK(solicited == std::vector<bool>{false, false, true, true, false});
  pair.b.recv_cq.arm(verbs::Notify::SOLICITED);
  pair.give(pair.b, frames);
  CHECK(pair.b.recv_cq.take_event());
}

TEST_CASE("Both directions run at once, READ responses taking turns with requests") {
  Pair pair;
  pair.a.post(WrOpcode::RDMA_READ, 1, 0, 20 * 256, 0x8000, pair.b.mr.rkey);
  pair.b.post(WrOpcode::RDMA_WRITE, 2, 0x4000, 20 * 256, 0x10000, pair.a.mr.rkey);
  pair.give(pair.b, pair.pull_all(pair.a));
  const auto frames = pair.pull_all(pair.b);
  REQUIRE(frames.size() == 40);
  for (std::size_t i = 0; i < 40; ++i)
    CHECK(frames[i].packet().info().is_response() == (i % 2 == 0));
  pair.give(pair.a, frames);
  pair.settle();
  CHECK(pair.a.sends().size() == 1);
  CHECK(pair.b.sends().size() == 1);
}

TEST_CASE("RC runs over IPv6, and takes nothing from an IPv6 stranger or from IPv4") {
  Pair pair({.v6 = true});
  pair.b.post_recv(1, 0x8000, 1000);
  pair.a.post(WrOpcode::SEND, 1, 0, 1000);
  pair.a.post(WrOpcode::RDMA_READ, 2, 0x4000, 1000, 0x8000, pair.b.mr.rkey);
  pair.settle();
  CHECK(pair.a.sends().size() == 2);
  CHECK(same_bytes(pair.a, 0x4000, pair.a, 0, 1000));
  Pair v4;
  v4.b.post_recv(1, 0, 64);
  pair.b.post_recv(1, 0, 64);
  v4.a.post(WrOpcode::SEND, 1, 0, 8);
  pair.a.post(WrOpcode::SEND, 1, 0, 8);
  pair.give(pair.b, v4.pull_all(v4.a));
  v4.give(v4.b, pair.pull_all(pair.a));
  CHECK(pair.b.counters.drop_source == 1);
  CHECK(v4.b.counters.drop_source == 1);
}

TEST_CASE("A QP in SQD goes on answering its peer") {
  Pair pair;
  verbs::QpAttributes q;
  q.qp_state = QpState::SQD;
  REQUIRE(pair.b.modify(q));
  pair.b.post_recv(1, 0, 64);
  pair.a.post(WrOpcode::SEND, 1, 0, 8);
  pair.a.post(WrOpcode::RDMA_READ, 2, 0, 600, 0, pair.b.mr.rkey);
  pair.settle();
  CHECK(pair.a.sends().size() == 2);
}
