// Neighbours: the interfaces of a worker and what it knows of the hosts around them. Learns from
// and answers ARP, neighbour discovery and ICMP echo. Sends nothing itself: frames that fall due
// wait until the worker has a slot for them. Bounded: a flood displaces old answers and old
// entries.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ring.hpp"
#include "base/time.hpp"
#include "engine/interface.hpp"
#include "engine/packet_io.hpp"
#include "engine/worker_counters.hpp"
#include "wire/packet.hpp"

namespace roce::engine {

class Neighbours {
 public:
  explicit Neighbours(WorkerCounters& counters);

  InterfaceId add(const InterfaceConfig& config);
  [[nodiscard]] const InterfaceConfig& interface(InterfaceId id) const { return interfaces_[id]; }

  /// Whether a packet is for one of our interfaces: MAC and IP of the same one.
  [[nodiscard]] bool is_ours(const wire::Packet& packet) const;

  /// See Worker::resolve().
  [[nodiscard]] std::optional<MacAddress> resolve(InterfaceId id, const IpAddress& destination,
                                                  Instant now);

  /// Takes a frame whose verdict was ARP, ICMP or ICMPV6.
  void on_frame(Instant now, wire::Verdict verdict, std::span<const std::byte> frame);

  [[nodiscard]] bool wants_tx() const { return !due_.empty(); }
  /// Builds the next control frame and returns its length; 0 when there is none.
  [[nodiscard]] std::size_t build_next(std::span<std::byte> slot);

  static constexpr Duration kReachable = Duration::seconds(60);
  static constexpr Duration kRetry = Duration::seconds(1);
  static constexpr std::size_t kMostEntries = 65536;
  static constexpr std::size_t kMostDue = 256;
  static constexpr std::size_t kMostFrame = 1600;  ///< longest echo that is answered

 private:
  struct IpHash {
    std::size_t operator()(const IpAddress& ip) const noexcept;
  };
  struct Entry {
    std::optional<MacAddress> mac;
    Instant learnt;
    std::optional<Instant> asked;
  };
  /// A built frame: control traffic is rare, so a copy is cheaper than a second way to build late.
  struct DueFrame {
    std::array<std::byte, kMostFrame> bytes;
    std::size_t length = 0;
  };

  void learn(Instant now, const IpAddress& ip, const MacAddress& mac);
  void on_neighbour(Instant now, std::span<const std::byte> frame);
  void on_echo(std::span<const std::byte> frame);
  [[nodiscard]] const InterfaceConfig* owner_of(const IpAddress& ip,
                                                std::optional<std::uint16_t> vlan_tci) const;
  [[nodiscard]] IpAddress next_hop(const InterfaceConfig& interface,
                                   const IpAddress& destination) const;
  /// The entry of ip, made when there is none, in the place of another one when the table is full.
  [[nodiscard]] Entry& entry_of(const IpAddress& ip);
  void ask(const InterfaceConfig& interface, const IpAddress& target,
           std::optional<MacAddress> probe);
  /// A place for one more frame, the oldest displaced when all are taken.
  [[nodiscard]] DueFrame& due_slot();

  WorkerCounters& counters_;
  std::vector<InterfaceConfig> interfaces_;
  std::unordered_map<IpAddress, std::vector<InterfaceId>, IpHash> by_address_;
  std::unordered_map<IpAddress, Entry, IpHash> entries_;
  Ring<DueFrame> due_{kMostDue};
};

}  // namespace roce::engine
