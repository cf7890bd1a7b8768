// TransmitScheduler: which ready QP sends next. Strict classes go before weighted ones; weighted
// ones share by bytes (deficit round robin); within a class QPs take turns. Owned by the worker.
//
// With one class, the default, it is a list: nothing is weighed or counted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "engine/ready_list.hpp"

namespace roce::engine {

/// How a traffic class shares the port with the others.
struct TrafficClass {
  bool strict = false;       ///< before all weighted ones and before strict ones of lower number
  std::uint16_t weight = 1;  ///< of a weighted one, 1..1000: its share of the bytes
};

class TransmitScheduler {
 public:
  static constexpr std::size_t kMostClasses = 8;

  /// classes: 1..8 of them.
  TransmitScheduler(std::uint32_t slots, const std::vector<TrafficClass>& classes);

  [[nodiscard]] bool empty() const { return ready_.empty(); }
  [[nodiscard]] std::uint32_t size() const { return ready_.size(); }
  [[nodiscard]] bool contains(std::uint32_t slot) const { return ready_.contains(slot); }

  void push(std::uint32_t slot) { ready_.push(slot, count_ == 1 ? 0 : class_of_[slot]); }
  void remove(std::uint32_t slot) { ready_.remove(slot); }

  /// The slot whose turn it is; must not be empty.
  [[nodiscard]] std::uint32_t next() { return ready_.front(count_ == 1 ? 0 : pick()); }
  /// The QP in slot has sent so many bytes in its turn.
  void charge(std::uint32_t slot, std::uint32_t bytes) {
    if (count_ > 1) deficits_[class_of_[slot]] -= bytes;
  }

  /// Moves a slot to a class, in whose list it then is last if it was ready.
  void set_class(std::uint32_t slot, std::uint8_t traffic_class);
  [[nodiscard]] std::uint32_t classes() const { return count_; }

 private:
  [[nodiscard]] std::uint32_t pick();

  ReadyList ready_;
  std::uint32_t count_;
  std::vector<std::uint8_t> class_of_;  ///< by slot
  std::array<TrafficClass, kMostClasses> classes_{};
  std::array<std::int64_t, kMostClasses> deficits_{};  ///< bytes that a class may still send
  std::uint32_t turn_ = 0;                             ///< the weighted class whose turn it is
};

/// Whether the classes can be scheduled.
[[nodiscard]] Result<void> validate(const std::vector<TrafficClass>& classes);

}  // namespace roce::engine
