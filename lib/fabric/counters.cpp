#include "fabric/counters.hpp"

#include <algorithm>
#include <numeric>

namespace roce::fabric {

const char* name_of(DropCause cause) {
  constexpr std::array<const char*, kDropCauses> kNames = {
      "link_down", "no_route", "buffer", "headroom", "red", "watchdog", "fault", "rx_overflow"};
  return kNames[static_cast<std::size_t>(cause)];
}

PriorityCounters PortCounters::total() const {
  PriorityCounters sum;
  for (const PriorityCounters& p : priority) {
    sum.tx_packets += p.tx_packets;
    sum.tx_bytes += p.tx_bytes;
    sum.rx_packets += p.rx_packets;
    sum.rx_bytes += p.rx_bytes;
    sum.ecn_marked += p.ecn_marked;
    for (std::size_t i = 0; i < kDropCauses; ++i) sum.drops[i] += p.drops[i];
    sum.rx_pause += p.rx_pause;
    sum.tx_pause += p.tx_pause;
    sum.rx_xon += p.rx_xon;
    sum.tx_xon += p.tx_xon;
    sum.paused += p.paused;
    sum.storms_detected += p.storms_detected;
    sum.storms_restored += p.storms_restored;
    sum.max_queue_bytes = std::max(sum.max_queue_bytes, p.max_queue_bytes);
    sum.max_headroom_bytes = std::max(sum.max_headroom_bytes, p.max_headroom_bytes);
  }
  return sum;
}

Picoseconds QueueHistogram::total() const {
  return std::accumulate(time_.begin(), time_.end(), Picoseconds{0});
}

double QueueHistogram::mean_bytes() const {
  const Picoseconds sum = total();
  return sum == 0 ? 0.0 : byte_time_ / static_cast<double>(sum);
}

std::uint64_t QueueHistogram::quantile(double share) const {
  const double wanted = static_cast<double>(total()) * share;
  double seen = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    seen += static_cast<double>(time_[bucket]);
    if (seen >= wanted && seen > 0)
      return bucket + 1 < kBuckets ? lower_edge(bucket + 1) : lower_edge(bucket);
  }
  return 0;
}

}  // namespace roce::fabric
