#include <catch2/catch.hpp>
#include <cstring>
#include <set>

#include "base/prng.hpp"
#include "engine/rig.hpp"
#include "wire/build.hpp"
#include "wire/neighbour.hpp"

using namespace roce;
using test::Rig;
using transport::PostResult;
using verbs::WcStatus;
using verbs::WrOpcode;

namespace {

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  Prng prng{seed};
  for (auto& byte : bytes) byte = static_cast<std::byte>(prng());
}

/// Sends one frame into the rig from host a's port, as an outsider would.
void inject(Rig& rig, std::span<const std::byte> bytes) {
  std::array<engine::Frame, 1> slot;
  REQUIRE(rig.wire.first().tx_reserve(slot) == 1);
  std::memcpy(slot[0].data, bytes.data(), bytes.size());
  slot[0].length = static_cast<std::uint32_t>(bytes.size());
  REQUIRE(rig.wire.first().tx_burst(rig.now, slot) == 1);
}

/// A SEND of four bytes from a to the given place, with a right ICRC.
std::vector<std::byte> send_frame(const Rig& rig, MacAddress mac, IpAddress ip, Qpn qpn) {
  wire::PathAttributes path;
  path.source_mac = rig.a.mac;
  path.destination_mac = mac;
  path.source = rig.a.address.address;
  path.destination = ip;
  std::vector<std::byte> frame(wire::kMaxFrameBytes);
  wire::FrameBuilder builder{frame,
                             wire::make_path_headers(path),
                             {.opcode = wire::Opcode::RC_SEND_ONLY, .dest_qpn = qpn},
                             4};
  frame.resize(builder.finish());
  return frame;
}

}  // namespace

