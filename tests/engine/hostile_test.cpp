// What a stranger may not do: each case sends one wrong frame to a live QP and asserts the one
// answer or the one counter that it must cause, and that no byte of memory changed.
#include <catch2/catch.hpp>

#include "engine/siege.hpp"
#include "wire/syndrome.hpp"

using namespace roce;
using test::Shot;
using test::Siege;
using transport::Counters;
using verbs::QpState;
using verbs::QpType;
using wire::NakCode;
using wire::Opcode;
using wire::Verdict;

namespace {

constexpr std::size_t kRegion = 4096;

/// All counters of a siege as one list, so that "exactly this one moved" can be said.
struct Snapshot {
  Counters transport;
  engine::WorkerCounters engine;

  explicit Snapshot(const Siege& siege)
      : transport(siege.counters()), engine(siege.engine_counters()) {}
};

/// Names of the transport's drop, NAK and error counters that moved, packet counts left out.
std::vector<std::string> moved(const Counters& before, const Counters& after) {
  std::vector<std::string> names;
  for (const transport::CounterInfo& info : transport::counter_table()) {
    if (info.member == &Counters::sent_pkts || info.member == &Counters::rcvd_pkts) continue;
    const std::uint64_t delta = after.*info.member - before.*info.member;
    for (std::uint64_t i = 0; i < delta; ++i) names.emplace_back(info.name);
  }
  return names;
}

using Names = std::vector<std::string>;

/// Each frame that was rejected so far, by its verdict.
Names rejects(const Siege& siege) {
  Names names;
  for (auto i = static_cast<std::size_t>(wire::kFirstReject); i < wire::kVerdicts; ++i)
    for (std::uint64_t n = siege.engine_counters().verdicts[i]; n > 0; --n)
      names.emplace_back(wire::verdict_name(static_cast<Verdict>(i)));
  return names;
}

/// A siege with one victim and a region for it.
struct Victim : Siege {
  explicit Victim(QpType type = QpType::RC) : qpn(victim(type)), region(host.buffer(kRegion)) {}

  [[nodiscard]] wire::BthFields bth(Opcode opcode, std::uint32_t psn = kFirstPsn) const {
    return {.opcode = opcode, .dest_qpn = qpn, .psn = Psn{psn}, .ack_request = true};
  }
  /// A request with a RETH that names the start of the region, unless said otherwise.
  [[nodiscard]] Shot rdma(Opcode opcode, std::uint32_t length, std::size_t payload) const {
    return rdma(opcode, region.mr.addr, region.mr.rkey, length, payload);
  }
  [[nodiscard]] Shot rdma(Opcode opcode, std::uint64_t va, std::uint32_t rkey, std::uint32_t length,
                          std::size_t payload) const {
    return {bth(opcode), payload, [=](wire::FrameBuilder& frame) {
              frame.reth().va.set(va);
              frame.reth().rkey.set(rkey);
              frame.reth().dma_length.set(length);
            }};
  }
  [[nodiscard]] Shot atomic(std::uint64_t va, std::uint32_t rkey) const {
    return {bth(Opcode::RC_FETCH_ADD), 0, [=](wire::FrameBuilder& frame) {
              frame.atomic_eth().va.set(va);
              frame.atomic_eth().rkey.set(rkey);
              frame.atomic_eth().swap_or_add.set(1);
            }};
  }
  [[nodiscard]] bool untouched() const { return region.bytes == std::vector<std::byte>(kRegion); }
  [[nodiscard]] QpState state() const { return host.worker.find_qp(qpn)->state(); }

  /// Nothing came back, the QP lives, and of the transport only these counters moved.
  void expect_silence(const test::Bytes& frame, const Names& names) {
    const Snapshot before{*this};
    CHECK(send(frame).empty());
    CHECK(moved(before.transport, counters()) == names);
    CHECK(state() == QpState::RTS);
    CHECK(untouched());
  }
  void expect_silence(const Shot& shot, const Names& names) { expect_silence(make(shot), names); }

