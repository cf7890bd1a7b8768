// A worker under fire: frames made up, mutated, cut, with keys guessed and known, most of them with
// a right ICRC, while one real QP is served all the time. ROCE_FUZZ_FRAMES sets how many frames
// (default 100,000), ROCE_FUZZ_SEED from which seed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <numeric>

#include "base/prng.hpp"
#include "engine/rig.hpp"
#include "engine/siege.hpp"
#include "support/no_allocation.hpp"
#include "wire/neighbour.hpp"

using namespace roce;
using test::Bytes;
using wire::Opcode;

namespace {

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

constexpr std::size_t kGuard = 4096;
constexpr std::size_t kTarget = 8192;
constexpr std::uint32_t kFirstPsn = 100;

/// What the attacker aims at and knows: QPs with a region between two guards, and the key of a
/// region that is not theirs.
struct Targets {
  explicit Targets(test::Host& host_) : host(host_), memory(kGuard + kTarget + kGuard) {
    pd = host.worker.memory().alloc_pd();
    std::fill(memory.begin(), memory.end(), std::byte{0x77});
    const auto middle = std::span{memory}.subspan(kGuard, kTarget);
    region = host.worker.memory()
                 .reg_mr(pd, middle,
                         verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE |
                             verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC)
                 .value();
    for (const auto type : {verbs::QpType::RC, verbs::QpType::RC, verbs::QpType::RC,
                            verbs::QpType::UC, verbs::QpType::UD})
      qps.push_back({type, {}});
  }

  struct Target {
    verbs::QpType type;
    Qpn qpn;
  };

  [[nodiscard]] bool guards_hold() const {
    const auto is_guard = [](std::byte byte) { return byte == std::byte{0x77}; };
    return std::all_of(memory.begin(), memory.begin() + kGuard, is_guard) &&
           std::all_of(memory.end() - kGuard, memory.end(), is_guard);
  }
  /// Makes the QPs that an attack has ended anew, and gives each receives.
  void revive(const test::Host& peer) {
    for (Target& target : qps) {
      const transport::Qp* qp = host.worker.find_qp(target.qpn);
      if (qp != nullptr && qp->state() == verbs::QpState::RTS) {
        give_receives(target.qpn);
        continue;
      }
      host.worker.destroy_qp(target.qpn);
      target.qpn = make(target.type, peer);
      // Some heed the CNPs that are thrown at them.
      if (&target != &qps[0])
        REQUIRE(host.worker.set_congestion_control(
            target.qpn, congestion::make_preset("nvidia", Rate::gbps(100)).value()));
      ++revived;
      give_receives(target.qpn);
    }
  }

  test::Host& host;
  std::vector<std::byte> memory;
  verbs::Pd pd;
  verbs::MemoryRegion region;
  verbs::CompletionQueue& cq = host.worker.create_cq(4096);
  std::vector<Target> qps;
  std::uint64_t revived = 0;

