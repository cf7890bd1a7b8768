#include "engine/pacer.hpp"

#include <algorithm>
#include <cmath>

namespace roce::engine {
namespace {

/// Less than half a bit is rounding, not debt.
constexpr double kNothing = 1.0 / 16;
/// Further ahead than this nothing has to be waited for exactly.
constexpr double kFarNs = 1e18;

}  // namespace

Pacer::Pacer(std::uint32_t slots, Duration burst) : flows_(slots), wheel_(slots), burst_(burst) {}

void Pacer::set(std::uint32_t slot, const congestion::RpConfig& config, Rate line) {
  if (flows_[slot] == nullptr) flows_[slot] = std::make_unique<Flow>();
  flows_[slot]->rp = congestion::ReactionPoint{config, line};
  flows_[slot]->heeds_marks = std::holds_alternative<congestion::DcqcnConfig>(config);
}

void Pacer::remove(std::uint32_t slot) {
  wheel_.remove(slot);
  flows_[slot].reset();
}

/// Pays off debt up to now, at each rate for as long as it was in force.
void Pacer::settle(Instant now, Flow& flow) const {
  while (flow.settled < now) {
    const Rate rate = flow.rp.rate(flow.settled);
    const Instant until = std::min(now, flow.rp.next_change());
    flow.debt -= rate.bytes_in(until - flow.settled);
    flow.settled = until;
    const double least = flow.sending ? -rate.bytes_in(burst_) : 0;
    if (flow.debt <= least) {
      // Nor will a later rate change that: the reaction point catches up by itself.
      flow.debt = least;
      flow.settled = now;
    }
  }
}

bool Pacer::may_send(Instant now, std::uint32_t slot) {
  Flow& flow = *flows_[slot];
  settle(now, flow);
  flow.sending = true;
  return flow.debt < kNothing;
}

void Pacer::charge(Instant now, std::uint32_t slot, std::uint32_t bytes) {
  Flow& flow = *flows_[slot];
  flow.debt += bytes;
  flow.rp.on_sent(now, bytes);
}

void Pacer::hold(Instant now, std::uint32_t slot) {
  Flow& flow = *flows_[slot];
  const double wait_ns = std::min(std::ceil(flow.rp.rate(now).ns_for(flow.debt)), kFarNs);
  const Instant free = now + Duration::nanoseconds(static_cast<std::int64_t>(wait_ns));
  wheel_.set(slot, std::min(free, flow.rp.next_change()), now);
}

bool Pacer::on_cnp(Instant now, std::uint32_t slot) {
  Flow& flow = *flows_[slot];
  settle(now, flow);
  const bool heeded = flow.rp.on_cnp(now);
  if (heeded && holds(slot)) hold(now, slot);
  return heeded;
}

bool Pacer::take_due(Instant now, std::uint32_t& slot) {
  while (wheel_.take_due(now, slot)) {
    if (may_send(now, slot)) return true;
    hold(now, slot);  // only its rate has changed
  }
  return false;
}

congestion::RpSnapshot Pacer::snapshot(Instant now, std::uint32_t slot) {
  settle(now, *flows_[slot]);
  return flows_[slot]->rp.snapshot(now);
}

}  // namespace roce::engine
