#include "traffic/perftest/qp_set.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/check.hpp"
#include "traffic/perftest/pattern.hpp"

namespace roce::traffic::perftest {
namespace {

constexpr std::size_t kPage = 4096;
/// Headroom in the CQs for what is posted to flush a run.
constexpr std::size_t kSpareCqes = 16;

/// Enough for every message to have a place of its own, within kValidationBytes for all lanes, and
/// two at least.
std::uint64_t places_bytes(const Plan& plan, std::uint64_t place, std::uint64_t wanted) {
  const std::uint64_t most = kValidationBytes / std::max(plan.qps, 1U) / place;
  return place * std::clamp<std::uint64_t>(wanted, 2, std::max<std::uint64_t>(most, 2));
}

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

std::uint8_t access_of(Verb verb) {
  switch (verb) {
    case Verb::WRITE:
      return verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE;
    case Verb::READ:
      return verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_READ;
    case Verb::ATOMIC:
      return verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_ATOMIC;
    case Verb::SEND:
      break;
  }
  return verbs::ACCESS_LOCAL_WRITE;
}

}  // namespace

std::uint64_t local_bytes(const Plan& plan) {
  if (!plan.sends() && (plan.is_bw() || plan.verb() == Verb::READ || plan.verb() == Verb::ATOMIC))
    return kPage;
  if (plan.validates() && plan.verb() == Verb::READ)
    return whole_pages(places_bytes(plan, ring_step(plan.size), plan.tx_depth));
  return whole_pages(buffer_bytes(plan.size));
}

std::uint64_t exposed_bytes(const Plan& plan) {
  if (!plan.receives() &&
      (plan.is_bw() || plan.verb() == Verb::READ || plan.verb() == Verb::ATOMIC))
    return kPage;
  if (plan.verb() != Verb::SEND) return whole_pages(buffer_bytes(plan.size));
  const std::uint64_t grh = plan.transport == verbs::QpType::UD ? kGrhBytes : 0;
  if (plan.validates())
    return whole_pages(places_bytes(plan, ring_step(plan.size + grh), plan.rx_depth));
  return whole_pages(buffer_bytes(plan.size + grh));
}

void QpSet::Free::operator()(std::byte* memory) const {
  std::free(memory);
}

QpSet::QpSet(engine::Worker& worker, engine::InterfaceId interface, const Plan& plan,
             std::uint32_t most_lanes, std::uint64_t random)
    : worker_(worker),
      interface_(interface),
      plan_(plan),
      most_lanes_(most_lanes),
      prng_(random),
      pd_(worker.memory().alloc_pd()),
      send_cq_(&worker.create_cq(std::size_t{plan.tx_depth} * most_lanes + kSpareCqes)),
      recv_cq_(&worker.create_cq(std::size_t{plan.rx_depth} * most_lanes + kSpareCqes)) {}

QpSet::~QpSet() {
  for (const Lane& lane : lanes_) worker_.destroy_qp(lane.ours.qpn);
  worker_.destroy_cq(*send_cq_);
  worker_.destroy_cq(*recv_cq_);
  // The keys are ours, and an unknown key is the only way this can fail.
  for (const std::uint32_t key : keys_) (void)worker_.memory().dereg_mr(key);
}

Result<verbs::MemoryRegion> QpSet::make_region(std::uint64_t bytes, std::uint8_t access) {
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(kPage, bytes)));
  if (!memory)
    return failure("", fmt::format("there is no memory for a buffer of {} bytes", bytes),
                   "fewer QPs (-q) or a smaller size (-s)");
  std::memset(memory.get(), 0, bytes);
  auto region = worker_.memory().reg_mr(pd_, {memory.get(), bytes}, access);
  if (!region) return region;
  memory_.push_back(std::move(memory));
  keys_.push_back(region->lkey);
  return region;
}

