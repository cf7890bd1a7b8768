// Ports for the engine's benchmark: one that drops what it is given, one that acknowledges it.
// They lend the same few slots again and again, so their own cost is a handful of instructions.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "engine/packet_io.hpp"
#include "wire/build.hpp"
#include "wire/syndrome.hpp"

namespace roce::bench {

/// Takes every frame and forgets it; receives nothing.
class NullPort : public engine::PacketIo {
 public:
  NullPort() : memory_(kSlots * kStride) {
    info_.mtu = 4200;
    info_.mac = {{0x02, 0, 0, 0, 0, 0x01}};
    for (std::size_t i = 0; i < kSlots; ++i) free_.push_back(memory_.data() + i * kStride);
  }
  std::size_t rx_burst(Instant, std::span<engine::Frame>) override { return 0; }
  void rx_release(std::span<const engine::Frame>) override {}
  std::size_t tx_reserve(std::span<engine::Frame> out) override {
    std::size_t n = 0;
    for (; n < out.size() && !free_.empty(); ++n, free_.pop_back())
      out[n] = {free_.back(), 0, kStride, free_.back()};
    return n;
  }
  std::size_t tx_burst(Instant, std::span<const engine::Frame> frames) override {
    for (const engine::Frame& frame : frames) counters_.obytes += frame.length;
    counters_.opackets += frames.size();
    tx_release(frames);
    return frames.size();
  }
  void tx_release(std::span<const engine::Frame> frames) override {
    for (const engine::Frame& frame : frames) free_.push_back(frame.data);
  }
  [[nodiscard]] const engine::PortInfo& info() const override { return info_; }
  [[nodiscard]] engine::PortCounters counters() const override { return counters_; }

 private:
  static constexpr std::size_t kSlots = 64;
  static constexpr std::uint32_t kStride = 4352;

  std::vector<std::byte> memory_;
  std::vector<std::byte*> free_;
  engine::PortInfo info_;
  engine::PortCounters counters_;
};

/// Answers each request that asks for it with an ACK, as if from a QP of the sender's own number.
/// All messages must be of one packet over IPv4 without a VLAN tag.
class AcknowledgingPort final : public NullPort {
 public:
  AcknowledgingPort() : memory_(engine::kBurst * kAckStride) {
    wire::PathAttributes back;
    back.source_mac = back.destination_mac = info().mac;
    back.source = back.destination = IpAddress::v4(198, 18, 0, 1);
    path_ = wire::make_path_headers(back);
  }
  /// The numbers that frames will be addressed to.
  void answer_to(std::span<const Qpn> qpns) { due_.reserve(qpns.size() * 1024); }

  std::size_t tx_burst(Instant now, std::span<const engine::Frame> frames) override {
    constexpr std::size_t kBthAt = 14 + 20 + 8;
    for (const engine::Frame& frame : frames) {
      const auto* bth = wire::view_as<wire::Bth>(frame.data + kBthAt);
      const Qpn qpn = bth->dest_qpn();
      // One ACK speaks for all before it.
      if (!due_.empty() && due_.back().qpn == qpn)
        due_.back().psn = bth->psn();
      else
        due_.push_back({qpn, bth->psn()});
    }
    return NullPort::tx_burst(now, frames);
  }
  std::size_t rx_burst(Instant, std::span<engine::Frame> out) override {
    std::size_t n = 0;
    for (; n < out.size() && n < engine::kBurst && next_ < due_.size(); ++n, ++next_) {
      std::byte* slot = memory_.data() + n * kAckStride;
      wire::FrameBuilder ack{{slot, kAckStride},
                             path_,
                             {.opcode = wire::Opcode::RC_ACKNOWLEDGE,
                              .dest_qpn = due_[next_].qpn,
                              .psn = due_[next_].psn},
                             0};
      ack.aeth().syndrome = wire::ack_syndrome();
      ack.aeth().msn.set(due_[next_].psn.value() + 1);
      out[n] = {slot, static_cast<std::uint32_t>(ack.finish()), kAckStride, slot};
    }
    if (next_ == due_.size()) {
      due_.clear();
      next_ = 0;
    }
    return n;
  }

 private:
  static constexpr std::uint32_t kAckStride = 128;
  struct Due {
    Qpn qpn;
    Psn psn;
  };

  std::vector<std::byte> memory_;
  wire::PathHeaders path_;
  std::vector<Due> due_;
  std::size_t next_ = 0;
};

}  // namespace roce::bench
