// Random mixes of operations over a wire that loses, repeats and reorders, both ways at once: all
// completes, in order, once, with the right bytes.
#include <algorithm>

#include "base/prng.hpp"
#include "host.hpp"

using namespace roce;
using namespace roce::test;

namespace {

struct Storm : Pair {
  Storm(std::uint64_t seed, const Options& o) : Pair(o), prng(seed) {}

  Prng prng;
  double lose = 0.02, repeat = 0.02, swap = 0.05;
  std::vector<Frame> wire[2];  ///< in flight to a, to b
  std::uint64_t posted[2] = {0, 0};
  std::uint64_t completed[2] = {0, 0};
  std::uint64_t to_receive[2] = {0, 0};  ///< messages that take a receive, to a and to b
  std::uint64_t received[2] = {0, 0};
  std::uint64_t added[2] = {0, 0};  ///< sum of FETCH_ADDs to a and to b
  std::uint64_t received_bytes[2] = {0, 0}, receive_total[2] = {0, 0};

  static constexpr std::uint64_t kAtomicAt = 0;  ///< the word all FETCH_ADDs go to
  static constexpr std::uint32_t kSlot = 4096;   ///< each WR has its own slot, by wr_id % 8

  std::uint64_t slot(std::uint64_t id) const { return 0x8000 + id % 8 * kSlot; }

  /// One WR on h with a fresh length and content; at most 8 outstanding, so that slots stay apart.
  void post_one(Host& h) {
    const std::uint64_t id = posted[h.index];
    if (id - completed[h.index] >= 8) return;
    constexpr WrOpcode kOpcodes[] = {WrOpcode::SEND,       WrOpcode::SEND_WITH_IMM,
                                     WrOpcode::RDMA_WRITE, WrOpcode::RDMA_WRITE_WITH_IMM,
                                     WrOpcode::RDMA_READ,  WrOpcode::ATOMIC_FETCH_AND_ADD};
    const WrOpcode opcode = kOpcodes[prng.below(6)];
    Host& peer = other(h);
    const std::uint32_t length = prng.chance(0.5) ? prng.below(64) : prng.below(kSlot);
    const std::uint64_t local = slot(id);
    const std::uint64_t remote = slot(id) + 0x10000;
    lengths[h.index][id % 8] = length;
    opcodes[h.index][id % 8] = opcode;
    ++posted[h.index];
    if (opcode == WrOpcode::ATOMIC_FETCH_AND_ADD) {
      const verbs::Sge list[] = {h.sge(local, 8)};
      REQUIRE(h.qp->post_send({.wr_id = id,
                               .opcode = opcode,
                               .send_flags = verbs::SEND_SIGNALED,
                               .sg_list = list,
                               .remote_addr = Host::kIova + kAtomicAt,
                               .rkey = peer.mr.rkey,
                               .compare_add = length}) == PostResult::OK);
      added[peer.index] += length;
      return;
    }
    if (opcode != WrOpcode::RDMA_READ)
      for (std::uint32_t i = 0; i < length; ++i)
        h.buffer[local + i] = static_cast<std::byte>(id * 31 + i);
    else
      for (std::uint32_t i = 0; i < length; ++i)
        peer.buffer[remote + i] = static_cast<std::byte>(id * 17 + i);
    const bool receives = opcode != WrOpcode::RDMA_WRITE && opcode != WrOpcode::RDMA_READ;
    if (receives) {
      ++to_receive[peer.index];
      receive_total[peer.index] += length;
    }
    const std::uint8_t fence = prng.chance(0.2) ? verbs::SEND_FENCE : 0;
    h.post(opcode, id, local, length, remote, peer.mr.rkey,
           static_cast<std::uint8_t>(verbs::SEND_SIGNALED | fence));
  }

