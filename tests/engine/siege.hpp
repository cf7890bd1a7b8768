// Siege: a worker on one end of a wire, and on the other a stranger without one, who sends whatever
// bytes he likes and reads each frame that comes back.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/rig.hpp"
#include "wire/build.hpp"
#include "wire/packet.hpp"

namespace roce::test {

using Bytes = std::vector<std::byte>;

/// A frame that came back, parsed.
struct Reply {
  Bytes bytes;
  wire::Verdict verdict{};
  wire::Packet packet;
};

/// Who sends and to whom; the defaults are the right ones.
struct Shot {
  wire::BthFields bth;
  std::size_t payload = 0;
  std::function<void(wire::FrameBuilder&)> fill;  ///< extension headers
};

/// Gives frames to a worker from the other end of its wire, turns it until it is quiet, and returns
/// what it sent. Nothing may allocate meanwhile. now moves on by 100 ns a turn.
std::vector<Bytes> exchange(engine::PacketIo& stranger, engine::Worker& worker, Instant& now,
                            std::span<const Bytes> frames);

class Siege {
 public:
  static constexpr std::uint32_t kFirstPsn = 100;
  static constexpr std::uint32_t kQkey = 0x1234;
  static inline const Qpn kStrangerQpn{0x000777};

  explicit Siege(std::uint32_t max_qps = 16);

  /// A QP in RTS whose peer is the stranger, expecting kFirstPsn. MTU 1024.
  Qpn victim(verbs::QpType type = verbs::QpType::RC);

  /// The path from the stranger to the host. Change a copy to send from elsewhere.
  [[nodiscard]] wire::PathAttributes path() const;
  [[nodiscard]] static Bytes make(const wire::PathAttributes& path, const Shot& shot);
  [[nodiscard]] Bytes make(const Shot& shot) const { return make(path(), shot); }

  /// As exchange(), with what came back parsed.
  std::vector<Reply> send(std::span<const Bytes> frames);
  std::vector<Reply> send(const Bytes& frame) { return send(std::span{&frame, 1}); }
  std::vector<Reply> send(const Shot& shot) { return send(make(shot)); }
  /// Turns the worker without sending.
  std::vector<Reply> listen() { return send(std::span<const Bytes>{}); }

  [[nodiscard]] const transport::Counters& counters() const { return host.worker.counters(); }
  [[nodiscard]] const engine::WorkerCounters& engine_counters() const {
    return host.worker.worker_counters();
  }
  [[nodiscard]] std::uint64_t verdicts(wire::Verdict verdict) const {
    return engine_counters().verdicts[static_cast<std::size_t>(verdict)];
  }

  port::MemoryWire wire;
  Host host;
  MacAddress mac;  ///< the stranger's
  IpAddress ip = IpAddress::v4(198, 18, 0, 66);
  Instant now = Instant::from_ns(1'000'000);
};

/// Sets the IPv4 checksum and the ICRC right, if the frame is long enough to have them.
void repair(Bytes& frame);

}  // namespace roce::test
