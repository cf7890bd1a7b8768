// Many QPs at once: all operations mixed, coming and going, and the same bytes from the same seed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "base/prng.hpp"
#include "engine/rig.hpp"
#include "support/no_allocation.hpp"

using namespace roce;
using test::Rig;
using transport::PostResult;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

constexpr std::uint32_t kSlice = 3000;

/// QPs between both hosts of a rig, each with a slice of a buffer on either side.
struct Crowd {
  Crowd(Rig& rig_, std::uint32_t n)
      : rig(rig_),
        near(rig.a.buffer(std::size_t{n} * kSlice)),
        far(rig.b.buffer(near.bytes.size())) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const Qpn qa = rig.a.rc_qp(16), qb = rig.b.rc_qp(16);
      rig.a.connect(qa, rig.b, qb);
      rig.b.connect(qb, rig.a, qa);
      ours.push_back(qa);
      theirs.push_back(qb);
    }
  }
  [[nodiscard]] std::uint64_t at(const test::Host::Buffer& buffer, std::uint32_t qp) const {
    return buffer.mr.addr + std::uint64_t{qp} * kSlice;
  }
  /// Posts one request of a QP over its own slices; SENDs get their receive.
  void post(std::uint32_t qp, WrOpcode opcode, std::uint64_t wr_id, std::uint32_t length) {
    const verbs::Sge local{at(near, qp), length, near.mr.lkey};
    verbs::SendWr wr = test::write_wr(wr_id, local, far.mr);
    wr.opcode = opcode;
    wr.remote_addr = at(far, qp);
    wr.compare_add = 1;
    if (opcode == WrOpcode::SEND) {
      const verbs::Sge into{at(far, qp), kSlice, far.mr.lkey};
      REQUIRE(rig.b.worker.post_recv(theirs[qp], {.wr_id = wr_id, .sg_list = {&into, 1}}) ==
              PostResult::OK);
    }
    REQUIRE(rig.a.worker.post_send(ours[qp], wr) == PostResult::OK);
  }

  Rig& rig;
  test::Host::Buffer& near;
  test::Host::Buffer& far;
  std::vector<Qpn> ours, theirs;
};

/// FNV-1a over whatever a worker reports at the end of a run.
struct Digest {
  std::uint64_t value = 0xcbf29ce484222325;
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes)
      value = (value ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  }
  template <class T>
  void add_value(const T& t) {
    add(std::as_bytes(std::span{&t, 1}));
  }
};

/// Random requests on 64 QPs; checks order of completion per QP and returns a digest.
std::uint64_t run_mixture(std::uint64_t seed) {
  constexpr std::uint32_t kQps = 64;
  Rig rig;
  Crowd crowd{rig, kQps};
  Prng prng{seed};
  for (auto& byte : crowd.near.bytes) byte = static_cast<std::byte>(prng());
  std::vector<std::uint64_t> posted(kQps), done(kQps);
  std::array<verbs::Wc, 64> wcs;
  Digest digest;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 40; ++i) {
      const std::uint32_t qp = prng.below(kQps);
      if (posted[qp] - done[qp] >= 16) continue;
      constexpr std::array kOpcodes = {WrOpcode::RDMA_WRITE, WrOpcode::RDMA_READ, WrOpcode::SEND,
                                       WrOpcode::ATOMIC_FETCH_AND_ADD};
      const WrOpcode opcode = kOpcodes[prng.below(4)];
      const bool atomic = opcode == WrOpcode::ATOMIC_FETCH_AND_ADD;
      crowd.post(qp, opcode, posted[qp]++, atomic ? 8 : prng.below(kSlice) + 1);
    }
    for (std::uint32_t turns = prng.below(6); turns > 0; --turns) {
      const test::NoAllocation guard;
      (void)rig.a.worker.turn(rig.now);
      (void)rig.b.worker.turn(rig.now);
      rig.now = rig.now + Duration::nanoseconds(500);
    }
    for (std::size_t n = rig.a.cq.poll(wcs); n > 0; n = rig.a.cq.poll(wcs)) {
      for (const verbs::Wc& wc : std::span{wcs}.first(n)) {
        REQUIRE(wc.status == WcStatus::SUCCESS);
        const auto qp = static_cast<std::size_t>(
            std::find(crowd.ours.begin(), crowd.ours.end(), wc.qp_num) - crowd.ours.begin());
        REQUIRE(wc.wr_id == done[qp]++);
        digest.add_value(wc.wr_id);
        digest.add_value(wc.qp_num.value());
      }
    }
  }
  rig.run();
  std::uint64_t open = rig.a.cq.size();
  for (std::uint32_t qp = 0; qp < kQps; ++qp) open -= posted[qp] - done[qp];
  REQUIRE(open == 0);
  REQUIRE(rig.a.worker.counters().retransmitted_packets == 0);
  digest.add(crowd.near.bytes);
  digest.add(crowd.far.bytes);
  digest.add_value(rig.wire.first().counters().obytes);
  digest.add_value(rig.wire.second().counters().obytes);
  digest.add_value(rig.now.ns());
  return digest.value;
}

}  // namespace

