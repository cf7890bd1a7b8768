// Effects: what a QP tells its owner at the end of a call. Packets are pulled (build_next), and
// completions stand in the CQs; what remains is readiness, timers and asynchronous events.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/types.hpp"
#include "verbs/enums.hpp"

namespace roce::transport {

struct AsyncEvent {
  verbs::AsyncEventType type{};
  Qpn qpn;
};

/// Collected over any number of calls, read and cleared by the owner.
class Effects {
 public:
  /// More events than fit in one collection are counted, never lost silently.
  static constexpr std::size_t kMostEvents = 32;

  void raise(AsyncEvent event) {
    if (count_ < kMostEvents)
      events_[count_++] = event;
    else
      ++dropped_;
  }
  [[nodiscard]] std::span<const AsyncEvent> events() const { return {events_.data(), count_}; }
  [[nodiscard]] std::size_t dropped() const { return dropped_; }
  void clear() { count_ = dropped_ = 0; }

 private:
  std::array<AsyncEvent, kMostEvents> events_{};
  std::size_t count_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace roce::transport