  /// One NAK of this code came back for the packet, and the QP ended.
  void expect_nak(const Shot& shot, NakCode code, const Names& names) {
    const Snapshot before{*this};
    const auto replies = send(shot);
    REQUIRE(replies.size() == 1);
    REQUIRE(replies[0].verdict == Verdict::ROCE);
    const wire::Packet& packet = replies[0].packet;
    CHECK(packet.opcode == Opcode::RC_ACKNOWLEDGE);
    CHECK(packet.aeth().syndrome == wire::nak_syndrome(code));
    CHECK(packet.psn() == shot.bth.psn);
    CHECK(packet.dest_qpn() == kStrangerQpn);
    CHECK(moved(before.transport, counters()) == names);
    CHECK(state() == QpState::ERR);
    CHECK(untouched());
  }

  Qpn qpn;
  test::Host::Buffer& region;
};

const Names kAccess = {"resp_remote_access_errors"};
const Names kInvalid = {"resp_invalid_request"};

}  // namespace

TEST_CASE("a request with a wrong key or range is refused with a remote access NAK",
          "[engine][hostile]") {
  Victim v;
  const std::uint64_t va = v.region.mr.addr;
  const std::uint32_t rkey = v.region.mr.rkey;
  constexpr Opcode kWrite = Opcode::RC_RDMA_WRITE_ONLY;
  SECTION("a guessed rkey") {
    v.expect_nak(v.rdma(kWrite, va, rkey ^ 1, 64, 64), NakCode::REMOTE_ACCESS_ERROR, kAccess);
  }
  SECTION("rkey 0") {
    v.expect_nak(v.rdma(kWrite, va, 0, 64, 64), NakCode::REMOTE_ACCESS_ERROR, kAccess);
  }
  SECTION("an rkey far outside the table") {
    v.expect_nak(v.rdma(kWrite, va, 0xffff'ffff, 64, 64), NakCode::REMOTE_ACCESS_ERROR, kAccess);
  }
  SECTION("a VA whose range wraps") {
    v.expect_nak(v.rdma(kWrite, ~std::uint64_t{0} - 15, rkey, 64, 64), NakCode::REMOTE_ACCESS_ERROR,
                 kAccess);
  }
  SECTION("one byte before the region") {
    v.expect_nak(v.rdma(kWrite, va - 1, rkey, 64, 64), NakCode::REMOTE_ACCESS_ERROR, kAccess);
  }
  SECTION("one byte past the region") {
    v.expect_nak(v.rdma(kWrite, va + kRegion - 63, rkey, 64, 64), NakCode::REMOTE_ACCESS_ERROR,
                 kAccess);
  }
  SECTION("a length past the region whose first packet lies inside") {
    v.expect_nak(v.rdma(Opcode::RC_RDMA_WRITE_FIRST, kRegion + 1, 1024),
                 NakCode::REMOTE_ACCESS_ERROR, kAccess);
  }
  SECTION("a region of another protection domain") {
    std::vector<std::byte> other(64);
    const auto pd = v.host.worker.memory().alloc_pd();
    const auto mr = v.host.worker.memory().reg_mr(
        pd, other, verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE);
    REQUIRE(mr);
    v.expect_nak(v.rdma(kWrite, mr->addr, mr->rkey, 64, 64), NakCode::REMOTE_ACCESS_ERROR, kAccess);
    CHECK(other == std::vector<std::byte>(64));
  }
  SECTION("a region that is no longer registered") {
    REQUIRE(v.host.worker.memory().dereg_mr(rkey));
    v.expect_nak(v.rdma(kWrite, va, rkey, 64, 64), NakCode::REMOTE_ACCESS_ERROR, kAccess);
  }
  SECTION("a region without REMOTE_WRITE") {
    std::vector<std::byte> local(64);
    const auto mr = v.host.worker.memory().reg_mr(v.host.pd, local, verbs::ACCESS_LOCAL_WRITE);
    REQUIRE(mr);
    v.expect_nak(v.rdma(kWrite, mr->addr, mr->rkey, 64, 64), NakCode::REMOTE_ACCESS_ERROR, kAccess);
  }
  SECTION("a READ past the region") {
    v.expect_nak(v.rdma(Opcode::RC_RDMA_READ_REQUEST, va, rkey, kRegion + 1, 0),
                 NakCode::REMOTE_ACCESS_ERROR, kAccess);
  }
  SECTION("an atomic past the region") {
    v.expect_nak(v.atomic((va + kRegion + 7) & ~std::uint64_t{7}, rkey),
                 NakCode::REMOTE_ACCESS_ERROR, kAccess);
  }
}

TEST_CASE("a request that breaks a rule of form is refused with an invalid request NAK",
          "[engine][hostile]") {
  Victim v;
  constexpr NakCode kCode = NakCode::INVALID_REQUEST;
  SECTION("less payload than the RETH announces in the only packet") {
    v.expect_nak(v.rdma(Opcode::RC_RDMA_WRITE_ONLY, 128, 64), kCode, kInvalid);
  }
  SECTION("more payload than the RETH announces") {
    v.expect_nak(v.rdma(Opcode::RC_RDMA_WRITE_ONLY, 32, 64), kCode, kInvalid);
  }
  SECTION("more payload than the path MTU") {
    v.expect_nak(v.rdma(Opcode::RC_RDMA_WRITE_ONLY, 1028, 1028), kCode, kInvalid);
  }
  SECTION("a first packet shorter than the path MTU") {
    v.expect_nak(v.rdma(Opcode::RC_RDMA_WRITE_FIRST, 2048, 512), kCode, kInvalid);
  }
  SECTION("a length above 2^31") {
    v.expect_nak(v.rdma(Opcode::RC_RDMA_READ_REQUEST, 0x8000'0001, 0), kCode, kInvalid);
  }
  SECTION("a middle packet without a first") {
    v.expect_nak({v.bth(Opcode::RC_RDMA_WRITE_MIDDLE), 1024, {}}, kCode, kInvalid);
  }
  SECTION("a last packet without a first") {
    v.expect_nak({v.bth(Opcode::RC_SEND_LAST), 64, {}}, kCode, kInvalid);
  }
  SECTION("an atomic at an odd address") {
    v.expect_nak(v.atomic(v.region.mr.addr + 4, v.region.mr.rkey), kCode, kInvalid);
  }
}

TEST_CASE("a frame that fails a check of the headers is counted and not answered",
          "[engine][hostile]") {
  Victim v;
  const Shot good = v.rdma(Opcode::RC_RDMA_WRITE_ONLY, 64, 64);
  test::Bytes frame = v.make(good);
  constexpr std::size_t kIp = 14, kUdp = kIp + 20, kBth = kUdp + 8;
  const auto verdict = [&](Verdict expected) {
    v.expect_silence(frame, {});
    CHECK(rejects(v) == Names{std::string{wire::verdict_name(expected)}});
    CHECK(v.counters().rcvd_pkts == 0);
  };
  SECTION("transport version 1") {
    frame[kBth + 1] |= std::byte{1};
    test::repair(frame);
    verdict(Verdict::TRANSPORT_VERSION);
  }
  SECTION("a reserved opcode") {
    frame[kBth] = std::byte{0x15};
    test::repair(frame);
    verdict(Verdict::UNKNOWN_OPCODE);
  }
  SECTION("a pad that eats more than the payload") {
    frame = v.make({v.bth(Opcode::RC_SEND_ONLY), 0, {}});
    frame[kBth + 1] |= std::byte{0x30};
    test::repair(frame);
    verdict(Verdict::PACKET_LENGTH);
  }
  SECTION("payload behind an ACK") {
    frame[kBth] = static_cast<std::byte>(Opcode::RC_ACKNOWLEDGE);
    test::repair(frame);
    verdict(Verdict::PAYLOAD_NOT_ALLOWED);
  }
  SECTION("an IP length beyond the frame") {
    frame[kIp + 2] = std::byte{0x40};
    test::repair(frame);
    verdict(Verdict::IP_LENGTH);
  }
  SECTION("a UDP length that disagrees") {
    frame[kUdp + 5] ^= std::byte{4};
    test::repair(frame);
    verdict(Verdict::UDP_LENGTH);
  }
  SECTION("a fragment") {
    frame[kIp + 6] |= std::byte{0x20};
    test::repair(frame);
    verdict(Verdict::IP_FRAGMENT);
  }
  SECTION("a wrong IPv4 checksum") {
    frame[kIp + 10] ^= std::byte{1};
    verdict(Verdict::IPV4_CHECKSUM);
  }
  SECTION("a wrong ICRC") {
    frame.back() ^= std::byte{1};
    verdict(Verdict::ICRC);
  }
  SECTION("a flipped bit of payload") {
    frame[frame.size() - 20] ^= std::byte{1};
    verdict(Verdict::ICRC);
  }
  SECTION("a frame cut short") {
    frame.resize(frame.size() - 1);
    verdict(Verdict::IP_LENGTH);
  }
}

TEST_CASE("a frame for somebody else or from somebody else is counted and not answered",
          "[engine][hostile]") {
  Victim v;
  Shot shot = v.rdma(Opcode::RC_RDMA_WRITE_ONLY, 64, 64);
  wire::PathAttributes path = v.path();
  SECTION("another MAC") {
    path.destination_mac.bytes[5] ^= 1;
    v.expect_silence(Siege::make(path, shot), {});
    CHECK(v.engine_counters().not_our_address == 1);
  }
  SECTION("the broadcast MAC") {
    path.destination_mac = MacAddress::broadcast();
    v.expect_silence(Siege::make(path, shot), {});
    CHECK(v.engine_counters().not_our_address == 1);
  }
  SECTION("another IP") {
    path.destination = IpAddress::v4(198, 18, 0, 3);
    v.expect_silence(Siege::make(path, shot), {});
    CHECK(v.engine_counters().not_our_address == 1);
  }
  SECTION("a VLAN that is not ours") {
    path.vlan_tci = 5;
    v.expect_silence(Siege::make(path, shot), {});
    CHECK(v.engine_counters().not_our_address == 1);
  }
  SECTION("a priority tag alone is no VLAN") {
    path.vlan_tci = std::uint16_t{3u << 13};
    CHECK(v.send(Siege::make(path, shot)).size() == 1);
    CHECK(v.counters().rx_write_requests == 1);
  }
  SECTION("an unknown QPN") {
    for (const std::uint32_t qpn : {0u, 1u, 2u, 0xff'ffffu, v.qpn.value() ^ 0x10'0000u}) {
      shot.bth.dest_qpn = Qpn{qpn};
      v.expect_silence(shot, {});
    }
    CHECK(v.engine_counters().unknown_qpn == 5);
  }
  SECTION("the number of a QP that is gone") {
    const Qpn gone = v.victim();
    v.host.worker.destroy_qp(gone);
    const Qpn next = v.victim();  // perhaps in the same slot
    shot.bth.dest_qpn = gone;
    v.expect_silence(shot, {});
    CHECK(v.engine_counters().unknown_qpn == 1);
    CHECK(v.host.worker.find_qp(next)->state() == QpState::RTS);
  }
  SECTION("another source IP than the peer's") {
    path.source = IpAddress::v4(198, 18, 0, 67);
    v.expect_silence(Siege::make(path, shot), {"drop_source"});
  }
  SECTION("a partition that is not ours") {
    shot.bth.pkey = 0x8001;
    v.expect_silence(shot, {"drop_pkey"});
  }
  SECTION("an opcode of another transport") {
    shot = {v.bth(Opcode::UC_SEND_ONLY), 16, {}};
    v.expect_silence(shot, {"drop_opcode"});
  }
  SECTION("an ACK for what was never sent") {
    v.expect_silence({v.bth(Opcode::RC_ACKNOWLEDGE, 5000), 0, {}}, {"unexpected_response"});
  }
}

TEST_CASE("a QP that was refused answers nothing more, and others go on", "[engine][hostile]") {
  Victim v;
  const Qpn other = v.victim();
  v.expect_nak(v.rdma(Opcode::RC_RDMA_WRITE_ONLY, v.region.mr.addr, 0, 64, 64),
               NakCode::REMOTE_ACCESS_ERROR, kAccess);
  const Snapshot before{v};
  CHECK(v.send(v.rdma(Opcode::RC_RDMA_WRITE_ONLY, 64, 64)).empty());
  CHECK(moved(before.transport, v.counters()) == Names{"drop_qp_state"});
  CHECK(v.untouched());

  Shot good = v.rdma(Opcode::RC_RDMA_WRITE_ONLY, 64, 64);
  good.bth.dest_qpn = other;
  const auto replies = v.send(good);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].packet.aeth().syndrome == wire::ack_syndrome());
  CHECK(v.region.bytes[63] == std::byte{0xee});
  CHECK(v.region.bytes[64] == std::byte{0});
}

TEST_CASE("a SEND without a receive waits, one too long for it ends the QP", "[engine][hostile]") {
  Victim v;
  const Shot send{v.bth(Opcode::RC_SEND_ONLY), 64, {}};
  const Snapshot before{v};
  const auto replies = v.send(send);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].packet.aeth().syndrome == wire::rnr_syndrome(12));
  CHECK(moved(before.transport, v.counters()) == Names{"out_of_buffer"});
  CHECK(v.state() == QpState::RTS);

  const verbs::Sge sge{v.region.mr.addr, 63, v.region.mr.lkey};
  REQUIRE(v.host.worker.post_recv(v.qpn, {.wr_id = 3, .sg_list = {&sge, 1}}) ==
          transport::PostResult::OK);
  v.expect_nak(send, NakCode::INVALID_REQUEST,
               {"resp_local_length_error", "resp_invalid_request", "resp_cqe_error"});
  CHECK(v.host.completion().status == verbs::WcStatus::LOC_LEN_ERR);
}