TEST_CASE("requests of all kinds on many QPs complete in order, and the same seed repeats itself",
          "[engine][scale]") {
  const std::uint64_t violations = test::NoAllocation::violations();
  const std::uint64_t first = run_mixture(11);
  CHECK(first == run_mixture(11));
  CHECK(first != run_mixture(12));
  CHECK(test::NoAllocation::violations() == violations);
}

TEST_CASE("QPs that come and go in the middle of traffic leave nothing behind", "[engine][scale]") {
  constexpr std::uint32_t kQps = 200;
  Rig rig{kQps + 1};
  Crowd lasting{rig, 1};
  auto& near = rig.a.buffer(kSlice);
  auto& far = rig.b.buffer(kSlice);
  const verbs::Sge sge{near.mr.addr, kSlice, near.mr.lkey};
  Prng prng{21};
  std::uint64_t lasting_done = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<Qpn> ours, theirs;
    for (std::uint32_t i = 0; i < kQps; ++i) {
      ours.push_back(rig.a.rc_qp(4));
      theirs.push_back(rig.b.rc_qp(4));
      rig.a.connect(ours[i], rig.b, theirs[i]);
      rig.b.connect(theirs[i], rig.a, ours[i]);
      REQUIRE(rig.a.worker.post_send(ours[i], test::write_wr(i, sge, far.mr)) == PostResult::OK);
    }
    lasting.post(0, WrOpcode::RDMA_WRITE, 1'000'000, kSlice);
    for (std::uint32_t i = 0; i < kQps; ++i) {
      rig.a.worker.destroy_qp(ours[prng.below(kQps)]);  // some twice, some not at all
      if (prng.chance(0.5)) rig.b.worker.destroy_qp(theirs[prng.below(kQps)]);
      if (prng.chance(0.3)) (void)rig.a.worker.turn(rig.now);
      if (prng.chance(0.3)) (void)rig.b.worker.turn(rig.now);
    }
    for (std::uint32_t i = 0; i < kQps; ++i) {
      rig.a.worker.destroy_qp(ours[i]);
      rig.b.worker.destroy_qp(theirs[i]);
    }
    rig.run();
    std::array<verbs::Wc, 2 * kQps> wcs;
    const std::size_t n = rig.a.cq.poll(wcs);
    lasting_done += static_cast<std::uint64_t>(std::count_if(
        wcs.begin(), wcs.begin() + static_cast<std::ptrdiff_t>(n), [](const verbs::Wc& wc) {
          return wc.wr_id == 1'000'000 && wc.status == WcStatus::SUCCESS;
        }));
  }
  CHECK(lasting_done == 40);
  // An armed deadline that its QP no longer has goes when it comes.
  rig.run(Duration::seconds(60));
  CHECK(rig.a.worker.next_deadline().is_never());
  CHECK(rig.b.worker.next_deadline().is_never());
  CHECK(rig.a.worker.worker_counters().unknown_qpn > 0);
  CHECK(rig.b.worker.worker_counters().unknown_qpn > 0);
}

TEST_CASE("QPs with long queues share the wire turn by turn", "[engine][scale]") {
  Rig rig{8};
  Crowd crowd{rig, 4};
  for (std::uint32_t qp = 0; qp < 4; ++qp)
    for (std::uint64_t i = 0; i < 16; ++i) crowd.post(qp, WrOpcode::RDMA_WRITE, i, 64);
  (void)rig.a.worker.turn(rig.now);  // 32 frames: 8 of each QP
  (void)rig.b.worker.turn(rig.now);
  (void)rig.a.worker.turn(rig.now);
  std::array<verbs::Wc, 64> wcs;
  std::array<std::size_t, 4> share{};
  const std::size_t n = rig.a.cq.poll(wcs);
  for (const verbs::Wc& wc : std::span{wcs}.first(n))
    for (std::size_t qp = 0; qp < 4; ++qp)
      if (crowd.ours[qp] == wc.qp_num) ++share[qp];
  // Only the last WR of a QP asks for an ACK until 64 packets are out; each QP had an equal share.
  CHECK(std::all_of(share.begin(), share.end(), [&](std::size_t s) { return s == share[0]; }));
  CHECK(rig.wire.first().counters().opackets == 64);
  rig.run();
  CHECK(n + rig.a.cq.size() == 64);
}
