// FaultPort: a PacketIo around another one that loses, damages, doubles and displaces RoCE packets
// by rules (fault_rule.hpp).
//
// Called by one worker. Same seed, same rules and same frames give the same faults. It allocates
// nothing after construction, reads no clock, and gives back all it holds when it ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/packet_io.hpp"
#include "fabric/fault_matcher.hpp"
#include "port/fault_rule.hpp"
#include "wire/packet.hpp"

namespace roce::port {

using fabric::FaultCounts;

class FaultPort final : public engine::PacketIo {
 public:
  /// What one direction can hold back at once.
  static constexpr std::size_t kMaxHeld = 128;
  /// Streams that a rule with psn=+N or nth tells apart.
  static constexpr std::size_t kMaxStreams = fabric::FaultMatcher::kMaxStreams;
  /// How long REORDER waits for later frames.
  static constexpr Duration kReorderPatience = Duration::milliseconds(1);

  /// inner: outlives this.
  FaultPort(engine::PacketIo& inner, std::vector<FaultRule> rules, std::uint64_t seed = 1);
  ~FaultPort() override;
  FaultPort(const FaultPort&) = delete;
  FaultPort& operator=(const FaultPort&) = delete;

  std::size_t rx_burst(Instant now, std::span<engine::Frame> out) override;
  void rx_release(std::span<const engine::Frame> frames) override;
  std::size_t tx_reserve(std::span<engine::Frame> out) override { return inner_.tx_reserve(out); }
  std::size_t tx_reserve_urgent(std::span<engine::Frame> out) override {
    return inner_.tx_reserve_urgent(out);
  }
  /// Takes frames that it holds back or drops as if sent.
  std::size_t tx_burst(Instant now, std::span<const engine::Frame> frames) override;
  void tx_release(std::span<const engine::Frame> frames) override { inner_.tx_release(frames); }
  const engine::PortInfo& info() const override { return inner_.info(); }
  engine::PortCounters counters() const override { return inner_.counters(); }

  [[nodiscard]] std::size_t rule_count() const { return rules_.size(); }
  [[nodiscard]] const FaultRule& rule(std::size_t i) const { return rules_[i].rule(); }
  [[nodiscard]] FaultCounts counts(std::size_t i) const { return rules_[i].counts; }

 private:
  struct Held {
    engine::Frame frame;
    Instant due;
    std::uint32_t frames_left;  ///< REORDER: later frames still to pass; DELAY: 0
  };
  /// Frames of one direction: those on their way, in order, and those held back.
  struct Lane {
    std::vector<engine::Frame> ready;
    std::vector<Held> held;
    bool active = false;  ///< some rule looks at this direction
  };
  /// Our own buffers for frames that arrive twice.
  struct CopyPool {
    std::vector<std::byte> bytes;
    std::vector<std::uint32_t> free;
  };

  static constexpr std::size_t kReady = 512;
  static constexpr std::size_t kCopies = 64;

  fabric::FaultMatcher* pick(FaultDirection direction, const engine::Frame& frame,
                             wire::Packet& packet);
  void take(Instant now, Lane& lane, FaultDirection direction, const engine::Frame& frame);
  void pass(Lane& lane, const engine::Frame& frame);
  [[nodiscard]] bool copy(FaultDirection direction, const engine::Frame& frame,
                          engine::Frame& twin);
  void release_due(Instant now, Lane& lane);
  void flush(Instant now);
  [[nodiscard]] bool is_copy(const engine::Frame& frame) const;

  engine::PacketIo& inner_;
  std::vector<fabric::FaultMatcher> rules_;
  Lane tx_, rx_;
  CopyPool copies_;
};

}  // namespace roce::port
