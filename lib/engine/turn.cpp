// One turn of a worker, in the order of docs/architecture.md.
#include <algorithm>

#include "engine/worker_core.hpp"

namespace roce::engine {

bool Worker::Core::turn(Instant now) {
  const bool received = receive(now);
  run_timers(now);
  const bool sent = transmit(now);
  collect_events();
  return received || sent;
}

bool Worker::Core::receive(Instant now) {
  std::array<Frame, kBurst> frames;
  const std::size_t n = port.rx_burst(now, frames);
  if (n == 0) return false;
  const std::span<const Frame> received{frames.data(), n};
  deliver(now, received);
  port.rx_release(received);
  return true;
}

void Worker::Core::deliver(Instant now, std::span<const Frame> frames) {
  std::array<wire::Packet, kBurst> packets;
  std::array<wire::Verdict, kBurst> verdicts;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const Frame& frame = frames[i];
    verdicts[i] = wire::parse({frame.data, frame.length}, wire::IcrcCheck::VERIFY, packets[i]);
    ++counters.verdicts[static_cast<std::size_t>(verdicts[i])];
    if (verdicts[i] == wire::Verdict::ROCE)
      __builtin_prefetch(qps.find(packets[i].dest_qpn()));
    else
      neighbours.on_frame(now, verdicts[i], {frame.data, frame.length});
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (verdicts[i] != wire::Verdict::ROCE) continue;
    if (!neighbours.is_ours(packets[i])) {
      ++counters.not_our_address;
      continue;
    }
    const Qpn qpn = packets[i].dest_qpn();
    transport::Qp* qp = qps.find(qpn);
    if (qp == nullptr) {
      ++counters.unknown_qpn;
      continue;
    }
    qp->on_packet(now, packets[i], effects);
    settle(qpn.value() & QpTable::kSlotMask, *qp);
  }
}

void Worker::Core::run_timers(Instant now) {
  std::uint32_t slot = 0;
  for (std::size_t i = 0; i < kTimersPerTurn && deadlines.take_due(now, slot); ++i) {
    transport::Qp* qp = qps.at(slot);
    if (qp == nullptr) continue;
    // The armed deadline may be one that has moved since; on_timeout() does nothing then.
    if (qp->next_deadline() <= now) qp->on_timeout(now, effects);
    settle(slot, *qp);
  }
}

/// Builds and sends bursts until nobody wants to send, the port refuses, or each ready QP has had
/// about one turn: receiving must not wait for a long queue.
bool Worker::Core::transmit(Instant now) {
  bool sent = false;
  std::size_t bursts = 1 + ready_.size() * config.tx_burst_per_qp / kBurst;
  bursts = std::min<std::size_t>(bursts, 4);
  for (; bursts > 0; --bursts) {
    if (built_ == 0 && ready_.empty() && !neighbours.wants_tx()) break;
    if (!reserve()) break;
    build(now);
    if (!flush(now)) break;
    sent = true;
  }
  return sent;
}

bool Worker::Core::reserve() {
  if (reserved_ < kBurst) reserved_ += port.tx_reserve(std::span{slots_}.subspan(reserved_));
  if (reserved_ > 0) return true;
  ++counters.tx_no_buffer;
  return false;
}

void Worker::Core::build(Instant now) {
  while (built_ < reserved_ && neighbours.wants_tx()) {
    Frame& frame = slots_[built_];
    frame.length = static_cast<std::uint32_t>(neighbours.build_next({frame.data, frame.capacity}));
    if (frame.length > 0) ++built_;
  }
  while (built_ < reserved_ && !ready_.empty()) {
    const std::uint32_t slot = ready_.front();
    ready_.pop();
    is_ready_[slot] = 0;
    if (qps.at(slot) != nullptr) build_from(slot, now);
  }
}

void Worker::Core::build_from(std::uint32_t slot, Instant now) {
  transport::Qp& qp = *qps.at(slot);
  for (std::size_t i = 0; i < config.tx_burst_per_qp && built_ < reserved_; ++i) {
    Frame& frame = slots_[built_];
    frame.length =
        static_cast<std::uint32_t>(qp.build_next(now, {frame.data, frame.capacity}, effects));
    if (frame.length == 0) break;
    ++built_;
  }
  settle(slot, qp);
}

/// Hands what is built to the port; true when it took all of it. What it refuses stays first in
/// line.
bool Worker::Core::flush(Instant now) {
  if (built_ == 0) return false;
  const std::size_t taken = port.tx_burst(now, {slots_.data(), built_});
  counters.tx_refused += built_ - taken;
  std::move(slots_.begin() + static_cast<std::ptrdiff_t>(taken),
            slots_.begin() + static_cast<std::ptrdiff_t>(reserved_), slots_.begin());
  built_ -= taken;
  reserved_ -= taken;
  return built_ == 0;
}

}  // namespace roce::engine
