#include "engine/transmit_scheduler.hpp"

#include <algorithm>

namespace roce::engine {
namespace {

/// Bytes per unit of weight and round: about a packet. What a QP
/// sends beyond its share in one turn is owed.
constexpr std::int64_t kQuantum = 4096;

}  // namespace

TransmitScheduler::TransmitScheduler(std::uint32_t slots, const std::vector<TrafficClass>& classes)
    : ready_(slots, static_cast<std::uint32_t>(classes.size())),
      count_(static_cast<std::uint32_t>(classes.size())),
      class_of_(slots) {
  std::ranges::copy(classes, classes_.begin());
}

void TransmitScheduler::set_class(std::uint32_t slot, std::uint8_t traffic_class) {
  const bool ready = ready_.contains(slot);
  ready_.remove(slot);
  class_of_[slot] = traffic_class;
  if (ready) push(slot);
}

std::uint32_t TransmitScheduler::pick() {
  std::uint32_t only = count_;
  bool several = false;
  for (std::uint32_t c = count_; c-- > 0;) {
    if (ready_.empty(c)) {
      // Who has nothing to send saves nothing up; what it owes stands.
      deficits_[c] = std::min<std::int64_t>(deficits_[c], 0);
      continue;
    }
    if (classes_[c].strict) return c;
    several = only != count_;
    only = c;
  }
  if (!several) {
    // Alone it owes nobody anything.
    deficits_[only] = 0;
    return only;
  }
  for (;; turn_ = (turn_ + 1) % count_) {
    if (ready_.empty(turn_) || classes_[turn_].strict) continue;
    if (deficits_[turn_] > 0) return turn_;
    deficits_[turn_] += kQuantum * classes_[turn_].weight;
  }
}

Result<void> validate(const std::vector<TrafficClass>& classes) {
  if (classes.empty() || classes.size() > TransmitScheduler::kMostClasses)
    return failure("traffic_classes", "there must be 1 to 8", "give as many");
  for (const TrafficClass& traffic_class : classes)
    if (traffic_class.weight < 1 || traffic_class.weight > 1000)
      return failure("traffic_classes", "a weight is out of range", "take 1 to 1000");
  return {};
}

}  // namespace roce::engine
