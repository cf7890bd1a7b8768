// RoCE frames for the tests of ports: written into slots, told apart by PSN.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.hpp"
#include "engine/packet_io.hpp"
#include "wire/build.hpp"
#include "wire/packet.hpp"

namespace roce::test {

inline constexpr MacAddress kMacA{{0x02, 0, 0, 0, 0, 0x0a}};
inline constexpr MacAddress kMacB{{0x02, 0, 0, 0, 0, 0x0b}};

struct FrameSpec {
  std::uint32_t psn = 0;
  std::uint32_t qpn = 0x12;
  wire::Opcode opcode = wire::Opcode::RC_RDMA_WRITE_MIDDLE;
  std::size_t payload = 256;
  std::uint8_t traffic_class = 0;
};

inline void build_frame(engine::Frame& slot, const FrameSpec& spec) {
  wire::PathAttributes attributes;
  attributes.source_mac = kMacA;
  attributes.destination_mac = kMacB;
  attributes.source = IpAddress::v4(198, 18, 0, 1);
  attributes.destination = IpAddress::v4(198, 18, 0, 2);
  attributes.traffic_class = spec.traffic_class;
  const wire::PathHeaders path = wire::make_path_headers(attributes);
  wire::BthFields bth;
  bth.opcode = spec.opcode;
  bth.dest_qpn = Qpn{spec.qpn};
  bth.psn = Psn{spec.psn};
  const bool none = wire::info_of(spec.opcode).payload == wire::PayloadRule::NONE;
  wire::FrameBuilder builder({slot.data, slot.capacity}, path, bth, none ? 0 : spec.payload);
  for (std::size_t i = 0; i < builder.payload().size(); ++i)
    builder.payload()[i] = static_cast<std::byte>(spec.psn + i);
  slot.length = static_cast<std::uint32_t>(builder.finish());
}

/// Sends one frame each; all must be taken.
inline void send(engine::PacketIo& io, Instant now, std::span<const FrameSpec> specs) {
  for (const FrameSpec& spec : specs) {
    std::array<engine::Frame, 1> slot;
    ROCE_CHECK(io.tx_reserve(slot) == 1);
    build_frame(slot[0], spec);
    ROCE_CHECK(io.tx_burst(now, slot) == 1);
  }
}

inline std::vector<FrameSpec> psns(std::uint32_t first, std::uint32_t count) {
  std::vector<FrameSpec> specs;
  for (std::uint32_t i = 0; i < count; ++i) specs.push_back({.psn = first + i});
  return specs;
}

struct Arrival {
  std::uint32_t psn;
  bool icrc_good;
  friend bool operator==(const Arrival&, const Arrival&) = default;
};

/// Takes and releases all that has arrived.
inline std::vector<Arrival> receive(engine::PacketIo& io, Instant now) {
  std::vector<Arrival> arrivals;
  std::array<engine::Frame, engine::kBurst> frames;
  while (const std::size_t n = io.rx_burst(now, frames)) {
    for (std::size_t i = 0; i < n; ++i) {
      wire::Packet packet;
      const auto verdict =
          wire::parse({frames[i].data, frames[i].length}, wire::IcrcCheck::VERIFY, packet);
      ROCE_CHECK(verdict == wire::Verdict::ROCE || verdict == wire::Verdict::ICRC);
      arrivals.push_back({packet.psn().value(), verdict == wire::Verdict::ROCE});
    }
    io.rx_release(std::span(frames).first(n));
  }
  return arrivals;
}

inline std::vector<std::uint32_t> received_psns(engine::PacketIo& io, Instant now) {
  std::vector<std::uint32_t> out;
  for (const Arrival& arrival : receive(io, now)) out.push_back(arrival.psn);
  return out;
}

/// Slots an end can reserve at once; gives them all back.
inline std::size_t free_slots(engine::PacketIo& io) {
  std::vector<engine::Frame> all;
  std::array<engine::Frame, engine::kBurst> some;
  while (const std::size_t n = io.tx_reserve(some)) all.insert(all.end(), &some[0], &some[n]);
  io.tx_release(all);
  return all.size();
}

}  // namespace roce::test
