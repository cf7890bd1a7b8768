// HostNic: a host's network port as its worker sees it. Frames that it lends lie in the network's
// pool and go through the network in place. Owned by the network; called by one worker.
#pragma once

#include <cstdint>
#include <span>

#include "engine/packet_io.hpp"
#include "fabric/frame_pool.hpp"
#include "fabric/network.hpp"

namespace roce::fabric {

class HostNic final : public engine::PacketIo {
 public:
  /// Frames that wait for a host that does not read; more are dropped.
  static constexpr std::uint32_t kMostUnread = 4096;

  HostNic(Network::Core& core, HostId host, engine::PortInfo info);

  std::size_t rx_burst(Instant now, std::span<engine::Frame> out) override;
  void rx_release(std::span<const engine::Frame> frames) override;
  /// Lends no more than the transmit queues have room for, so that what the worker has built and
  /// cannot take back stays short.
  std::size_t tx_reserve(std::span<engine::Frame> out) override;
  /// As many as tx_queue_frames more: a pause of one priority must not hold CNPs of another.
  std::size_t tx_reserve_urgent(std::span<engine::Frame> out) override;
  std::size_t tx_burst(Instant now, std::span<const engine::Frame> frames) override;
  void tx_release(std::span<const engine::Frame> frames) override;
  const engine::PortInfo& info() const override { return info_; }
  engine::PortCounters counters() const override;

  /// From the network: a frame for the worker; false when too many wait.
  [[nodiscard]] bool push_rx(FrameIndex frame);
  /// From the network: a frame has begun to leave. Returns whether the worker waits for room and
  /// has it now.
  [[nodiscard]] bool frame_left();

 private:
  [[nodiscard]] std::size_t lend(std::span<engine::Frame> out, std::uint32_t most);

  Network::Core& core_;
  HostId host_;
  engine::PortInfo info_;
  FrameList rx_;
  std::uint32_t rx_count_ = 0;
  std::uint32_t queued_ = 0;  ///< in the transmit queues
  std::uint32_t lent_ = 0;
  bool waiting_ = false;  ///< found no room
  engine::PortCounters counters_{};
};

}  // namespace roce::fabric
