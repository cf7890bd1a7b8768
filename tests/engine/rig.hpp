// Rig: two workers with an endpoint each, on the two ends of an in-process wire, in virtual time.
#pragma once

#include <array>
#include <vector>

#include "engine/worker.hpp"
#include "port/memory/memory_wire.hpp"

namespace roce::test {

struct Host {
  Host(const engine::WorkerConfig& config, engine::PacketIo& io, IpPrefix prefix);

  /// Registers n bytes for everything; the buffer lives as long as the host.
  struct Buffer {
    std::vector<std::byte> bytes;
    verbs::MemoryRegion mr;
  };
  Buffer& buffer(std::size_t n);
  /// An RC QP in INIT with all remote access.
  Qpn rc_qp(std::uint32_t depth = 64);
  /// Brings qpn to RTS towards peer_qpn at peer.
  void connect(Qpn qpn, const Host& peer, Qpn peer_qpn, std::uint8_t timeout = 14,
               std::uint8_t retry_cnt = 7);
  /// Polls one completion; fails the test when there is none.
  verbs::Wc completion();

  engine::Worker worker;
  IpPrefix address;
  MacAddress mac;
  engine::InterfaceId interface;
  verbs::Pd pd;
  verbs::CompletionQueue& cq;
  std::vector<std::unique_ptr<Buffer>> buffers;
};

class Rig {
 public:
  explicit Rig(std::uint32_t max_qps = 64);

  /// Turns both workers until neither has anything to do, jumping to the next timer when idle for
  /// at most `limit` of virtual time.
  void run(Duration limit = Duration::milliseconds(0));

  port::MemoryWire wire;
  Host a, b;
  Instant now = Instant::from_ns(1'000'000);
};

/// A WRITE of the whole source buffer to the start of the target.
verbs::SendWr write_wr(std::uint64_t wr_id, const verbs::Sge& sge, const verbs::MemoryRegion& to);

}  // namespace roce::test
