// One turn of a worker, in the order of docs/architecture.md.
#include <algorithm>

#include "engine/worker_core.hpp"

namespace roce::engine {

bool Worker::Core::turn(Instant now) {
  const bool received = receive(now);
  run_timers(now);
  const bool sent = transmit(now);
  return received || sent;
}

bool Worker::Core::receive(Instant now) {
  std::array<Frame, kBurst> frames;
  const std::size_t n = port.rx_burst(now, frames);
  if (n == 0) return false;
  const std::size_t roce = parse(now, {frames.data(), n});
  step(now, {packets_.data(), roce});
  port.rx_release({frames.data(), n});
  return true;
}

/// Fills packets_ with what is RoCE, is whole and is for us; the rest is counted, or control.
std::size_t Worker::Core::parse(Instant now, std::span<const Frame> frames) {
  std::size_t n = 0;
  for (const Frame& frame : frames) {
    const std::span<const std::byte> bytes{frame.data, frame.length};
    wire::Packet& packet = packets_[n];
    const wire::Verdict verdict = wire::parse(bytes, wire::IcrcCheck::VERIFY, packet);
    ++counters.verdicts[static_cast<std::size_t>(verdict)];
    if (verdict != wire::Verdict::ROCE) {
      neighbours.on_frame(now, verdict, bytes);
      continue;
    }
    if (!interfaces.owns(packet)) {
      ++counters.not_our_address;
      continue;
    }
    const transport::Qp* qp = qps.find(packet.dest_qpn());
    if (qp == nullptr) {
      ++counters.unknown_qpn;
      continue;
    }
    qp->prefetch();
    ++n;
  }
  return n;
}

/// Packets of one QP in a row are settled once: what the QP wants is asked when it is through.
void Worker::Core::step(Instant now, std::span<const wire::Packet> packets) {
  for (std::size_t i = 0; i < packets.size();) {
    const Qpn qpn = packets[i].dest_qpn();
    transport::Qp& qp = *qps.find(qpn);
    do {
      if (!packets[i].signals_congestion() || !on_congestion(now, packets[i], qp)) [[likely]]
        qp.on_packet(now, packets[i], effects);
      if (!effects.events().empty()) collect_events();
      ++i;
    } while (i < packets.size() && packets[i].dest_qpn() == qpn);
    settle(qps.slot_of(qpn), qp);
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
  run_congestion_timers(now);
}

bool Worker::Core::wants_tx() const {
  return built_ != 0 || !ready.empty() || neighbours.wants_tx() || !cnps_.empty();
}

/// Builds and sends bursts until nobody wants to send, the port refuses, or each ready QP has had
/// about one turn: receiving must not wait for a long queue.
bool Worker::Core::transmit(Instant now) {
  bool sent = false;
  const std::size_t bursts =
      std::min(kBurstsPerTurn, 1 + ready.size() * config.tx_burst_per_qp / kBurst);
  for (std::size_t i = 0; i < bursts; ++i) {
    if (!wants_tx()) break;
    if (!reserve()) return send_urgent(now) || sent;
    if (!cnps_.empty()) build_cnps();
    if (i == 0) build_control(ready.empty() ? kBurst : kControlPerTurn);
    build_data(now);
    if (!flush(now)) break;
    sent = true;
  }
  return sent;
}

/// CNPs, when the port has no room for anything else. No slot is in hand then.
bool Worker::Core::send_urgent(Instant now) {
  if (cnps_.empty()) return false;
  const std::size_t wanted = std::min(cnps_.size(), kBurst);
  reserved_ = port.tx_reserve_urgent(std::span{slots_}.first(wanted));
  build_cnps();
  return flush(now);
}

bool Worker::Core::reserve() {
  if (reserved_ < kBurst) reserved_ += port.tx_reserve(std::span{slots_}.subspan(reserved_));
  if (reserved_ > 0) return true;
  ++counters.tx_no_buffer;
  return false;
}

void Worker::Core::build_control(std::size_t most) {
  for (; most > 0 && built_ < reserved_ && neighbours.wants_tx(); --most) {
    Frame& frame = slots_[built_];
    frame.length = static_cast<std::uint32_t>(neighbours.build_next({frame.data, frame.capacity}));
    if (frame.length > 0) ++built_;
  }
}

void Worker::Core::build_data(Instant now) {
  while (built_ < reserved_ && !ready.empty()) {
    const std::uint32_t slot = ready.next();
    ready.remove(slot);
    transport::Qp& qp = *qps.at(slot);
    const bool paced = pacer != nullptr && pacer->has(slot);
    const std::uint32_t bytes = paced ? build_paced_qp(now, slot, qp) : build_unpaced_qp(now, qp);
    ready.charge(slot, bytes);
    if (transport_counters.send_seq_nak != seq_naks_) [[unlikely]]
      on_seq_naks(qp);
    settle(slot, qp);
  }
}

/// A QP's turn. Returns the bytes of the frames it made.
std::uint32_t Worker::Core::build_unpaced_qp(Instant now, transport::Qp& qp) {
  std::uint32_t bytes = 0;
  for (std::size_t i = 0; i < config.tx_burst_per_qp && built_ < reserved_; ++i) {
    Frame& frame = slots_[built_];
    frame.length =
        static_cast<std::uint32_t>(qp.build_next(now, {frame.data, frame.capacity}, effects));
    if (frame.length == 0) break;
    bytes += frame.length;
    ++built_;
  }
  return bytes;
}

/// Hands what is built to the port; true when it took all of it. What it refuses stays first in
/// line, and is counted the first time.
bool Worker::Core::flush(Instant now) {
  if (built_ == 0) return false;
  const std::size_t taken = port.tx_burst(now, {slots_.data(), built_});
  const auto begin = slots_.begin();
  std::move(begin + static_cast<std::ptrdiff_t>(taken),
            begin + static_cast<std::ptrdiff_t>(reserved_), begin);
  built_ -= taken;
  reserved_ -= taken;
  refused_ -= std::min(refused_, taken);
  counters.tx_refused += built_ - refused_;
  refused_ = built_;
  return built_ == 0;
}

}  // namespace roce::engine
