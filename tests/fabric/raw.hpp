// Raw: frames put into a network by hand, and what came out where and when.
#pragma once

#include <cstdint>
#include <vector>

#include "base/address.hpp"
#include "fabric/network.hpp"

namespace roce::test {

struct RawFrame {
  std::uint32_t length = 1000;  ///< without FCS
  std::uint8_t traffic_class = 26 << 2 | 2;
  std::uint16_t source_port = 0xc000;
  std::uint32_t sequence = 0;  ///< comes first in the UDP payload
  std::uint8_t pcp = 0xff;     ///< below 8: tagged
};

/// A UDP frame between two hosts, with a right IPv4 checksum.
std::vector<std::byte> make_frame(fabric::HostId from, fabric::HostId to, const RawFrame& raw);
std::uint32_t sequence_of(std::span<const std::byte> frame);

/// Gives frames to a host's NIC now; returns how many it took.
std::size_t send(fabric::Network& network, fabric::HostId from,
                 const std::vector<std::vector<std::byte>>& frames);
/// Reads all that has come to a host.
std::vector<std::vector<std::byte>> receive(fabric::Network& network, fabric::HostId at);

/// Remembers what passed a port.
struct Passed {
  fabric::SimTime time;
  fabric::PortId port;
  fabric::TapDirection direction;
  std::vector<std::byte> frame;
};
class Recorder final : public fabric::Tap {
 public:
  void on_frame(fabric::SimTime time, fabric::PortId port, fabric::TapDirection direction,
                std::span<const std::byte> frame) override {
    passed.push_back({time, port, direction, {frame.begin(), frame.end()}});
  }
  std::vector<Passed> passed;
};

/// Mixes all that it sees into one number.
class Digest final : public fabric::Tap {
 public:
  void on_frame(fabric::SimTime time, fabric::PortId port, fabric::TapDirection direction,
                std::span<const std::byte> frame) override;
  std::uint64_t value = 0xcbf29ce484222325;
};

}  // namespace roce::test
