#include <algorithm>
#include <array>

#include "traffic/perftest/data_plane.hpp"
#include "traffic/perftest/wr_id.hpp"

namespace roce::traffic::perftest {
namespace {

std::uint64_t address(std::span<std::byte> bytes) {
  return reinterpret_cast<std::uint64_t>(bytes.data());
}

}  // namespace

// --- WriteLat ---

WriteLat::WriteLat(RunState& run) : run_(run), meter_(run.plan) {
  // With -a the run before has left its last count within this run's message.
  if (run.plan.validates())
    fill_pattern(run.qps.lanes().front().local.first(run.plan.size), run.plan.pattern_seed, 0);
}

bool WriteLat::arrived() {
  const std::span<std::byte> message = run_.qps.lanes().front().exposed.first(run_.plan.size);
  if (message.back() != static_cast<std::byte>((received_ + 1) & 0xff)) return false;
  ++received_;
  if (run_.plan.validates()) {
    const auto body = message.first(message.size() - 1);
    run_.check_message(0, received_ - 1, body, 0);
    std::fill(body.begin(), body.end(), std::byte{0});
  }
  return true;
}

bool WriteLat::finished() const {
  return run_.plan.until == Until::ITERATIONS && received_ == run_.plan.iterations &&
         sent_ == run_.plan.iterations && completed_ == sent_;
}

Step WriteLat::step(Instant now) {
  const RunClock::Phase phase = run_.clock.phase(now);
  if (poll() == Step::FAILED) return Step::FAILED;
  if (const auto end = run_.ended(now, phase)) return *end;
  const bool server = run_.plan.role == Role::SERVER;
  const bool wants = run_.plan.until != Until::ITERATIONS || received_ < run_.plan.iterations;
  if (wants && received_ < sent_ + (server ? 0 : 1) && arrived()) run_.progress(now);
  const bool my_turn = server ? sent_ == received_ : sent_ < received_;
  const bool more = run_.plan.until != Until::ITERATIONS || sent_ < run_.plan.iterations;
  if (my_turn && more && completed_ == sent_ && post(now, phase) == Step::FAILED)
    return Step::FAILED;
  if (finished()) return Step::DONE;
  return run_.stalled(now) ? Step::FAILED : Step::RUNNING;
}

Step WriteLat::post(Instant now, RunClock::Phase phase) {
  const Lane& lane = run_.qps.lanes().front();
  const auto size = static_cast<std::uint32_t>(run_.plan.size);
  const std::array<verbs::Sge, 1> sge{{{address(lane.local), size, lane.local_key}}};
  ++sent_;
  lane.local[size - 1] = static_cast<std::byte>(sent_ & 0xff);
  verbs::SendWr wr;
  wr.wr_id = make_wr_id(0, sent_ - 1);
  wr.opcode = verbs::WrOpcode::RDMA_WRITE;
  wr.sg_list = sge;
  wr.send_flags = static_cast<std::uint8_t>(
      verbs::SEND_SIGNALED | (size <= run_.plan.inline_max ? verbs::SEND_INLINE : 0));
  wr.remote_addr = lane.theirs.vaddr;
  wr.rkey = lane.theirs.rkey;
  meter_.posted(now, phase);
  const transport::PostResult result = run_.qps.worker().post_send(lane.ours.qpn, wr);
  return result == transport::PostResult::OK ? Step::RUNNING : run_.fail(result, 0);
}

Step WriteLat::poll() {
  std::array<verbs::Wc, 4> wcs;
  const std::size_t n = run_.qps.send_cq().poll(wcs);
  for (const verbs::Wc& wc : std::span(wcs).first(n)) {
    if (wc.status != verbs::WcStatus::SUCCESS) return run_.fail(wc, 0);
    ++completed_;
  }
  return Step::RUNNING;
}

// --- SendLat ---

SendLat::SendLat(RunState& run)
    : run_(run),
      meter_(run.plan),
      grh_(run.plan.transport == verbs::QpType::UD ? kGrhBytes : 0),
      place_step_(ring_step(run.plan.size + grh_)),
      places_(std::max<std::uint64_t>(run.plan.validates()
                                          ? run.qps.lanes().front().exposed.size() / place_step_
                                          : ring_slots(run.plan.size + grh_),
                                      1)),
      reply_bytes_(run.plan.size) {}

Step SendLat::prepare() {
  std::uint64_t depth = run_.plan.rx_depth;
  if (run_.plan.validates()) depth = std::min(depth, places_);
  if (run_.plan.until == Until::ITERATIONS) depth = std::min(depth, run_.plan.iterations);
  for (std::uint64_t i = 0; i < depth; ++i)
    if (post_receive() == Step::FAILED) return Step::FAILED;
  return Step::RUNNING;
}

Step SendLat::post_receive() {
  const Lane& lane = run_.qps.lanes().front();
  const std::array<verbs::Sge, 1> sge{
      {{address(lane.exposed) + posted_ % places_ * place_step_,
        static_cast<std::uint32_t>(run_.plan.size + grh_), lane.exposed_key}}};
  const transport::PostResult result =
      run_.qps.worker().post_recv(lane.ours.qpn, {make_wr_id(0, posted_), sge});
  if (result != transport::PostResult::OK) return run_.fail(result, 0);
  ++posted_;
  return Step::RUNNING;
}

bool SendLat::my_turn() const {
  return run_.plan.role == Role::CLIENT ? sent_ == received_ : sent_ < received_;
}

Step SendLat::step(Instant now) {
  if (poll_sends() == Step::FAILED || receive(now) == Step::FAILED) return Step::FAILED;
  const bool waits_for_first = run_.plan.role == Role::SERVER && received_ == 0;
  const RunClock::Phase phase = waits_for_first ? RunClock::Phase::WARM_UP : run_.clock.phase(now);
  const bool by_count = run_.plan.until == Until::ITERATIONS;
  const auto finished = [&] {
    return by_count && received_ == run_.plan.iterations && sent_ == run_.plan.iterations &&
           completed_ == sent_;
  };
  if (finished()) return Step::DONE;
  if (const auto end = run_.ended(now, phase)) return *end;
  const bool more = !by_count || sent_ < run_.plan.iterations;
  if (my_turn() && more && sent_ - completed_ < run_.plan.tx_depth &&
      post(now, phase) == Step::FAILED)
    return Step::FAILED;
  return run_.stalled(now) ? Step::FAILED : Step::RUNNING;
}

Step SendLat::receive(Instant now) {
  std::array<verbs::Wc, 4> wcs;
  const std::size_t n = run_.qps.recv_cq().poll(wcs);
  for (const verbs::Wc& wc : std::span(wcs).first(n)) {
    if (wc.status != verbs::WcStatus::SUCCESS) return run_.fail(wc, 0);
    ++received_;
    run_.progress(now);
    if (run_.plan.until == Until::PEER_ENDS) reply_bytes_ = wc.byte_len - grh_;
    if (run_.plan.validates()) {
      const std::span<std::byte> place = run_.qps.lanes().front().exposed.subspan(
          message_of(wc.wr_id) % places_ * place_step_, run_.plan.size + grh_);
      run_.check_received(0, received_ - 1, place, wc.byte_len);
      std::fill(place.begin(), place.end(), std::byte{0});
    }
    const bool enough = run_.plan.until == Until::ITERATIONS && posted_ >= run_.plan.iterations;
    if (!enough && post_receive() == Step::FAILED) return Step::FAILED;
  }
  return Step::RUNNING;
}

Step SendLat::post(Instant now, RunClock::Phase phase) {
  const Lane& lane = run_.qps.lanes().front();
  const std::array<verbs::Sge, 1> sge{
      {{address(lane.local), static_cast<std::uint32_t>(reply_bytes_), lane.local_key}}};
  const std::uint64_t every = std::max<std::uint64_t>(run_.plan.tx_depth / 2, 1);
  ++sent_;
  const bool last = run_.plan.until == Until::ITERATIONS && sent_ == run_.plan.iterations;
  verbs::SendWr wr;
  wr.wr_id = make_wr_id(0, sent_ - 1);
  wr.opcode = verbs::WrOpcode::SEND;
  wr.sg_list = sge;
  wr.send_flags =
      static_cast<std::uint8_t>((last || sent_ % every == 0 ? verbs::SEND_SIGNALED : 0) |
                                (reply_bytes_ <= run_.plan.inline_max ? verbs::SEND_INLINE : 0));
  if (run_.plan.transport == verbs::QpType::UD) wr.ud = {&lane.ah, lane.theirs.qpn, kUdQkey};
  meter_.posted(now, phase);
  const transport::PostResult result = run_.qps.worker().post_send(lane.ours.qpn, wr);
  return result == transport::PostResult::OK ? Step::RUNNING : run_.fail(result, 0);
}

Step SendLat::poll_sends() {
  std::array<verbs::Wc, 4> wcs;
  const std::size_t n = run_.qps.send_cq().poll(wcs);
  for (const verbs::Wc& wc : std::span(wcs).first(n)) {
    if (wc.status != verbs::WcStatus::SUCCESS) return run_.fail(wc, 0);
    completed_ = message_of(wc.wr_id) + 1;
  }
  return Step::RUNNING;
}

// --- ReadLat ---

ReadLat::ReadLat(RunState& run) : run_(run), meter_(run.plan) {}

Step ReadLat::step(Instant now) {
  const RunClock::Phase phase = run_.clock.phase(now);
  std::array<verbs::Wc, 1> wcs;
  if (run_.qps.send_cq().poll(wcs) == 1) {
    if (wcs[0].status != verbs::WcStatus::SUCCESS) return run_.fail(wcs[0], 0);
    meter_.completed(now, phase);
    check(completed_++);
  }
  if (completed_ != posted_) return Step::RUNNING;
  if (run_.plan.until == Until::ITERATIONS && posted_ == run_.plan.iterations) return Step::DONE;
  if (phase == RunClock::Phase::OVER) return Step::DONE;
  return post(now, phase);
}

Step ReadLat::post(Instant now, RunClock::Phase phase) {
  const Lane& lane = run_.qps.lanes().front();
  const std::array<verbs::Sge, 1> sge{
      {{address(lane.local), static_cast<std::uint32_t>(run_.plan.size), lane.local_key}}};
  verbs::SendWr wr;
  wr.wr_id = make_wr_id(0, posted_);
  wr.opcode = verbs::WrOpcode::RDMA_READ;
  if (run_.plan.verb() == Verb::ATOMIC)
    wr.opcode = run_.plan.atomic == AtomicType::FETCH_AND_ADD
                    ? verbs::WrOpcode::ATOMIC_FETCH_AND_ADD
                    : verbs::WrOpcode::ATOMIC_CMP_AND_SWP;
  wr.sg_list = sge;
  wr.send_flags = verbs::SEND_SIGNALED;
  wr.remote_addr = lane.theirs.vaddr;
  wr.rkey = lane.theirs.rkey;
  wr.compare_add = run_.plan.atomic == AtomicType::FETCH_AND_ADD ? 1 : posted_;
  wr.swap = posted_ + 1;
  meter_.posted(now, phase);
  ++posted_;
  const transport::PostResult result = run_.qps.worker().post_send(lane.ours.qpn, wr);
  return result == transport::PostResult::OK ? Step::RUNNING : run_.fail(result, 0);
}

void ReadLat::check(std::uint64_t message) {
  if (!run_.plan.validates()) return;
  const std::span<std::byte> place = run_.qps.lanes().front().local.first(run_.plan.size);
  if (run_.plan.verb() == Verb::ATOMIC) {
    run_.check_original(0, message, place);
    return;
  }
  run_.check_message(0, message, place, 0);
  std::fill(place.begin(), place.end(), std::byte{0});
}

}  // namespace roce::traffic::perftest