TEST_CASE("all RC operations cross between two workers", "[engine][worker]") {
  Rig rig;
  const Qpn qa = rig.a.rc_qp(), qb = rig.b.rc_qp();
  rig.a.connect(qa, rig.b, qb);
  rig.b.connect(qb, rig.a, qa);
  auto& local = rig.a.buffer(10'000);
  auto& remote = rig.b.buffer(10'000);
  fill(local.bytes, 1);
  const verbs::Sge sge{local.mr.addr, 10'000, local.mr.lkey};

  SECTION("WRITE") {
    REQUIRE(rig.a.worker.post_send(qa, test::write_wr(7, sge, remote.mr)) == PostResult::OK);
    rig.run();
    const auto wc = rig.a.completion();
    CHECK(wc.wr_id == 7);
    CHECK(wc.status == WcStatus::SUCCESS);
    CHECK(remote.bytes == local.bytes);
  }
  SECTION("READ") {
    fill(remote.bytes, 2);
    auto wr = test::write_wr(8, sge, remote.mr);
    wr.opcode = WrOpcode::RDMA_READ;
    REQUIRE(rig.a.worker.post_send(qa, wr) == PostResult::OK);
    rig.run();
    CHECK(rig.a.completion().status == WcStatus::SUCCESS);
    CHECK(remote.bytes == local.bytes);
  }
  SECTION("SEND") {
    const verbs::Sge into{remote.mr.addr, 10'000, remote.mr.lkey};
    REQUIRE(rig.b.worker.post_recv(qb, {.wr_id = 5, .sg_list = {&into, 1}}) == PostResult::OK);
    auto wr = test::write_wr(9, sge, remote.mr);
    wr.opcode = WrOpcode::SEND;
    REQUIRE(rig.a.worker.post_send(qa, wr) == PostResult::OK);
    rig.run();
    CHECK(rig.a.completion().status == WcStatus::SUCCESS);
    const auto received = rig.b.completion();
    CHECK(received.wr_id == 5);
    CHECK(received.byte_len == 10'000);
    CHECK(remote.bytes == local.bytes);
  }
  SECTION("FETCH_ADD") {
    const std::uint64_t before = 40;
    std::memcpy(remote.bytes.data(), &before, 8);
    const verbs::Sge word{local.mr.addr, 8, local.mr.lkey};
    auto wr = test::write_wr(10, word, remote.mr);
    wr.opcode = WrOpcode::ATOMIC_FETCH_AND_ADD;
    wr.compare_add = 2;
    REQUIRE(rig.a.worker.post_send(qa, wr) == PostResult::OK);
    rig.run();
    CHECK(rig.a.completion().status == WcStatus::SUCCESS);
    std::uint64_t original = 0, after = 0;
    std::memcpy(&original, local.bytes.data(), 8);
    std::memcpy(&after, remote.bytes.data(), 8);
    CHECK(original == 40);
    CHECK(after == 42);
  }
}

TEST_CASE("16,384 QPs take turns and all complete", "[engine][worker][scale]") {
  constexpr std::uint32_t kQps = 16'384;
  Rig rig{kQps};
  auto& local = rig.a.buffer(64);
  auto& remote = rig.b.buffer(64);
  const verbs::Sge sge{local.mr.addr, 64, local.mr.lkey};
  std::vector<Qpn> mine;
  for (std::uint32_t i = 0; i < kQps; ++i) {
    const Qpn qa = rig.a.rc_qp(2), qb = rig.b.rc_qp(2);
    rig.a.connect(qa, rig.b, qb);
    rig.b.connect(qb, rig.a, qa);
    mine.push_back(qa);
  }
  for (const Qpn qpn : mine) {
    REQUIRE(rig.a.worker.post_send(qpn, test::write_wr(1, sge, remote.mr)) == PostResult::OK);
    REQUIRE(rig.a.worker.post_send(qpn, test::write_wr(2, sge, remote.mr)) == PostResult::OK);
  }
  rig.run();
  CHECK(rig.a.cq.size() == 2 * kQps);
  CHECK(rig.a.worker.counters().retransmitted_packets == 0);
}

TEST_CASE("a peer that falls silent ends in RETRY_EXC_ERR and the worker goes on",
          "[engine][worker]") {
  Rig rig;
  const Qpn dead = rig.a.rc_qp(), gone = rig.b.rc_qp();
  rig.a.connect(dead, rig.b, gone, 14, 3);
  rig.b.connect(gone, rig.a, dead);
  rig.b.worker.destroy_qp(gone);
  auto& local = rig.a.buffer(64);
  auto& remote = rig.b.buffer(64);
  const verbs::Sge sge{local.mr.addr, 64, local.mr.lkey};
  REQUIRE(rig.a.worker.post_send(dead, test::write_wr(1, sge, remote.mr)) == PostResult::OK);
  REQUIRE(rig.a.worker.post_send(dead, test::write_wr(2, sge, remote.mr)) == PostResult::OK);
  rig.run(Duration::seconds(10));
  CHECK(rig.a.completion().status == WcStatus::RETRY_EXC_ERR);
  CHECK(rig.a.completion().status == WcStatus::WR_FLUSH_ERR);
  CHECK(rig.a.worker.counters().local_ack_timeout_err == 4);  // the first try and three retries
  CHECK(rig.b.worker.worker_counters().unknown_qpn > 0);

  const Qpn qa = rig.a.rc_qp(), qb = rig.b.rc_qp();
  rig.a.connect(qa, rig.b, qb);
  rig.b.connect(qb, rig.a, qa);
  REQUIRE(rig.a.worker.post_send(qa, test::write_wr(3, sge, remote.mr)) == PostResult::OK);
  rig.run();
  CHECK(rig.a.completion().status == WcStatus::SUCCESS);
}

TEST_CASE("frames for others and for nobody are counted, not answered", "[engine][worker]") {
  Rig rig;
  const auto& counters = rig.b.worker.worker_counters();
  const MacAddress stranger{{2, 9, 9, 9, 9, 9}};
  const IpAddress ip = rig.b.address.address;
  const auto sent_before = rig.wire.second().counters().opackets;

  inject(rig, send_frame(rig, stranger, ip, Qpn{0x112233}));
  inject(rig, send_frame(rig, rig.b.mac, IpAddress::v4(198, 18, 0, 99), Qpn{0x112233}));
  rig.run();
  CHECK(counters.not_our_address == 2);

  inject(rig, send_frame(rig, rig.b.mac, ip, Qpn{0x112233}));
  rig.run();
  CHECK(counters.unknown_qpn == 1);

  auto broken = send_frame(rig, rig.b.mac, ip, Qpn{0x112233});
  broken[60] ^= std::byte{1};
  inject(rig, broken);
  rig.run();
  CHECK(counters.verdicts[static_cast<std::size_t>(wire::Verdict::ICRC)] == 1);
  CHECK(rig.wire.second().counters().opackets == sent_before);
}

TEST_CASE("neighbours are asked once a second, learnt, answered and asked again when stale",
          "[engine][neighbours]") {
  Rig rig;
  const IpAddress peer = rig.b.address.address;
  CHECK_FALSE(rig.a.worker.resolve(rig.a.interface, peer, rig.now));
  CHECK_FALSE(rig.a.worker.resolve(rig.a.interface, peer, rig.now));
  rig.run();
  const auto mac = rig.a.worker.resolve(rig.a.interface, peer, rig.now);
  REQUIRE(mac);
  CHECK(*mac == rig.b.mac);
  CHECK(rig.a.worker.worker_counters().arp_tx == 1);
  CHECK(rig.b.worker.worker_counters().arp_rx == 1);

  rig.now = rig.now + Duration::seconds(61);
  CHECK(rig.a.worker.resolve(rig.a.interface, peer, rig.now));  // stale, still of use
  rig.run();
  CHECK(rig.a.worker.worker_counters().arp_tx == 2);

  const IpAddress nobody = IpAddress::v4(198, 18, 0, 77);
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(rig.a.worker.resolve(rig.a.interface, nobody, rig.now));
    rig.run();
    rig.now = rig.now + Duration::milliseconds(500);
  }
  CHECK(rig.a.worker.worker_counters().arp_tx == 5);  // three more in 2.0 s
}

TEST_CASE("a QP number is not used again soon", "[engine][worker]") {
  Rig rig{4};
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 40; ++i) {
    const Qpn qpn = rig.a.rc_qp();
    CHECK(qpn.value() > 1);
    CHECK(seen.insert(qpn.value()).second);
    rig.a.worker.destroy_qp(qpn);
  }
}

TEST_CASE("more QPs than the worker holds are refused with the reason", "[engine][worker]") {
  Rig rig{2};
  (void)rig.a.rc_qp();
  (void)rig.a.rc_qp();
  verbs::QpInitAttributes init;
  init.send_cq = init.recv_cq = &rig.a.cq;
  const auto refused = rig.a.worker.create_qp(init);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().reason.find("in use") != std::string::npos);
}
