// CounterLine: what changed since the last line, for programs that print one a second.
#pragma once

#include <string>

#include "base/time.hpp"
#include "engine/packet_io.hpp"
#include "engine/worker_counters.hpp"
#include "transport/counters.hpp"

namespace roce::report {

class CounterLine {
 public:
  /// "tx 1.20 Gb/s 37 kpps  rx 9.81 Gb/s 300 kpps  retransmitted_packets +3 ...": rates on the wire
  /// (L2 without FCS), then each counter of trouble that moved. The first call starts the measure.
  [[nodiscard]] std::string next(Instant now, const engine::PortCounters& port,
                                 const transport::Counters& transport,
                                 const engine::WorkerCounters& worker);

 private:
  bool started_ = false;
  Instant at_;
  engine::PortCounters port_;
  transport::Counters transport_;
  engine::WorkerCounters worker_;
};

}  // namespace roce::report
