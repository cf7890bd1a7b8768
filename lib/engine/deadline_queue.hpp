// DeadlineQueue: one deadline per slot, the earliest first. Owned by a worker; it reads no clock.
//
// An indexed binary heap and not a wheel (docs/design/0004-deadline-queue.md): exact for 4 us and
// for 8.8 h alike, no tick, and rearming is lazy, so that a QP whose deadline only ever moves later
// costs one heap operation per expiry and none per packet.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.hpp"

namespace roce::engine {

class DeadlineQueue {
 public:
  /// slots: slot numbers are below it. Memory is taken here and never again.
  explicit DeadlineQueue(std::uint32_t slots);

  /// Tells the deadline of slot, Instant::never() for none. Costs a compare when it is not earlier
  /// than what is armed; the armed one then fires early and take_due()'s caller tells again.
  void set(std::uint32_t slot, Instant deadline) {
    if (deadline < armed_[slot]) arm(slot, deadline);
  }
  /// Forgets slot.
  void remove(std::uint32_t slot);

  /// Whether a deadline has come; slot is then its owner, no longer armed.
  [[nodiscard]] bool take_due(Instant now, std::uint32_t& slot);

  /// No later than the earliest deadline told; Instant::never() when there is none.
  [[nodiscard]] Instant earliest() const {
    return heap_.empty() ? Instant::never() : armed_[heap_[0]];
  }

 private:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  void arm(std::uint32_t slot, Instant deadline);
  void place(std::size_t index, std::uint32_t slot);
  void sift_up(std::size_t index);
  void sift_down(std::size_t index);

  std::vector<Instant> armed_;           ///< by slot
  std::vector<std::uint32_t> position_;  ///< by slot: index in heap_, or kAbsent
  std::vector<std::uint32_t> heap_;
};

}  // namespace roce::engine
