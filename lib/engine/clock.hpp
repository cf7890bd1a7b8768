// SteadyClock: where run loops get the instant that they hand to Worker::turn(). Nothing below the
// apps reads it.
#pragma once

#include <ctime>

#include "base/time.hpp"

namespace roce::engine {

/// CLOCK_MONOTONIC through the vDSO: about 20 ns a read, once per turn, and no TSC to calibrate, so
/// that instants agree between workers and do not drift from the wall clock's rate.
class SteadyClock {
 public:
  [[nodiscard]] static Instant now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return Instant::from_ns(std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec);
  }
};

}  // namespace roce::engine