  void reap(Host& h) {
    for (const auto& wc : h.sends()) {
      REQUIRE(wc.status == WcStatus::SUCCESS);
      REQUIRE(wc.wr_id == completed[h.index]);
      const std::uint64_t id = wc.wr_id;
      const std::uint32_t length = lengths[h.index][id % 8];
      if (opcodes[h.index][id % 8] == WrOpcode::RDMA_READ)
        for (std::uint32_t i = 0; i < length; ++i)
          REQUIRE(h.buffer[slot(id) + i] == static_cast<std::byte>(id * 17 + i));
      if (opcodes[h.index][id % 8] == WrOpcode::RDMA_WRITE)
        REQUIRE(same_bytes(other(h), slot(id) + 0x10000, h, slot(id), length));
      ++completed[h.index];
    }
    for (const auto& wc : h.receives()) {
      REQUIRE(wc.status == WcStatus::SUCCESS);
      ++received[h.index];
      received_bytes[h.index] += wc.byte_len;
    }
  }

  void transmit(Host& h, std::size_t most) {
    for (Frame& f : pull_all(h, most)) {
      if (prng.chance(lose)) continue;
      auto& line = wire[1 - h.index];
      if (prng.chance(repeat)) line.push_back(f);
      line.push_back(std::move(f));
      if (line.size() >= 2 && prng.chance(swap)) std::swap(line.back(), line[line.size() - 2]);
    }
  }
  void deliver(Host& h, std::size_t most) {
    auto& line = wire[h.index];
    const std::size_t n = std::min(most, line.size());
    for (std::size_t i = 0; i < n; ++i) give(h, line[i]);
    line.erase(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(n));
  }

  void run(std::uint64_t messages) {
    for (int idle = 0; idle < 10'000;) {
      for (Host* h : {&a, &b}) {
        if (posted[h->index] < messages) post_one(*h);
        if (prng.chance(0.3) && h->qp->outstanding_receives() < 4) h->post_recv(0, 0x20000, kSlot);
        transmit(*h, 1 + prng.below(8));
        deliver(*h, prng.below(12));
        if (h->qp->next_deadline() <= now) h->qp->on_timeout(now, h->effects);
        reap(*h);
      }
      pass(Duration::microseconds(prng.below(20)));
      ++idle;
      if (completed[0] + completed[1] > progress) {
        progress = completed[0] + completed[1];
        idle = 0;
      }
      if (completed[0] == messages && completed[1] == messages) return;
    }
    FAIL("stuck at " << completed[0] << " and " << completed[1]);
  }

  std::uint32_t lengths[2][8] = {};
  WrOpcode opcodes[2][8] = {};
  std::uint64_t progress = 0;
};

}  // namespace

TEST_CASE("Mixed operations survive loss, repetition and reordering in both directions") {
  const std::uint64_t seed = GENERATE(range(std::uint64_t{1}, std::uint64_t{41}));
  Storm storm(seed, {.psn_a = Psn{0xffff00},
                     .rd_atomic = static_cast<std::uint8_t>(1 + seed % 5),
                     .timeout = 4,
                     .retry_cnt = 7,
                     .min_rnr_timer = 1});
  CAPTURE(seed);
  if (seed % 4 == 0) storm.lose = storm.repeat = storm.swap = 0;
  if (seed % 4 == 1) storm.lose = 0.08;
  std::memset(storm.a.buffer.data(), 0, 8);
  std::memset(storm.b.buffer.data(), 0, 8);
  storm.run(300);
  for (const Host* h : {&storm.a, &storm.b}) {
    std::uint64_t sum = 0;
    std::memcpy(&sum, h->buffer.data(), 8);
    CHECK(sum == storm.added[h->index]);
    CHECK(storm.received[h->index] == storm.to_receive[h->index]);
    CHECK(storm.received_bytes[h->index] == storm.receive_total[h->index]);
    CHECK(h->qp->state() == QpState::RTS);
    CHECK(h->effects.events().empty());
    if (storm.lose != 0) CHECK(h->counters.retransmitted_packets > 0);
  }
}

TEST_CASE("The same seed gives the same frames") {
  const auto digest = [](std::uint64_t seed) {
    Storm storm(seed, {.timeout = 4, .retry_cnt = 7, .min_rnr_timer = 1});
    storm.run(60);
    const auto& c = storm.a.counters;
    return std::array{c.sent_pkts, c.rcvd_pkts, c.retransmitted_packets, c.duplicate_request,
                      static_cast<std::uint64_t>(storm.now.ns())};
  };
  CHECK(digest(5) == digest(5));
  CHECK(digest(5) != digest(6));
}