 private:
  void give_receives(Qpn qpn) {
    const verbs::Sge sge{region.addr, 2048, region.lkey};
    while (host.worker.post_recv(qpn, {.wr_id = 1, .sg_list = {&sge, 1}}) ==
           transport::PostResult::OK) {
    }
  }
  Qpn make(verbs::QpType type, const test::Host& peer) {
    verbs::QpInitAttributes init;
    init.type = type;
    init.pd = pd;
    init.send_cq = init.recv_cq = &cq;
    init.cap = {4, 4, 1, 1, 0};
    const Qpn qpn = host.worker.create_qp(init).value();
    const bool connected = type != verbs::QpType::UD;
    verbs::QpAttributes to;
    to.qp_state = verbs::QpState::INIT;
    if (connected)
      to.qp_access_flags =
          verbs::ACCESS_REMOTE_WRITE | verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC;
    else
      to.qkey = test::Siege::kQkey;
    if (type == verbs::QpType::UC) to.qp_access_flags = verbs::ACCESS_REMOTE_WRITE;
    REQUIRE(host.worker.modify_qp(qpn, to));
    to = {};
    to.qp_state = verbs::QpState::RTR;
    if (connected) {
      wire::PathAttributes path;
      path.source_mac = host.mac;
      path.destination_mac = peer.mac;
      path.source = host.address.address;
      path.destination = peer.address.address;
      to.path = path;
      to.path_mtu = verbs::Mtu::MTU_1024;
      to.dest_qp_num = test::Siege::kStrangerQpn;
      to.rq_psn = Psn{kFirstPsn};
    }
    if (type == verbs::QpType::RC) {
      to.max_dest_rd_atomic = 4;
      to.min_rnr_timer = 12;
    }
    REQUIRE(host.worker.modify_qp(qpn, to));
    to = {};
    to.qp_state = verbs::QpState::RTS;
    to.sq_psn = Psn{kFirstPsn};
    if (type == verbs::QpType::RC) {
      to.timeout = 14;
      to.retry_cnt = to.rnr_retry = 7;
      to.max_rd_atomic = 4;
    }
    REQUIRE(host.worker.modify_qp(qpn, to));
    return qpn;
  }
};

/// Draws frames from a's place towards b.
class Attacker {
 public:
  Attacker(std::uint64_t seed, const test::Rig& rig, const Targets& targets, std::uint32_t real_key,
           std::uint64_t real_va)
      : prng_(seed), rig_(rig), targets_(targets), real_key_(real_key), real_va_(real_va) {
    for (std::size_t i = 0; i < wire::kOpcodes.size(); ++i)
      if (wire::kOpcodes[i].known()) opcodes_.push_back(static_cast<Opcode>(i));
  }

  [[nodiscard]] Bytes draw() {
    Bytes frame = prng_.chance(0.02) ? noise() : prng_.chance(0.06) ? control() : packet();
    if (prng_.chance(0.5)) mutate(frame);
    if (prng_.chance(0.8)) test::repair(frame);
    return frame;
  }

 private:
  template <class T>
  [[nodiscard]] T one_of(std::initializer_list<T> list) {
    return list.begin()[prng_.below(static_cast<std::uint32_t>(list.size()))];
  }
  [[nodiscard]] std::uint32_t any() { return static_cast<std::uint32_t>(prng_()); }

