#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "traffic/perftest/data_plane.hpp"
#include "traffic/perftest/wr_id.hpp"

namespace roce::traffic::perftest {
namespace {

/// How long a run by duration waits for what is still under way.
constexpr Duration kDrain = Duration::milliseconds(200);
constexpr std::size_t kMostPollsPerStep = 8;

std::uint64_t places_of(const RunState& run) {
  const std::uint64_t local = run.qps.lanes().front().local.size();
  if (run.plan.verb() == Verb::ATOMIC) return local / sizeof(std::uint64_t);
  if (run.plan.verb() == Verb::READ && run.plan.validates())
    return local / ring_step(run.plan.size);
  return std::uint64_t{0xffff'ffff};
}

verbs::WrOpcode opcode_of(const Plan& plan) {
  switch (plan.verb()) {
    case Verb::WRITE:
      return verbs::WrOpcode::RDMA_WRITE;
    case Verb::READ:
      return verbs::WrOpcode::RDMA_READ;
    case Verb::SEND:
      return verbs::WrOpcode::SEND;
    case Verb::ATOMIC:
      break;
  }
  return plan.atomic == AtomicType::FETCH_AND_ADD ? verbs::WrOpcode::ATOMIC_FETCH_AND_ADD
                                                  : verbs::WrOpcode::ATOMIC_CMP_AND_SWP;
}

}  // namespace

BwSender::BwSender(RunState& run)
    : run_(run),
      meter_(run.plan),
      flows_(run.plan.qps),
      local_places_(places_of(run)),
      depth_(static_cast<std::uint32_t>(std::min<std::uint64_t>(run.plan.tx_depth, local_places_))),
      cq_mod_(std::min(run.plan.cq_mod, depth_)),
      open_flows_(run.plan.qps) {}

std::uint64_t BwSender::local_offset(std::uint64_t message) const {
  const Plan& plan = run_.plan;
  if (plan.verb() == Verb::ATOMIC) return message % local_places_ * sizeof(std::uint64_t);
  if (!plan.validates() || plan.verb() == Verb::WRITE) return ring_offset(message, plan.size);
  return plan.verb() == Verb::READ ? message % local_places_ * ring_step(plan.size) : 0;
}

std::uint64_t BwSender::remote_offset(std::uint64_t message) const {
  if (run_.plan.verb() == Verb::ATOMIC && run_.plan.validates()) return 0;
  return ring_offset(message, run_.plan.size);
}

bool BwSender::may_post(const Flow& flow) const {
  std::uint64_t wanted = std::min(run_.plan.post_list, depth_);
  if (run_.plan.until == Until::ITERATIONS)
    wanted = std::min<std::uint64_t>(wanted, run_.plan.iterations - flow.posted);
  return wanted != 0 && flow.posted - flow.completed + wanted <= depth_;
}

Step BwSender::step(Instant now) {
  const RunClock::Phase phase = run_.clock.phase(now);
  if (poll(now, phase) == Step::FAILED) return Step::FAILED;
  if (phase == RunClock::Phase::OVER) return drain(now);
  for (std::uint32_t lane = 0; lane < flows_.size(); ++lane)
    while (may_post(flows_[lane]))
      if (post(now, lane) == Step::FAILED) return Step::FAILED;
  return open_flows_ == 0 ? Step::DONE : Step::RUNNING;
}

Step BwSender::poll(Instant now, RunClock::Phase phase) {
  std::array<verbs::Wc, 32> wcs;
  for (std::size_t round = 0; round < kMostPollsPerStep; ++round) {
    const std::size_t n = run_.qps.send_cq().poll(wcs);
    for (const verbs::Wc& wc : std::span(wcs).first(n)) {
      const std::uint32_t lane = lane_of(wc.wr_id);
      if (wc.status != verbs::WcStatus::SUCCESS) return run_.fail(wc, lane);
      Flow& flow = flows_[lane];
      const std::uint64_t upto = message_of(wc.wr_id) + 1;
      if (run_.plan.validates())
        for (std::uint64_t m = flow.completed; m < upto; ++m) check(lane, m);
      meter_.completed(now, upto - flow.completed, phase);
      flow.completed = upto;
      if (run_.plan.until == Until::ITERATIONS && upto == run_.plan.iterations) --open_flows_;
    }
    if (n < wcs.size()) break;
  }
  return Step::RUNNING;
}

Step BwSender::post(Instant now, std::uint32_t lane) {
  Flow& flow = flows_[lane];
  std::uint64_t list = std::min(run_.plan.post_list, depth_);
  if (run_.plan.until == Until::ITERATIONS)
    list = std::min<std::uint64_t>(list, run_.plan.iterations - flow.posted);
  for (std::uint64_t i = 0; i < list; ++i) {
    const std::uint64_t message = flow.posted + i;
    const bool last = run_.plan.until == Until::ITERATIONS && message + 1 == run_.plan.iterations;
    if (post_one(lane, message, last) == Step::FAILED) return Step::FAILED;
  }
  flow.posted += list;
  meter_.posted(now, list);
  return Step::RUNNING;
}

Step BwSender::post_one(std::uint32_t lane_index, std::uint64_t message, bool last) {
  const Plan& plan = run_.plan;
  const Lane& lane = run_.qps.lanes()[lane_index];
  const auto size = static_cast<std::uint32_t>(plan.size);
  const std::array<verbs::Sge, 1> sge{
      {{reinterpret_cast<std::uint64_t>(lane.local.data()) + local_offset(message), size,
        lane.local_key}}};
  verbs::SendWr wr;
  wr.wr_id = make_wr_id(lane_index, message);
  wr.opcode = opcode_of(plan);
  wr.sg_list = sge;
  if (last || (message + 1) % cq_mod_ == 0) wr.send_flags = verbs::SEND_SIGNALED;
  const bool may_inline = plan.verb() == Verb::WRITE || plan.verb() == Verb::SEND;
  if (may_inline && plan.size <= plan.inline_max)
    wr.send_flags = static_cast<std::uint8_t>(wr.send_flags | verbs::SEND_INLINE);
  wr.rkey = lane.theirs.rkey;
  wr.remote_addr = lane.theirs.vaddr + remote_offset(message);
  // Operation n of either kind leaves n + 1 behind, see docs/data-validation.md.
  wr.compare_add = plan.atomic == AtomicType::FETCH_AND_ADD ? 1 : message;
  wr.swap = message + 1;
  if (plan.transport == verbs::QpType::UD) wr.ud = {&lane.ah, lane.theirs.qpn, kUdQkey};
  const transport::PostResult result = run_.qps.worker().post_send(lane.ours.qpn, wr);
  return result == transport::PostResult::OK ? Step::RUNNING : run_.fail(result, lane_index);
}

Step BwSender::drain(Instant now) {
  if (!drain_until_) drain_until_ = now + kDrain;
  bool empty = true;
  for (std::uint32_t lane = 0; lane < flows_.size(); ++lane) {
    Flow& flow = flows_[lane];
    // What was posted unsignalled completes with a signalled message behind it.
    if (!flow.flushed && flow.posted % cq_mod_ != 0 && flow.posted - flow.completed < depth_) {
      if (post_one(lane, flow.posted, true) == Step::FAILED) return Step::FAILED;
      ++flow.posted;
      flow.flushed = true;
    }
    empty = empty && flow.completed == flow.posted;
  }
  return empty || now >= *drain_until_ ? Step::DONE : Step::RUNNING;
}

void BwSender::check(std::uint32_t lane_index, std::uint64_t message) {
  const Plan& plan = run_.plan;
  const std::span<std::byte> place =
      run_.qps.lanes()[lane_index].local.subspan(local_offset(message), plan.size);
  if (plan.verb() == Verb::READ) {
    run_.check_message(lane_index, message, place, ring_offset(message, plan.size));
    std::fill(place.begin(), place.end(), std::byte{0});
  } else if (plan.verb() == Verb::ATOMIC) {
    run_.check_original(lane_index, message, place);
  }
}

}  // namespace roce::traffic::perftest
