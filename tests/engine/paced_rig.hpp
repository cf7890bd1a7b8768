// PacedRig: two hosts on an instant wire in virtual time, with a look at each frame that leaves.
#pragma once

#include <functional>
#include <vector>

#include "engine/rig.hpp"
#include "wire/frames.hpp"
#include "wire/packet.hpp"

namespace roce::test {

/// A port around another that shows each RoCE frame before it leaves, and may mark or lose it.
class TapPort final : public engine::PacketIo {
 public:
  enum class Fate : std::uint8_t { PASS, MARK, LOSE };
  using Look = std::function<Fate(Instant, const wire::Packet&, std::uint32_t frame_bytes)>;

  explicit TapPort(engine::PacketIo& inner) : inner_(inner) {}

  std::size_t rx_burst(Instant now, std::span<engine::Frame> out) override {
    return inner_.rx_burst(now, out);
  }
  void rx_release(std::span<const engine::Frame> frames) override { inner_.rx_release(frames); }
  std::size_t tx_reserve(std::span<engine::Frame> out) override { return inner_.tx_reserve(out); }
  std::size_t tx_burst(Instant now, std::span<const engine::Frame> frames) override;
  void tx_release(std::span<const engine::Frame> frames) override { inner_.tx_release(frames); }
  [[nodiscard]] const engine::PortInfo& info() const override { return inner_.info(); }
  [[nodiscard]] engine::PortCounters counters() const override { return inner_.counters(); }

  Look look;
  std::size_t takes = engine::kBurst;  ///< frames per call

 private:
  engine::PacketIo& inner_;
};

/// 100 Gb/s, with a notification point as given on both sides.
[[nodiscard]] engine::WorkerConfig paced_config(std::uint8_t index, std::uint32_t max_qps = 64);

class PacedRig {
 public:
  PacedRig() : PacedRig(paced_config(0), paced_config(1)) {}
  PacedRig(const engine::WorkerConfig& config_a, const engine::WorkerConfig& config_b,
           IpPrefix address_a = {IpAddress::v4(198, 18, 0, 1), 24},
           IpPrefix address_b = {IpAddress::v4(198, 18, 0, 2), 24});

  /// A connected pair of QPs, a's first.
  std::pair<Qpn, Qpn> pair(std::uint32_t depth = 64);
  /// Posts a WRITE of n bytes on a QP of a.
  void write(Qpn qpn, std::uint32_t n);
  /// Turns both to the nanosecond of each deadline until `until`; refill is called after each turn
  /// that did something. Returns when all was done by then.
  void run(Instant until, const std::function<void()>& refill = {});
  /// Gives a frame to one side, as if the wire had brought it.
  void give(Host& host, const Bytes& frame);

  port::MemoryWire wire;
  TapPort tap_a, tap_b;
  Host a, b;
  Host::Buffer& source;
  Host::Buffer& sink;
  Instant now = Instant::from_ns(1'000'000);
};

}  // namespace roce::test
