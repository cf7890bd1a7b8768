#include "fabric/endpoints.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "base/prng.hpp"

namespace roce::test {
namespace {

constexpr std::uint8_t kAllAccess = verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE |
                                    verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC;

}  // namespace

Endpoint::Endpoint(fabric::Network& network, fabric::HostId at, std::size_t buffer_bytes,
                   std::uint32_t max_qps, const congestion::NpConfig& np)
    : host(at),
      worker({.max_qps = max_qps,
              .max_mrs = 16,
              .max_neighbours = 16,
              .max_control_frames = 4,
              .seed = at + 1,
              .np = np,
              .line_rate = network.rate_of(network.host_nic(at))},
             network.host_port(at)),
      buffer(buffer_bytes),
      network_(network),
      pd_(worker.memory().alloc_pd()),
      cq_(worker.create_cq(256)) {
  static_cast<void>(worker.add_interface(fabric::Network::host_interface(at)));
  // A fixed address: where the buffer lies in this process must not show on the wire.
  mr_ = worker.memory().reg_mr(pd_, buffer, 0x1000'0000, kAllAccess).value();
  network.attach(at, worker, this);
}

Qpn Endpoint::make_qp(std::uint32_t depth) {
  verbs::QpInitAttributes init;
  init.pd = pd_;
  init.send_cq = init.recv_cq = &cq_;
  init.cap = {depth, 1, 1, 1, 0};
  const Qpn qpn = worker.create_qp(init).value();
  verbs::QpAttributes attributes;
  attributes.qp_state = verbs::QpState::INIT;
  attributes.qp_access_flags = kAllAccess & ~verbs::ACCESS_LOCAL_WRITE;
  ROCE_CHECK(worker.modify_qp(qpn, attributes).has_value());
  return qpn;
}

void Endpoint::connect(Qpn qpn, const Endpoint& peer, Qpn peer_qpn, const FlowOptions& options) {
  verbs::QpAttributes rtr;
  rtr.qp_state = verbs::QpState::RTR;
  rtr.path_mtu = options.mtu;
  rtr.dest_qp_num = peer_qpn;
  rtr.rq_psn = Psn{100};
  rtr.max_dest_rd_atomic = 1;
  rtr.min_rnr_timer = 12;
  wire::PathAttributes path;
  path.source_mac = fabric::Network::host_mac(host);
  path.destination_mac = fabric::Network::host_mac(peer.host);
  path.source = fabric::Network::host_address(host).address;
  path.destination = fabric::Network::host_address(peer.host).address;
  path.traffic_class = options.traffic_class;
  path.udp_source_port =
      options.source_port != 0 ? options.source_port : wire::udp_source_port(0, qpn, peer_qpn);
  rtr.path = path;
  ROCE_CHECK(worker.modify_qp(qpn, rtr).has_value());
  verbs::QpAttributes rts;
  rts.qp_state = verbs::QpState::RTS;
  rts.sq_psn = Psn{100};
  rts.max_rd_atomic = 1;
  rts.timeout = options.timeout;
  rts.retry_cnt = 7;
  rts.rnr_retry = 7;
  ROCE_CHECK(worker.modify_qp(qpn, rts).has_value());
}

void Endpoint::write_to(Endpoint& peer, const FlowOptions& options) {
  Flow flow;
  flow.qpn = make_qp(options.depth);
  flow.peer = peer.make_qp(1);
  flow.options = options;
  flow.rkey = peer.mr_.rkey;
  flow.remote = peer.mr_.addr + options.to;
  connect(flow.qpn, peer, flow.peer, options);
  peer.connect(flow.peer, *this, flow.qpn, options);
  if (options.cc) ROCE_CHECK(worker.set_congestion_control(flow.qpn, *options.cc).has_value());
  flows_.push_back(flow);
  network_.wake(host);
}

bool Endpoint::step(Instant now) {
  bool busy = false;
  std::array<verbs::Wc, 16> done;
  while (const std::size_t n = cq_.poll(done)) {
    busy = true;
    for (const verbs::Wc& wc : std::span(done).first(n)) {
      if (wc.status != verbs::WcStatus::SUCCESS) ++failures_;
      ++flows_[wc.wr_id].completed;
      finished_ = now;
    }
  }
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    Flow& flow = flows_[i];
    while (flow.posted < flow.options.count && flow.posted - flow.completed < flow.options.depth) {
      const verbs::Sge sge{mr_.addr + flow.options.from, flow.options.bytes, mr_.lkey};
      verbs::SendWr wr;
      wr.wr_id = i;
      wr.opcode = verbs::WrOpcode::RDMA_WRITE;
      wr.send_flags = verbs::SEND_SIGNALED;
      wr.sg_list = {&sge, 1};
      wr.remote_addr = flow.remote;
      wr.rkey = flow.rkey;
      if (worker.post_send(flow.qpn, wr) != transport::PostResult::OK) break;
      ++flow.posted;
      busy = true;
    }
  }
  return busy;
}

bool Endpoint::done() const {
  return std::ranges::all_of(flows_, [](const Flow& f) { return f.completed == f.options.count; });
}

std::uint64_t Endpoint::completed() const {
  std::uint64_t sum = 0;
  for (const Flow& flow : flows_) sum += flow.completed;
  return sum;
}

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
  Prng prng{seed};
  for (std::byte& b : bytes) b = static_cast<std::byte>(prng());
}

}  // namespace roce::test
