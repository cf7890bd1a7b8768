// Duplicates at the RC responder: nothing runs twice, and answers go in PSN order.
#include "host.hpp"

using namespace roce;
using namespace roce::test;

namespace {

struct Bench : Pair {
  explicit Bench(const Options& o = {}) : Pair(o) {}
  void send(std::uint32_t psn, std::size_t payload = 8) {
    give(b, make(b, bth(b, Opcode::RC_SEND_ONLY, psn, true), payload));
  }
  void read(std::uint32_t psn, std::uint64_t offset, std::uint32_t length) {
    give(b, make_reth(b, Opcode::RC_RDMA_READ_REQUEST, psn, offset, length, 0));
  }
  void fetch_add(std::uint32_t psn, std::uint64_t offset, std::uint64_t add) {
    give(b, make(b, bth(b, Opcode::RC_FETCH_ADD, psn, true), 0, [&](wire::FrameBuilder& f) {
           f.atomic_eth().va.set(Host::kIova + offset);
           f.atomic_eth().rkey.set(b.mr.rkey);
           f.atomic_eth().swap_or_add.set(add);
         }));
  }
  /// What b has to say, as (opcode, PSN).
  [[nodiscard]] std::vector<std::pair<Opcode, std::uint32_t>> answers() {
    std::vector<std::pair<Opcode, std::uint32_t>> out;
    for (const Frame& f : pull_all(b)) out.emplace_back(f.opcode(), f.psn());
    return out;
  }
};

using Answers = std::vector<std::pair<Opcode, std::uint32_t>>;
constexpr Opcode kFirst = Opcode::RC_RDMA_READ_RESPONSE_FIRST;
constexpr Opcode kMiddle = Opcode::RC_RDMA_READ_RESPONSE_MIDDLE;
constexpr Opcode kLast = Opcode::RC_RDMA_READ_RESPONSE_LAST;
constexpr Opcode kOnly = Opcode::RC_RDMA_READ_RESPONSE_ONLY;
constexpr Opcode kAck = Opcode::RC_ACKNOWLEDGE;
constexpr Opcode kAtomic = Opcode::RC_ATOMIC_ACKNOWLEDGE;

}  // namespace

TEST_CASE("A duplicate SEND takes no receive WR; duplicates share one ACK with ePSN - 1") {
  Bench t;
  for (std::uint64_t i = 0; i < 4; ++i) t.b.post_recv(i, 0, 64);
  for (std::uint32_t i = 0; i < 3; ++i) t.send(0x100 + i);
  CHECK(t.answers() == Answers{{kAck, 0x102}});
  t.b.buffer[0] = std::byte{0x55};
  for (std::uint32_t i = 0; i < 3; ++i) t.send(0x100 + i);
  const auto frames = t.pull_all(t.b);
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].psn() == 0x102);
  CHECK(frames[0].msn() == 3);
  CHECK(t.b.receives().size() == 3);
  CHECK(t.b.qp->outstanding_receives() == 1);
  CHECK(t.b.buffer[0] == std::byte{0x55});  // not executed again
  CHECK(t.b.counters.duplicate_request == 3);
}

TEST_CASE("A duplicate is answered even when its message would need a receive WR that is gone") {
  Bench t;
  t.b.post_recv(1, 0, 64);
  t.send(0x100);
  CHECK(t.answers() == Answers{{kAck, 0x100}});
  t.send(0x100);
  CHECK(t.answers() == Answers{{kAck, 0x100}});
  CHECK(t.b.counters.out_of_buffer == 0);
}

TEST_CASE("A duplicate READ, or its rest, is read again and begins with FIRST or ONLY") {
  Bench t;
  t.read(0x100, 0, 256 * 3 + 10);
  CHECK(t.answers() ==
        Answers{{kFirst, 0x100}, {kMiddle, 0x101}, {kMiddle, 0x102}, {kLast, 0x103}});
  t.b.buffer[256 * 3] = std::byte{0xab};
  t.read(0x102, 512, 256 + 10);
  const auto rest = t.pull_all(t.b);
  REQUIRE(rest.size() == 2);
  CHECK(rest[0].opcode() == kFirst);
  CHECK(rest[0].psn() == 0x102);
  CHECK(rest[0].packet().payload.size() == 256);
  CHECK(rest[1].opcode() == kLast);
  CHECK(rest[1].packet().payload.size() == 10);
  CHECK(rest[1].packet().payload[0] == std::byte{0xab});
  CHECK(rest[1].msn() == 1);
  t.read(0x103, 768, 10);
  CHECK(t.answers() == Answers{{kOnly, 0x103}});
  CHECK(t.b.counters.rx_read_requests == 1);
}

TEST_CASE("A duplicate READ that is not a part of the saved one is dropped silently") {
  Bench t;
  t.read(0x100, 0, 256 * 3);
  CHECK(t.answers().size() == 3);
  t.read(0x101, 0, 256);        // PSN and address do not agree
  t.read(0x101, 256, 256 * 3);  // beyond its end
  t.read(0x0ff, 0, 256);        // never seen
  t.give(t.b, t.make_reth(t.b, Opcode::RC_RDMA_READ_REQUEST, 0x100, 0, 768, 0, 0xdead00));
  CHECK(t.answers().empty());
  CHECK(t.b.qp->state() == QpState::RTS);
}