  [[nodiscard]] Bytes noise() {
    Bytes frame(prng_.below(200));
    for (std::byte& byte : frame) byte = static_cast<std::byte>(prng_());
    return frame;
  }
  [[nodiscard]] Bytes control() {
    Bytes frame(wire::kMaxFrameBytes);
    const IpAddress us = rig_.b.address.address;
    const IpAddress them = IpAddress::v4(198, 18, static_cast<std::uint8_t>(prng_()),
                                         static_cast<std::uint8_t>(prng_()));
    const wire::NeighbourSelf self{rig_.a.mac, them, {}};
    const std::size_t length =
        prng_.chance(0.5)
            ? wire::build_solicitation(frame, self, us)
            : wire::build_advertisement(frame, self,
                                        {.sender = us, .sender_mac = rig_.b.mac, .target = them});
    frame.resize(length);
    return frame;
  }
  [[nodiscard]] Bytes packet() {
    const auto& target = targets_.qps[prng_.below(static_cast<std::uint32_t>(targets_.qps.size()))];
    test::Shot shot;
    shot.bth.opcode = opcodes_[prng_.below(static_cast<std::uint32_t>(opcodes_.size()))];
    if (prng_.chance(0.7)) shot.bth.opcode = favourite(target.type);
    shot.bth.dest_qpn =
        one_of<Qpn>({target.qpn, target.qpn, target.qpn, target.qpn, Qpn{any()}, Qpn{1}});
    shot.bth.psn = Psn{one_of<std::uint32_t>(
        {kFirstPsn, kFirstPsn, kFirstPsn + prng_.below(8), kFirstPsn - prng_.below(8), any()})};
    shot.bth.ack_request = prng_.chance(0.7);
    shot.bth.solicited = prng_.chance(0.1);
    shot.bth.becn = prng_.chance(0.05);
    if (prng_.chance(0.05)) shot.bth.pkey = static_cast<std::uint16_t>(prng_());
    const auto rule = wire::info_of(shot.bth.opcode).payload;
    if (rule == wire::PayloadRule::FULL_MTU)
      shot.payload = prng_.chance(0.9) ? 1024 : prng_.below(4096);
    else if (rule != wire::PayloadRule::NONE)
      shot.payload = prng_.chance(0.9) ? prng_.below(256) : prng_.below(4096);
    shot.fill = [&](wire::FrameBuilder& frame) { fill(frame, shot); };
    wire::PathAttributes path;
    path.source_mac = rig_.a.mac;
    path.destination_mac = rig_.b.mac;
    path.source = rig_.a.address.address;
    path.destination = rig_.b.address.address;
    path.traffic_class = static_cast<std::uint8_t>(prng_());
    return test::Siege::make(path, shot);
  }
  [[nodiscard]] Opcode favourite(verbs::QpType type) {
    if (type == verbs::QpType::UD) return Opcode::UD_SEND_ONLY;
    if (type == verbs::QpType::UC)
      return one_of({Opcode::UC_RDMA_WRITE_ONLY, Opcode::UC_RDMA_WRITE_FIRST,
                     Opcode::UC_RDMA_WRITE_LAST, Opcode::UC_SEND_ONLY});
    return one_of({Opcode::RC_RDMA_WRITE_ONLY, Opcode::RC_RDMA_WRITE_FIRST,
                   Opcode::RC_RDMA_READ_REQUEST, Opcode::RC_FETCH_ADD, Opcode::RC_COMPARE_SWAP,
                   Opcode::RC_SEND_ONLY, Opcode::RC_SEND_ONLY_WITH_INVALIDATE});
  }
  void fill(wire::FrameBuilder& frame, const test::Shot& shot) {
    const wire::OpcodeInfo& info = wire::info_of(shot.bth.opcode);
    const std::uint64_t start = targets_.region.addr;
    const std::uint64_t va = one_of<std::uint64_t>(
        {start, start, start + prng_.below(kTarget), start - 1, start + kTarget - prng_.below(16),
         ~std::uint64_t{0} - prng_.below(64), real_va_, prng_()});
    const std::uint32_t rkey =
        one_of<std::uint32_t>({targets_.region.rkey, targets_.region.rkey, targets_.region.rkey,
                               targets_.region.rkey ^ (1u << prng_.below(32)), real_key_, any()});
    if (info.has(wire::kReth)) {
      frame.reth().va.set(va);
      frame.reth().rkey.set(rkey);
      const auto payload = static_cast<std::uint32_t>(shot.payload);
      frame.reth().dma_length.set(
          one_of<std::uint32_t>({payload, payload, payload, 2 * payload, 0, prng_.below(kTarget),
                                 0x8000'0000u, 0xffff'ffffu, any()}));
    }
    if (info.has(wire::kAtomicEth)) {
      frame.atomic_eth().va.set(va & ~std::uint64_t{prng_.chance(0.8) ? 7u : 0u});
      frame.atomic_eth().rkey.set(rkey);
      frame.atomic_eth().swap_or_add.set(prng_());
      frame.atomic_eth().compare.set(prng_());
    }
    if (info.has(wire::kIeth)) frame.ieth().rkey.set(rkey);
    if (info.has(wire::kDeth))
      frame.deth().qkey.set(prng_.chance(0.8) ? test::Siege::kQkey : any());
    if (info.has(wire::kAeth)) {
      frame.aeth().syndrome = static_cast<std::uint8_t>(prng_());
      frame.aeth().msn.set(any());
    }
  }
  void mutate(Bytes& frame) {
    if (frame.empty()) return;
    const auto size = static_cast<std::uint32_t>(frame.size());
    // Headers are hit more often than payload.
    for (std::uint32_t n = 1 + prng_.below(3); n > 0; --n)
      frame[prng_.below(prng_.chance(0.8) ? std::min(size, 90u) : size)] =
          static_cast<std::byte>(prng_());
    if (prng_.chance(0.1)) shorten(frame);
    if (prng_.chance(0.1)) frame.resize(prng_.below(size));
    if (prng_.chance(0.05)) frame.resize(frame.size() + prng_.below(8));
  }

