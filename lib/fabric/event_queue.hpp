// EventQueue: what is to happen in a network, the earliest first; of the same time, what was asked
// for first. Owned by a network. It never calls anything and allocates only to grow.
//
// A 4-ary heap of plain structs: half the depth of a binary one, and the four children that a pop
// compares lie on two cache lines. A pop leaves the root empty: what happens then mostly asks for
// another event, which sinks from there, instead of the last one being sunk and the new one raised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/sim_time.hpp"

namespace roce::fabric {

enum class EventKind : std::uint8_t {
  TX_DONE,      ///< target: port; its transmitter is free
  ARRIVE,       ///< target: port that sent; the first of its frames on the wire has arrived
  ARRIVE_LATE,  ///< target: port that sent; argument: frame that came by itself
  PFC_EFFECT,   ///< target: port; argument: flow-control frame, which it obeys from now on
  PAUSE_END,    ///< target: port
  PFC_REFRESH,  ///< target: port
  HOST_WAKE,    ///< target: host
  HOST_DRAIN,   ///< target: host; its receive buffer has passed on a frame
  WATCHDOG,     ///< target: switch
  FAULT_TIMER,  ///< target: port; it may hold frames back for too long
  ACTION,       ///< argument: index of something scheduled
};

struct Event {
  SimTime time;
  std::uint64_t order_kind = 0;  ///< order << 8 | kind
  std::uint32_t target = 0;
  std::uint32_t argument = 0;

  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(order_kind & 0xff); }
};
static_assert(sizeof(Event) == 24);

class EventQueue {
 public:
  explicit EventQueue(std::size_t reserve = 4096) { heap_.reserve(reserve); }

  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return heap_.size() - (hole_ ? 1 : 0); }
  /// Must not be empty.
  [[nodiscard]] SimTime earliest() {
    close();
    return heap_.front().time;
  }

  void push(SimTime time, EventKind kind, std::uint32_t target, std::uint32_t argument = 0) {
    const Event event{time, order_++ << 8 | static_cast<std::uint64_t>(kind), target, argument};
    if (hole_) {
      hole_ = false;
      return sink(event);
    }
    std::size_t at = heap_.size();
    heap_.push_back(event);
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!before(event, heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = event;
  }

  /// Takes the earliest; must not be empty.
  Event pop() {
    close();
    hole_ = true;
    return heap_.front();
  }

 private:
  [[nodiscard]] static bool before(const Event& a, const Event& b) {
    return a.time.ps != b.time.ps ? a.time.ps < b.time.ps : a.order_kind < b.order_kind;
  }

  /// Fills the root that a pop left empty.
  void close() {
    if (!hole_) return;
    hole_ = false;
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
  }

  /// Puts event where the root was.
  void sink(const Event& event) {
    Event* const heap = heap_.data();
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = 4 * at + 1;
      if (first >= size) break;
      const std::size_t end = first + 4 < size ? first + 4 : size;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child)
        if (before(heap[child], heap[least])) least = child;
      if (!before(heap[least], event)) break;
      heap[at] = heap[least];
      at = least;
    }
    heap[at] = event;
  }

  std::vector<Event> heap_;
  std::uint64_t order_ = 0;
  bool hole_ = false;  ///< the root has been taken
};

}  // namespace roce::fabric
