#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "traffic/perftest/data_plane.hpp"
#include "traffic/perftest/wr_id.hpp"

namespace roce::traffic::perftest {
namespace {

constexpr std::size_t kMostPollsPerStep = 8;
/// After the peer has ended, what is still on its way has that long to come.
constexpr Duration kLastArrivals = Duration::milliseconds(100);

}  // namespace

BwReceiver::BwReceiver(RunState& run)
    : run_(run),
      meter_(run.plan),
      flows_(run.plan.qps),
      grh_(run.plan.transport == verbs::QpType::UD ? kGrhBytes : 0),
      place_step_(ring_step(run.plan.size + grh_)),
      places_(run.plan.validates() ? run.qps.lanes().front().exposed.size() / place_step_
                                   : ring_slots(run.plan.size + grh_)) {}

Step BwReceiver::prepare() {
  std::uint64_t depth = run_.plan.rx_depth;
  if (run_.plan.validates()) depth = std::min(depth, places_);
  if (run_.plan.until == Until::ITERATIONS) depth = std::min(depth, run_.plan.iterations);
  for (std::uint32_t lane = 0; lane < flows_.size(); ++lane)
    for (std::uint64_t i = 0; i < depth; ++i)
      if (post(lane) == Step::FAILED) return Step::FAILED;
  return Step::RUNNING;
}

Step BwReceiver::post(std::uint32_t lane_index) {
  const Lane& lane = run_.qps.lanes()[lane_index];
  Flow& flow = flows_[lane_index];
  const std::uint64_t offset = flow.posted % places_ * place_step_;
  const std::array<verbs::Sge, 1> sge{
      {{reinterpret_cast<std::uint64_t>(lane.exposed.data()) + offset,
        static_cast<std::uint32_t>(run_.plan.size + grh_), lane.exposed_key}}};
  const transport::PostResult result =
      run_.qps.worker().post_recv(lane.ours.qpn, {make_wr_id(lane_index, flow.posted), sge});
  if (result != transport::PostResult::OK) return run_.fail(result, lane_index);
  ++flow.posted;
  return Step::RUNNING;
}

Step BwReceiver::step(Instant now) {
  std::array<verbs::Wc, 32> wcs;
  for (std::size_t round = 0; round < kMostPollsPerStep; ++round) {
    const std::size_t n = run_.qps.recv_cq().poll(wcs);
    for (const verbs::Wc& wc : std::span(wcs).first(n))
      if (take(now, wc) == Step::FAILED) return Step::FAILED;
    if (n < wcs.size()) break;
  }
  return verdict(now);
}

Step BwReceiver::take(Instant now, const verbs::Wc& wc) {
  const std::uint32_t lane_index = lane_of(wc.wr_id);
  if (wc.status != verbs::WcStatus::SUCCESS) return run_.fail(wc, lane_index);
  Flow& flow = flows_[lane_index];
  meter_.completed(now, 1, wc.byte_len < grh_ ? 0 : wc.byte_len - grh_, run_.clock.phase(now));
  last_arrival_ = now;
  ++received_;
  ++flow.received;
  if (run_.plan.validates()) {
    const std::uint64_t offset = message_of(wc.wr_id) % places_ * place_step_;
    const std::span<std::byte> place =
        run_.qps.lanes()[lane_index].exposed.subspan(offset, run_.plan.size + grh_);
    run_.check_received(lane_index, flow.received - 1, place, wc.byte_len);
    std::fill(place.begin(), place.end(), std::byte{0});
  }
  if (run_.plan.until == Until::ITERATIONS && flow.posted >= run_.plan.iterations)
    return Step::RUNNING;
  return post(lane_index);
}

Step BwReceiver::verdict(Instant now) {
  const Plan& plan = run_.plan;
  const std::uint64_t expected = plan.iterations * plan.qps;
  if (plan.until == Until::ITERATIONS && received_ == expected) return Step::DONE;
  if (plan.until == Until::DURATION && run_.clock.started() &&
      run_.clock.phase(now) == RunClock::Phase::OVER)
    return Step::DONE;
  if (!run_.peer_ended) return Step::RUNNING;
  if (!last_arrival_) last_arrival_ = now;
  if (now < *last_arrival_ + kLastArrivals) return Step::RUNNING;
  if (plan.until != Until::ITERATIONS) return Step::DONE;
  if (plan.transport == verbs::QpType::RC) {
    run_.failure =
        Error{"", fmt::format("the peer ended after {} of {} messages", received_, expected),
              "give both ends the same -n and -q"};
    return Step::FAILED;
  }
  run_.verdict.lost += expected - received_;
  return Step::DONE;
}

}  // namespace roce::traffic::perftest
