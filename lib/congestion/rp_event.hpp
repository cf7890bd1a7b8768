// RpEvent: what a reaction point did, for traces. The names are those that docs/dcqcn.md explains.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.hpp"

namespace roce::congestion {

enum class RpEventKind : std::uint8_t {
  CNP_CUT,    ///< a CNP cut the rate at once
  FIRST_CNP,  ///< the limiter was allocated; the cut, if any, comes later
  CNP,        ///< noted, to be acted upon later or not at all
  CUT,        ///< at the end of a period in which a CNP came
  ALPHA,      ///< decay after silence (not told under AlphaRule::PERIODIC, where it is each tick)
  FAST_RECOVERY_TIMER,
  FAST_RECOVERY_BYTES,
  ADDITIVE_TIMER,
  ADDITIVE_BYTES,
  HYPER_TIMER,
  HYPER_BYTES,
  RELEASED,
};
/// As traces print it: "CNP cut", "FR (timer)", ...
[[nodiscard]] std::string_view name_of(RpEventKind kind);

/// The state right after an event.
struct RpEvent {
  Instant at;
  RpEventKind kind{};
  double rc_mbps = 0, rt_mbps = 0;  ///< current and target rate
  double alpha = 0;                 ///< 0..1
  std::uint64_t t = 0, bc = 0;      ///< stage counters: timer, bytes
};

/// Who is told of each event. A trace costs what its events cost: nothing is skipped under it.
struct RpObserver {
  void (*note)(void* context, const RpEvent& event) = nullptr;
  void* context = nullptr;
  [[nodiscard]] explicit operator bool() const { return note != nullptr; }
};

}  // namespace roce::congestion
