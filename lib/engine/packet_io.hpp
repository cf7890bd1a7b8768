// PacketIo: what the worker asks of a port. Frames move in bursts; receive is in place, transmit
// writes into slots that the port lends. lib/port implements it for DPDK, memory wires and
// captures; decorators (capture, faults) implement it around another one.
//
// One virtual call per burst of up to 32 frames; see docs/design/0002-packet-io.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/address.hpp"
#include "base/time.hpp"

namespace roce::engine {

inline constexpr std::size_t kBurst = 32;

/// A frame in memory that belongs to the port and is lent to the caller.
struct Frame {
  std::byte* data = nullptr;   ///< Ethernet header
  std::uint32_t length = 0;    ///< bytes without FCS
  std::uint32_t capacity = 0;  ///< bytes that may be written from data on
  void* handle = nullptr;      ///< the port's own
};

struct PortInfo {
  std::string name;                 ///< as the user wrote it, e.g. "afpacket:eth0"
  MacAddress mac;                   ///< the interface's own address
  std::uint16_t mtu = 1500;         ///< most bytes of an IP packet
  bool kernel_has_address = false;  ///< the kernel answers ARP, ND and ICMP on it (afpacket, afxdp)
};

/// Free-running counts of a port, in frames and bytes without FCS (DPDK's ethdev names).
struct PortCounters {
  std::uint64_t ipackets = 0, ibytes = 0;
  std::uint64_t opackets = 0, obytes = 0;
  std::uint64_t imissed = 0;  ///< dropped on receive for want of buffers
  std::uint64_t ierrors = 0, oerrors = 0;
  std::uint64_t rx_nombuf = 0;
};

class PacketIo {
 public:
  virtual ~PacketIo() = default;

  /// Receives up to out.size() frames; they stay valid until rx_release().
  [[nodiscard]] virtual std::size_t rx_burst(Instant now, std::span<Frame> out) = 0;
  virtual void rx_release(std::span<const Frame> frames) = 0;

  /// Lends up to out.size() empty slots of at least wire::kMaxFrameBytes; fewer when the port is
  /// out of buffers.
  [[nodiscard]] virtual std::size_t tx_reserve(std::span<Frame> out) = 0;
  /// The same for a few frames that must not wait behind others, such as CNPs: a port that has a
  /// queue for each priority may lend here although it lends none there.
  [[nodiscard]] virtual std::size_t tx_reserve_urgent(std::span<Frame> out) {
    return tx_reserve(out);
  }
  /// Sends slots whose length the caller has set; takes a prefix and returns its size. What is
  /// refused stays with the caller, who tries again later or gives it back by tx_release().
  [[nodiscard]] virtual std::size_t tx_burst(Instant now, std::span<const Frame> frames) = 0;
  virtual void tx_release(std::span<const Frame> frames) = 0;

  [[nodiscard]] virtual const PortInfo& info() const = 0;
  [[nodiscard]] virtual PortCounters counters() const = 0;
};

}  // namespace roce::engine