TEST_CASE("A duplicate READ of a region that is gone ends with NAK 0x62") {
  Bench t;
  t.read(0x100, 0, 256);
  CHECK(t.answers().size() == 1);
  REQUIRE(t.b.memory.dereg_mr(t.b.mr.rkey));
  t.read(0x100, 0, 256);
  const auto frames = t.pull_all(t.b);
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].syndrome() == 0x62);
  CHECK(frames[0].psn() == 0x100);
  CHECK(t.b.qp->state() == QpState::ERR);
}

TEST_CASE("A duplicate atomic is answered with the saved value and not executed") {
  Bench t;
  const std::uint64_t start = 1000;
  std::memcpy(t.b.buffer.data(), &start, 8);
  t.fetch_add(0x100, 0, 1);
  t.fetch_add(0x101, 0, 1);
  CHECK(t.pull_all(t.b).size() == 2);
  t.fetch_add(0x100, 0, 1);
  t.fetch_add(0x101, 0, 1);
  const auto again = t.pull_all(t.b);
  REQUIRE(again.size() == 2);
  CHECK(again[0].packet().atomic_ack().original.get() == 1000);
  CHECK(again[1].packet().atomic_ack().original.get() == 1001);
  std::uint64_t value = 0;
  std::memcpy(&value, t.b.buffer.data(), 8);
  CHECK(value == 1002);
}

TEST_CASE("Resources are kept for max_dest_rd_atomic rounded up to a power of two") {
  Bench t({.rd_atomic = 3});
  for (std::uint32_t i = 0; i < 5; ++i) {
    t.fetch_add(0x100 + i, 0, 1);
    CHECK(t.answers() == Answers{{kAtomic, 0x100 + i}});
  }
  t.fetch_add(0x100, 0, 1);  // the fifth took its slot
  CHECK(t.answers().empty());
  for (std::uint32_t i = 1; i < 5; ++i) {
    t.fetch_add(0x100 + i, 0, 1);
    CHECK(t.answers() == Answers{{kAtomic, 0x100 + i}});
  }
}

TEST_CASE("More READs than resources recycle the oldest and nothing breaks") {
  Bench t({.rd_atomic = 2});
  for (std::uint32_t i = 0; i < 4; ++i) t.read(0x100 + i, 0, 256);
  CHECK(t.answers() == Answers{{kOnly, 0x102}, {kOnly, 0x103}});
}

TEST_CASE("The ACK for a duplicate stays below a later READ, whose response must come first") {
  Bench t;
  t.b.post_recv(1, 0, 64);
  t.b.post_recv(2, 0, 64);
  t.send(0x100);
  t.read(0x101, 0, 512);
  t.send(0x103);
  CHECK(t.answers() == Answers{{kAck, 0x100}, {kFirst, 0x101}, {kLast, 0x102}, {kAck, 0x103}});
  // All of it again: the same answers in the same order.
  t.send(0x100);
  t.read(0x101, 0, 512);
  t.send(0x103);
  CHECK(t.answers() == Answers{{kAck, 0x100}, {kFirst, 0x101}, {kLast, 0x102}, {kAck, 0x103}});
  t.send(0x100);
  CHECK(t.answers() == Answers{{kAck, 0x100}});
  t.send(0x103);
  CHECK(t.answers() == Answers{{kAck, 0x103}});
}

TEST_CASE(
    "A READ asked for again while a later one is under way goes first, the later starts over") {
  Bench t;
  t.read(0x100, 0, 256 * 2);
  t.read(0x102, 1024, 256 * 4);
  for (int i = 0; i < 4; ++i) CHECK(t.pull(t.b).has_value());  // 100 101 102 103
  t.read(0x101, 256, 256);
  CHECK(
      t.answers() ==
      Answers{{kOnly, 0x101}, {kFirst, 0x102}, {kMiddle, 0x103}, {kMiddle, 0x104}, {kLast, 0x105}});
}

TEST_CASE("A READ asked for again while it is under way restarts where the peer wants it") {
  Bench t;
  t.read(0x100, 0, 256 * 4);
  CHECK(t.pull(t.b)->psn() == 0x100);
  CHECK(t.pull(t.b)->psn() == 0x101);
  t.read(0x101, 256, 256 * 3);
  CHECK(t.answers() == Answers{{kFirst, 0x101}, {kMiddle, 0x102}, {kLast, 0x103}});
}

TEST_CASE("Duplicates are answered during the silence after a NAK and do not end it") {
  Bench t;
  for (std::uint64_t i = 0; i < 4; ++i) t.b.post_recv(i, 0, 64);
  t.send(0x100);
  CHECK(t.answers() == Answers{{kAck, 0x100}});
  t.send(0x102);
  CHECK(t.pull(t.b)->syndrome() == 0x60);
  t.send(0x100);
  CHECK(t.answers() == Answers{{kAck, 0x100}});
  t.send(0x103);
  CHECK(t.answers().empty());
}

TEST_CASE("No ACK ever carries the PSN of a READ or atomic, not even of one that was given up") {
  Bench t({.rd_atomic = 1});
  t.b.post_recv(1, 0, 64);
  t.send(0x100);
  t.fetch_add(0x101, 0, 1);
  CHECK(t.answers() == Answers{{kAck, 0x100}, {kAtomic, 0x101}});
  t.fetch_add(0x102, 0, 1);  // takes the slot of the first
  CHECK(t.answers() == Answers{{kAtomic, 0x102}});
  t.send(0x100);  // a straggler: its requester has had the answers to both atomics
  CHECK(t.answers().empty());
}
