#include "engine/pacer.hpp"

#include <algorithm>
#include <cmath>

namespace roce::engine {
namespace {

/// Less than half a bit is rounding, not debt.
constexpr double kNothing = 1.0 / 16;
/// Further ahead than this nothing has to be waited for exactly.
constexpr double kFarNs = 1e18;
/// Changes of the rate that are foreseen when a flow is held; after as many it is looked at again.
constexpr int kForeseen = 64;

Instant later(Instant from, double ns) {
  return from + Duration::nanoseconds(static_cast<std::int64_t>(std::min(std::ceil(ns), kFarNs)));
}

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
  const Flow& flow = *flows_[slot];
  wheel_.set(slot, release_of(now, flow), now);
}

/// When the flow's debt will be paid if no CNP comes. The rate's own changes are foreseen, so that
/// a slow flow is not woken at each of them: at 10 Mb/s there may be ten before its next packet.
Instant Pacer::release_of(Instant now, const Flow& flow) {
  congestion::ReactionPoint rp = flow.rp;
  double debt = flow.debt;
  Rate rate = rp.rate(now);
  Instant free = later(now, rate.ns_for(debt));
  if (free <= rp.next_change()) return free;
  rp.observe({});  // what is foreseen is not told
  for (int i = 0; i < kForeseen && free > rp.next_change(); ++i) {
    const Instant change = rp.next_change();
    debt -= rate.bytes_in(change - now);
    now = change;
    rate = rp.rate(now);
    free = later(now, rate.ns_for(debt));
  }
  return std::min(free, rp.next_change());
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
    hold(now, slot);  // not all was foreseen
  }
  return false;
}

congestion::RpSnapshot Pacer::snapshot(Instant now, std::uint32_t slot) {
  settle(now, *flows_[slot]);
  return flows_[slot]->rp.snapshot(now);
}

}  // namespace roce::engine