TEST_CASE("UC and UD drop what is wrong without an answer", "[engine][hostile]") {
  SECTION("UC: a guessed rkey") {
    Victim v{QpType::UC};
    v.expect_silence(v.rdma(Opcode::UC_RDMA_WRITE_ONLY, v.region.mr.addr, 1, 64, 64),
                     {"drop_access"});
  }
  SECTION("UD: a wrong Q_Key") {
    Victim v{QpType::UD};
    v.expect_silence({v.bth(Opcode::UD_SEND_ONLY), 64,
                      [](wire::FrameBuilder& frame) { frame.deth().qkey.set(0x4321); }},
                     {"drop_qkey"});
  }
  SECTION("UD: no receive") {
    Victim v{QpType::UD};
    v.expect_silence({v.bth(Opcode::UD_SEND_ONLY), 64,
                      [](wire::FrameBuilder& frame) { frame.deth().qkey.set(Siege::kQkey); }},
                     {"out_of_buffer"});
  }
}

TEST_CASE("a burst of fatal requests to many QPs loses no event", "[engine][hostile]") {
  constexpr std::size_t kQps = 100;
  Siege siege{kQps};
  std::vector<test::Bytes> frames;
  for (std::size_t i = 0; i < kQps; ++i)
    frames.push_back(siege.make({{.opcode = Opcode::RC_SEND_MIDDLE,
                                  .dest_qpn = siege.victim(),
                                  .psn = Psn{Siege::kFirstPsn}},
                                 1024,
                                 {}}));
  CHECK(siege.send(frames).size() == kQps);
  std::array<transport::AsyncEvent, 4 * kQps> events;
  std::size_t requests = 0;
  const std::size_t n = siege.host.worker.poll_async(events);
  for (std::size_t i = 0; i < n; ++i)
    if (events[i].type == verbs::AsyncEventType::QP_REQ_ERR) ++requests;
  CHECK(requests == kQps);
  CHECK(siege.engine_counters().async_events_dropped == 0);
}
