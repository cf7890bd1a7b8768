#include "engine/deadline_queue.hpp"

#include <utility>

namespace roce::engine {

DeadlineQueue::DeadlineQueue(std::uint32_t slots)
    : armed_(slots, Instant::never()), position_(slots, kAbsent) {
  heap_.reserve(slots);
}

void DeadlineQueue::place(std::size_t index, std::uint32_t slot) {
  heap_[index] = slot;
  position_[slot] = static_cast<std::uint32_t>(index);
}

void DeadlineQueue::sift_up(std::size_t index) {
  const std::uint32_t slot = heap_[index];
  while (index > 0) {
    const std::size_t parent = (index - 1) / 2;
    if (armed_[heap_[parent]] <= armed_[slot]) break;
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, slot);
}

void DeadlineQueue::sift_down(std::size_t index) {
  const std::uint32_t slot = heap_[index];
  for (;;) {
    std::size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && armed_[heap_[child + 1]] < armed_[heap_[child]]) ++child;
    if (armed_[slot] <= armed_[heap_[child]]) break;
    place(index, heap_[child]);
    index = child;
  }
  place(index, slot);
}

void DeadlineQueue::arm(std::uint32_t slot, Instant deadline) {
  armed_[slot] = deadline;
  if (position_[slot] == kAbsent) {
    heap_.push_back(slot);
    position_[slot] = static_cast<std::uint32_t>(heap_.size() - 1);
  }
  sift_up(position_[slot]);
}

void DeadlineQueue::remove(std::uint32_t slot) {
  const std::uint32_t index = std::exchange(position_[slot], kAbsent);
  armed_[slot] = Instant::never();
  if (index == kAbsent) return;
  const std::uint32_t last = heap_.back();
  heap_.pop_back();
  if (last == slot) return;
  place(index, last);
  sift_up(index);
  sift_down(position_[last]);
}

bool DeadlineQueue::take_due(Instant now, std::uint32_t& slot) {
  if (heap_.empty() || armed_[heap_[0]] > now) return false;
  slot = heap_[0];
  remove(slot);
  return true;
}

}  // namespace roce::engine