Result<void> QpSet::add_lane() {
  const auto index = static_cast<std::uint32_t>(lanes_.size());
  if (index == most_lanes_)
    return failure("-q", fmt::format("there are {} QPs already", index), "fewer QPs");
  const auto local = make_region(local_bytes(plan_), verbs::ACCESS_LOCAL_WRITE);
  if (!local) return tl::make_unexpected(local.error());
  const auto exposed = make_region(exposed_bytes(plan_), access_of(plan_.verb()));
  if (!exposed) return tl::make_unexpected(exposed.error());
  verbs::QpInitAttributes init;
  init.type = plan_.transport;
  init.pd = pd_;
  init.send_cq = send_cq_;
  init.recv_cq = recv_cq_;
  init.cap.max_send_wr = plan_.tx_depth + 1;
  init.cap.max_recv_wr = plan_.verb() == Verb::SEND ? plan_.rx_depth : 1;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  init.cap.max_inline_data = plan_.inline_max;
  const auto qpn = worker_.create_qp(init);
  if (!qpn) return tl::make_unexpected(qpn.error());
  Lane lane;
  lane.local = {reinterpret_cast<std::byte*>(local->addr), local->length};
  lane.exposed = {reinterpret_cast<std::byte*>(exposed->addr), exposed->length};
  lane.local_key = local->lkey;
  lane.exposed_key = exposed->lkey;
  const bool reads = plan_.verb() == Verb::READ || plan_.verb() == Verb::ATOMIC;
  lane.ours = {*qpn,
               Psn{static_cast<std::uint32_t>(prng_())},
               exposed->rkey,
               exposed->addr,
               reads ? plan_.out_reads : std::uint8_t{1},
               worker_.interface(interface_).addresses.front().address};
  fill(lane, index);
  lanes_.push_back(lane);
  return to_init(*qpn);
}

Result<void> QpSet::to_init(Qpn qpn) {
  verbs::QpAttributes attributes;
  attributes.qp_state = verbs::QpState::INIT;
  if (plan_.transport == verbs::QpType::UD)
    attributes.qkey = kUdQkey;
  else
    attributes.qp_access_flags =
        static_cast<std::uint8_t>(access_of(plan_.verb()) & ~verbs::ACCESS_LOCAL_WRITE);
  return worker_.modify_qp(qpn, attributes);
}

void QpSet::fill(Lane& lane, std::uint32_t index) const {
  if (!plan_.validates()) return;
  if (plan_.verb() == Verb::WRITE || plan_.verb() == Verb::SEND)
    fill_pattern(lane.local, plan_.pattern_seed, index);
  if (plan_.verb() == Verb::READ) fill_pattern(lane.exposed, plan_.pattern_seed, index);
}

wire::PathAttributes QpSet::path_to(const Lane& lane, const MacAddress& mac) const {
  const engine::InterfaceConfig& interface = worker_.interface(interface_);
  wire::PathAttributes path;
  path.source_mac = interface.mac;
  path.destination_mac = mac;
  path.vlan_tci = interface.vlan_tci;
  path.source = lane.ours.gid;
  path.destination = lane.theirs.gid;
  path.traffic_class = plan_.traffic_class;
  path.hop_limit = plan_.hop_limit;
  path.udp_source_port = wire::udp_source_port(0, lane.ours.qpn, lane.theirs.qpn);
  return path;
}

Result<void> QpSet::connect(std::span<const QpAddress> peers, const MacAddress& mac,
                            verbs::Mtu mtu) {
  ROCE_CHECK(peers.size() == lanes_.size());
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].theirs = peers[i];
    if (auto done = connect_lane(lanes_[i], mac, mtu); !done) return done;
  }
  return {};
}

Result<void> QpSet::connect_lane(Lane& lane, const MacAddress& mac, verbs::Mtu mtu) {
  const bool rc = plan_.transport == verbs::QpType::RC;
  const bool ud = plan_.transport == verbs::QpType::UD;
  const wire::PathAttributes path = path_to(lane, mac);
  if (ud) lane.ah = wire::make_path_headers(path);
  verbs::QpAttributes rtr;
  rtr.qp_state = verbs::QpState::RTR;
  if (!ud) {
    rtr.path_mtu = mtu;
    rtr.path = path;
    rtr.dest_qp_num = lane.theirs.qpn;
    rtr.rq_psn = lane.theirs.psn;
  }
  if (rc) {
    rtr.max_dest_rd_atomic = lane.ours.out_reads;
    rtr.min_rnr_timer = plan_.min_rnr_timer;
  }
  verbs::QpAttributes rts;
  rts.qp_state = verbs::QpState::RTS;
  rts.sq_psn = lane.ours.psn;
  if (rc) {
    rts.timeout = plan_.qp_timeout;
    rts.retry_cnt = plan_.retry_cnt;
    rts.rnr_retry = plan_.rnr_retry;
    rts.max_rd_atomic = std::min(lane.theirs.out_reads, plan_.out_reads);
  }
  return worker_.modify_qp(lane.ours.qpn, rtr).and_then([&] {
    return worker_.modify_qp(lane.ours.qpn, rts);
  });
}

}  // namespace roce::traffic::perftest
