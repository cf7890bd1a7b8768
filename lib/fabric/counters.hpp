// What a network counts at each port: one writer, free-running.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "fabric/sim_time.hpp"
#include "fabric/switch_config.hpp"

namespace roce::fabric {

enum class DropCause : std::uint8_t {
  LINK_DOWN,    ///< sent or on its way when the link was down
  NO_ROUTE,     ///< the destination MAC names no host, or one that cannot be reached
  BUFFER,       ///< lossy: over its egress threshold or the shared pool is full
  HEADROOM,     ///< lossless: over its headroom
  RED,          ///< not ECN-capable where the line said to mark
  WATCHDOG,     ///< in a queue in a storm
  FAULT,        ///< an injected one
  RX_OVERFLOW,  ///< at a host: no room in the receive buffer
};
inline constexpr std::size_t kDropCauses = static_cast<std::size_t>(DropCause::RX_OVERFLOW) + 1;
[[nodiscard]] const char* name_of(DropCause cause);

/// Of one port and priority. Bytes are without FCS.
struct alignas(64) PriorityCounters {
  std::uint64_t tx_packets = 0, tx_bytes = 0;
  std::uint64_t rx_packets = 0, rx_bytes = 0;
  std::uint64_t max_queue_bytes = 0;  ///< of the egress queue
  std::uint64_t ecn_marked = 0;       ///< made CE when leaving this port
  std::array<std::uint64_t, kDropCauses> drops{};
  std::uint64_t rx_pause = 0, tx_pause = 0;  ///< PFC frames that paused, refreshes included
  std::uint64_t rx_xon = 0, tx_xon = 0;
  Picoseconds paused = 0;  ///< time that this port was not allowed to send
  std::uint64_t storms_detected = 0, storms_restored = 0;
  std::uint64_t max_headroom_bytes = 0;  ///< used of the ingress headroom

  [[nodiscard]] std::uint64_t dropped() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : drops) sum += n;
    return sum;
  }
};

struct PortCounters {
  std::array<PriorityCounters, kPriorities> priority{};
  std::uint64_t rx_flow_control = 0, tx_flow_control = 0;  ///< frames

  /// Sums over priorities.
  [[nodiscard]] PriorityCounters total() const;
};

/// For how long a queue held how many bytes: log-linear, a relative error of at most 1/4.
class QueueHistogram {
 public:
  static constexpr std::size_t kBuckets = 96;

  /// The queue has held bytes since the last call (or since time 0) and until now.
  void note(SimTime now, std::uint64_t bytes) {
    const Picoseconds span = now - since_;
    if (span == 0) return;
    since_ = now;
    time_[bucket_of(bytes)] += span;
    byte_time_ += static_cast<double>(bytes) * static_cast<double>(span);
  }

  /// 0 for 0 to 63 bytes, then four to each power of two; the last takes all above.
  [[nodiscard]] static std::size_t bucket_of(std::uint64_t bytes) {
    if (bytes < 64) return 0;
    const auto power = static_cast<unsigned>(std::bit_width(bytes)) - 1;
    const std::size_t bucket = 4 * (power - 6) + ((bytes >> (power - 2)) & 3) + 1;
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  /// The least value of a bucket.
  [[nodiscard]] static std::uint64_t lower_edge(std::size_t bucket) {
    if (bucket == 0) return 0;
    return (4 + (bucket - 1) % 4) << ((bucket - 1) / 4 + 4);
  }
  [[nodiscard]] Picoseconds time(std::size_t bucket) const { return time_[bucket]; }
  [[nodiscard]] Picoseconds total() const;
  /// Mean over time; exact.
  [[nodiscard]] double mean_bytes() const;
  /// Least bucket edge at or below which the queue was for the given share (0..1) of the time.
  [[nodiscard]] std::uint64_t quantile(double share) const;

 private:
  SimTime since_;
  double byte_time_ = 0;
  std::array<Picoseconds, kBuckets> time_{};
};

}  // namespace roce::fabric
