#include "fabric/host_nic.hpp"

#include <algorithm>

#include "fabric/network_core.hpp"

namespace roce::fabric {
namespace {

using engine::Frame;

FrameIndex index_of(const Frame& frame) {
  return static_cast<FrameIndex>(reinterpret_cast<std::uintptr_t>(frame.handle));
}

Frame frame_at(const FramePool& pool, FrameIndex index, std::uint32_t length) {
  // The handle is the index itself.
  return {pool.data(index), length, FramePool::kCapacity,
          reinterpret_cast<void*>(std::uintptr_t{index})};
}

/// A worker that found the pool empty tries again after this.
constexpr Duration kPoolRetry = Duration::microseconds(1);

}  // namespace

HostNic::HostNic(Network::Core& core, HostId host, engine::PortInfo info)
    : core_(core), host_(host), info_(std::move(info)) {}

std::size_t HostNic::rx_burst(Instant /*now*/, std::span<Frame> out) {
  std::size_t n = 0;
  for (; n < out.size() && !rx_.empty(); ++n) {
    const FrameIndex index = core_.pool.pop(rx_);
    out[n] = frame_at(core_.pool, index, core_.pool.meta(index).length);
    counters_.ibytes += out[n].length;
  }
  rx_count_ -= static_cast<std::uint32_t>(n);
  counters_.ipackets += n;
  return n;
}

void HostNic::rx_release(std::span<const Frame> frames) {
  for (const Frame& frame : frames) core_.pool.give_back(index_of(frame));
}

std::size_t HostNic::lend(std::span<Frame> out, std::uint32_t most) {
  const std::uint32_t taken = queued_ + lent_;
  const std::size_t room = taken < most ? most - taken : 0;
  std::size_t n = 0;
  for (; n < std::min(out.size(), room); ++n) {
    const FrameIndex index = core_.pool.take();
    if (index == kNone) {
      core_.host_timers.set(host_, core_.now.instant() + kPoolRetry);
      break;
    }
    out[n] = frame_at(core_.pool, index, 0);
  }
  lent_ += static_cast<std::uint32_t>(n);
  if (n == 0) waiting_ = true;
  return n;
}

std::size_t HostNic::tx_reserve(std::span<Frame> out) {
  return lend(out, core_.hosts[host_].config.tx_queue_frames);
}

std::size_t HostNic::tx_reserve_urgent(std::span<Frame> out) {
  return lend(out, 2 * core_.hosts[host_].config.tx_queue_frames);
}

std::size_t HostNic::tx_burst(Instant /*now*/, std::span<const Frame> frames) {
  const Host& host = core_.hosts[host_];
  Port& port = core_.ports[host.port];
  for (const Frame& frame : frames) {
    const FrameIndex index = index_of(frame);
    FrameMeta& meta = core_.pool.meta(index);
    classify({frame.data, frame.length}, meta);
    counters_.obytes += frame.length;
    core_.enqueue(port, index, priority_of(host.config.priorities, meta));
  }
  const auto n = static_cast<std::uint32_t>(frames.size());
  counters_.opackets += n;
  queued_ += n;
  lent_ -= n;
  core_.kick(host.port, port);
  return frames.size();
}

void HostNic::tx_release(std::span<const Frame> frames) {
  for (const Frame& frame : frames) core_.pool.give_back(index_of(frame));
  lent_ -= static_cast<std::uint32_t>(frames.size());
}

engine::PortCounters HostNic::counters() const {
  return counters_;
}

bool HostNic::push_rx(FrameIndex frame) {
  if (rx_count_ == kMostUnread) {
    ++counters_.imissed;
    return false;
  }
  ++rx_count_;
  core_.pool.push(rx_, frame);
  return true;
}

bool HostNic::frame_left() {
  --queued_;
  if (!waiting_ || queued_ + lent_ > core_.hosts[host_].config.tx_queue_frames / 2) return false;
  waiting_ = false;
  return true;
}

}  // namespace roce::fabric