  /// Cuts an IPv4 frame and makes the lengths of IP and UDP agree with that.
  void shorten(Bytes& frame) {
    constexpr std::size_t kUdpAt = sizeof(wire::EthernetHeader) + sizeof(wire::Ipv4Header);
    if (frame.size() < kUdpAt + sizeof(wire::UdpHeader)) return;
    const auto udp_bytes =
        prng_.below(static_cast<std::uint32_t>(std::min<std::size_t>(frame.size() - kUdpAt, 80)));
    wire::view_as<wire::Ipv4Header>(frame.data() + sizeof(wire::EthernetHeader))
        ->total_length.set(static_cast<std::uint16_t>(sizeof(wire::Ipv4Header) + udp_bytes));
    wire::view_as<wire::UdpHeader>(frame.data() + kUdpAt)
        ->length.set(static_cast<std::uint16_t>(udp_bytes));
  }

  Prng prng_;
  const test::Rig& rig_;
  const Targets& targets_;
  std::uint32_t real_key_;
  std::uint64_t real_va_;
  std::vector<Opcode> opcodes_;
};

void put(test::Rig& rig, std::span<const Bytes> frames) {
  std::array<engine::Frame, engine::kBurst> slots;
  const std::size_t n = rig.wire.first().tx_reserve(std::span{slots}.first(frames.size()));
  REQUIRE(n == frames.size());
  for (std::size_t i = 0; i < n; ++i) {
    std::copy(frames[i].begin(), frames[i].end(), slots[i].data);
    slots[i].length = static_cast<std::uint32_t>(frames[i].size());
  }
  REQUIRE(rig.wire.first().tx_burst(rig.now, {slots.data(), n}) == n);
}

/// Each frame is in exactly one verdict; each RoCE packet went to a QP or into one counter.
void check_accounts(test::Rig& rig) {
  const engine::WorkerCounters& engine = rig.b.worker.worker_counters();
  const auto of = [&](wire::Verdict v) { return engine.verdicts[static_cast<std::size_t>(v)]; };
  const std::uint64_t all =
      std::accumulate(engine.verdicts.begin(), engine.verdicts.end(), std::uint64_t{0});
  REQUIRE(all == rig.wire.second().counters().ipackets);
  const std::uint64_t delivered = rig.b.worker.counters().rcvd_pkts + engine.unknown_qpn;
  const std::uint64_t control =
      of(wire::Verdict::ARP) + of(wire::Verdict::ICMP) + of(wire::Verdict::ICMPV6);
  const std::uint64_t roce = of(wire::Verdict::ROCE);
  REQUIRE(roce >= delivered);
  REQUIRE(roce <= delivered + engine.not_our_address);
  REQUIRE(engine.not_our_address <= roce - delivered + control);
}

}  // namespace

