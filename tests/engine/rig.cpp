#include "engine/rig.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace roce::test {
namespace {

port::MemoryWireConfig wire_config() {
  port::MemoryWireConfig config;
  config.transfer = port::Transfer::IN_PLACE;
  return config;
}

constexpr std::uint8_t kAllAccess = verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE |
                                    verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC;

}  // namespace

Host::Host(const engine::WorkerConfig& config, engine::PacketIo& io, IpPrefix prefix)
    : worker(config, io),
      address(prefix),
      mac(io.info().mac),
      interface(worker.add_interface({mac, {prefix}, {}, {}, engine::NeighbourDuty::OURS})),
      pd(worker.memory().alloc_pd()),
      cq(worker.create_cq(65536)) {}

Host::Buffer& Host::buffer(std::size_t n) {
  auto& made = *buffers.emplace_back(std::make_unique<Buffer>());
  made.bytes.resize(n);
  made.mr = worker.memory().reg_mr(pd, made.bytes, kAllAccess).value();
  return made;
}

Qpn Host::rc_qp(std::uint32_t depth) {
  verbs::QpInitAttributes init;
  init.pd = pd;
  init.send_cq = init.recv_cq = &cq;
  init.cap = {depth, depth, 1, 1, 64};
  const Qpn qpn = worker.create_qp(init).value();
  verbs::QpAttributes attributes;
  attributes.qp_state = verbs::QpState::INIT;
  attributes.qp_access_flags = kAllAccess & ~verbs::ACCESS_LOCAL_WRITE;
  REQUIRE(worker.modify_qp(qpn, attributes));
  return qpn;
}

void Host::connect(Qpn qpn, const Host& peer, Qpn peer_qpn, std::uint8_t timeout,
                   std::uint8_t retry_cnt) {
  verbs::QpAttributes rtr;
  rtr.qp_state = verbs::QpState::RTR;
  rtr.path_mtu = verbs::Mtu::MTU_4096;
  rtr.dest_qp_num = peer_qpn;
  rtr.rq_psn = Psn{100};
  rtr.max_dest_rd_atomic = 16;
  rtr.min_rnr_timer = 12;
  wire::PathAttributes path;
  path.source_mac = mac;
  path.destination_mac = peer.mac;
  path.source = address.address;
  path.destination = peer.address.address;
  path.udp_source_port = wire::udp_source_port(0, qpn, peer_qpn);
  rtr.path = path;
  REQUIRE(worker.modify_qp(qpn, rtr));
  verbs::QpAttributes rts;
  rts.qp_state = verbs::QpState::RTS;
  rts.sq_psn = Psn{100};
  rts.max_rd_atomic = 16;
  rts.timeout = timeout;
  rts.retry_cnt = retry_cnt;
  rts.rnr_retry = 7;
  REQUIRE(worker.modify_qp(qpn, rts));
}

verbs::Wc Host::completion() {
  std::array<verbs::Wc, 1> wc;
  REQUIRE(cq.poll(wc) == 1);
  return wc[0];
}

Rig::Rig(std::uint32_t max_qps)
    : wire(wire_config()),
      a({.index = 0, .max_qps = max_qps, .seed = 1, .line_rate = Rate::gbps(100)}, wire.first(),
        {IpAddress::v4(198, 18, 0, 1), 24}),
      b({.index = 1, .max_qps = max_qps, .seed = 2, .line_rate = Rate::gbps(100)}, wire.second(),
        {IpAddress::v4(198, 18, 0, 2), 24}) {}

void Rig::run(Duration limit) {
  const Instant end = now + limit;
  int idle = 0;
  // A frame takes one turn of each side to be seen, so three idle rounds are quiet.
  while (true) {
    const bool busy_a = a.worker.turn(now);
    const bool busy_b = b.worker.turn(now);
    idle = busy_a || busy_b ? 0 : idle + 1;
    now = now + Duration::nanoseconds(100);
    if (idle < 3) continue;
    const Instant next = std::min(a.worker.next_deadline(), b.worker.next_deadline());
    if (next > end) return;
    now = std::max(now, next);
    idle = 0;
  }
}

verbs::SendWr write_wr(std::uint64_t wr_id, const verbs::Sge& sge, const verbs::MemoryRegion& to) {
  verbs::SendWr wr;
  wr.wr_id = wr_id;
  wr.opcode = verbs::WrOpcode::RDMA_WRITE;
  wr.send_flags = verbs::SEND_SIGNALED;
  wr.sg_list = {&sge, 1};
  wr.remote_addr = to.addr;
  wr.rkey = to.rkey;
  return wr;
}

}  // namespace roce::test
