// Neighbours: how a worker finds the hosts around it and lets itself be found. Learns from and
// answers ARP, neighbour discovery and ICMP echo. Owned by the worker. It sends nothing itself:
// frames that fall due wait until the worker has a slot for them.
//
// Bounded: what a flood asks beyond most_due waiting frames is not answered, and what it teaches
// displaces only what other strangers taught (NeighbourTable). Allocates only when made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/ring.hpp"
#include "base/time.hpp"
#include "engine/interfaces.hpp"
#include "engine/neighbour_table.hpp"
#include "engine/worker_counters.hpp"
#include "wire/build.hpp"
#include "wire/neighbour.hpp"
#include "wire/packet.hpp"

namespace roce::engine {

class Neighbours {
 public:
  /// capacity: most hosts to remember. most_due: most frames to wait. secret: see NeighbourTable.
  /// The rest outlives this.
  Neighbours(const Interfaces& interfaces, WorkerCounters& counters, std::uint32_t capacity,
             std::uint32_t most_due, std::uint64_t secret);

  /// See Worker::resolve().
  [[nodiscard]] std::optional<MacAddress> resolve(InterfaceId id, const IpAddress& destination,
                                                  Instant now);

  /// See Worker::add_neighbour().
  void add(InterfaceId id, const IpAddress& destination, const MacAddress& mac);

  /// Takes a frame that parse() found to be no RoCE packet.
  void on_frame(Instant now, wire::Verdict verdict, std::span<const std::byte> frame);

  [[nodiscard]] bool wants_tx() const { return !due_.empty(); }
  /// Copies the next control frame and returns its length; 0 when there is none.
  [[nodiscard]] std::size_t build_next(std::span<std::byte> slot);

  static constexpr Duration kReachable = Duration::seconds(60);
  static constexpr Duration kRetry = Duration::seconds(1);
  /// Requests without an answer after which an old answer is no longer believed.
  static constexpr std::uint8_t kMostUnanswered = 3;

 private:
  /// A built frame: control traffic is rare, so a copy is cheaper than a second way to build late.
  struct DueFrame {
    std::array<std::byte, wire::kMaxFrameBytes> bytes;
    std::size_t length = 0;
  };

  void on_neighbour(Instant now, std::span<const std::byte> frame);
  void learn(Instant now, const wire::NeighbourMessage& message, Heat heat);
  void answer(const InterfaceConfig& owner, const wire::NeighbourMessage& message);
  void on_echo(std::span<const std::byte> frame);
  /// False when nothing was sent, for want of a place or of an address to ask from.
  [[nodiscard]] bool ask(const InterfaceConfig& interface, const IpAddress& target,
                         std::optional<MacAddress> probe);
  [[nodiscard]] DueFrame* take_due_slot();
  [[nodiscard]] std::uint64_t& sent_counter(const IpAddress& ip) {
    return ip.is_v4() ? counters_.arp_tx : counters_.nd_tx;
  }

  const Interfaces& interfaces_;
  WorkerCounters& counters_;
  NeighbourTable table_;
  Ring<DueFrame> due_;
};

}  // namespace roce::engine
