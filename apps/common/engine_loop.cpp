#include "common/engine_loop.hpp"

#include <sched.h>

#include <chrono>
#include <random>
#include <thread>

#include "engine/clock.hpp"

namespace roce::apps {

EngineLoop::EngineLoop(const NicEnd& end, const engine::WorkerConfig& config)
    : worker_(config, *end.io), interface_(worker_.add_interface(end.interface)) {}

Instant EngineLoop::turn(Idle idle) {
  if (worker_.turn(engine::SteadyClock::now())) {
    idle_turns_ = 0;
  } else if (++idle_turns_ >= kIdleTurns) {
    if (idle == Idle::SLEEP)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    else
      sched_yield();
  }
  return engine::SteadyClock::now();
}

std::uint64_t random_or(std::optional<std::uint64_t> seed) {
  if (seed) return *seed;
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace roce::apps
