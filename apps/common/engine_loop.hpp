// EngineLoop: a worker on one end of a port, with its interface, turned by the thread that calls.
//
// It reads the clock once per turn and gives the core away while nothing happens.
#pragma once

#include <cstdint>

#include "common/nic.hpp"
#include "engine/worker.hpp"

namespace roce::apps {

/// How the core is shared when a turn found nothing to do.
enum class Idle : std::uint8_t {
  YIELD,  ///< data flow: let others run for a moment
  SLEEP,  ///< nobody is connected: about 100 us
};

class EngineLoop {
 public:
  EngineLoop(const NicEnd& end, const engine::WorkerConfig& config);

  /// One turn. Returns the clock after it.
  Instant turn(Idle idle);

  [[nodiscard]] engine::Worker& worker() { return worker_; }
  [[nodiscard]] const engine::Worker& worker() const { return worker_; }
  [[nodiscard]] engine::InterfaceId interface() const { return interface_; }

 private:
  static constexpr unsigned kIdleTurns = 64;

  engine::Worker worker_;
  engine::InterfaceId interface_;
  unsigned idle_turns_ = 0;
};

/// Sixty-four bits that differ from start to start, or those of --seed.
[[nodiscard]] std::uint64_t random_or(std::optional<std::uint64_t> seed);

}  // namespace roce::apps