TEST_CASE("a worker under fire serves its real QP and loses count of nothing",
          "[engine][hostile][fuzz]") {
  const std::uint64_t frames = number_from_environment("ROCE_FUZZ_FRAMES", 100'000);
  const std::uint64_t seed = number_from_environment("ROCE_FUZZ_SEED", 1);
  INFO("ROCE_FUZZ_SEED=" << seed);
  test::Rig rig;
  const Qpn qa = rig.a.rc_qp(), qb = rig.b.rc_qp();
  rig.a.connect(qa, rig.b, qb);
  rig.b.connect(qb, rig.a, qa);
  for (const auto& [host, qpn] : {std::pair{&rig.a, qa}, std::pair{&rig.b, qb}}) {
    const auto paper = congestion::make_preset("paper", Rate::gbps(100)).value();
    REQUIRE(host->worker.set_congestion_control(qpn, paper));
  }
  auto& source = rig.a.buffer(10'000);
  auto& sink = rig.b.buffer(10'000);
  const verbs::Sge sge{source.mr.addr, 10'000, source.mr.lkey};
  Targets targets{rig.b};
  Attacker attacker{seed, rig, targets, sink.mr.rkey, sink.mr.addr};
  Prng prng{seed ^ 0xfeed};

  std::uint64_t sent = 0;
  for (std::uint64_t round = 0; sent < frames; ++round) {
    targets.revive(rig.a);
    std::vector<Bytes> burst;
    while (burst.size() < engine::kBurst) {
      Bytes frame = attacker.draw();
      wire::Packet packet;
      // Who can forge the real QP's own packets can end it; that is no test of the worker.
      if (wire::parse(frame, wire::IcrcCheck::SKIP, packet) == wire::Verdict::ROCE &&
          packet.dest_qpn() == qb)
        continue;
      burst.push_back(std::move(frame));
    }
    put(rig, burst);
    sent += burst.size();
    {
      const test::NoAllocation guard;
      rig.b.worker.turn(rig.now);
    }
    std::array<verbs::Wc, 256> wcs;
    while (targets.cq.poll(wcs) > 0) {
    }
    REQUIRE(rig.b.cq.size() == 0);
    if (round % 16 != 0) {
      rig.run();
      continue;
    }
    for (auto& byte : source.bytes) byte = static_cast<std::byte>(prng());
    REQUIRE(rig.a.worker.post_send(qa, test::write_wr(round, sge, sink.mr)) ==
            transport::PostResult::OK);
    rig.run(Duration::microseconds(100));  // it is paced
    REQUIRE(rig.a.completion().status == verbs::WcStatus::SUCCESS);
    REQUIRE(sink.bytes == source.bytes);
    REQUIRE(targets.guards_hold());
    check_accounts(rig);
  }
  CHECK(test::NoAllocation::violations() == 0);

  CHECK(rig.b.worker.counters().rp_cnp_handled > 0);
  CHECK(rig.b.worker.counters().np_cnp_sent > 0);

  // The fire was real: it got through to QPs of each kind and to each defence.
  const transport::Counters& transport = rig.b.worker.counters();
  CHECK(targets.revived > 100);
  for (const auto member :
       {&transport::Counters::resp_remote_access_errors, &transport::Counters::resp_invalid_request,
        &transport::Counters::rx_write_requests, &transport::Counters::rx_read_requests,
        &transport::Counters::rx_atomic_requests, &transport::Counters::rdma_recvs,
        &transport::Counters::duplicate_request, &transport::Counters::out_of_sequence,
        &transport::Counters::unexpected_response, &transport::Counters::drop_pkey,
        &transport::Counters::drop_qkey, &transport::Counters::drop_access,
        &transport::Counters::drop_opcode})
    CHECK(transport.*member > 0);
  const engine::WorkerCounters& engine = rig.b.worker.worker_counters();
  for (auto i = static_cast<std::size_t>(wire::kFirstReject); i < wire::kVerdicts; ++i) {
    INFO(wire::verdict_name(static_cast<wire::Verdict>(i)));
    CHECK(engine.verdicts[i] > 0);
  }
  CHECK(engine.unknown_qpn > 0);
  CHECK(engine.not_our_address > 0);
  CHECK(engine.arp_rx > 0);
}
