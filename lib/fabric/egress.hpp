// Egress: one port's transmitter: eight queues, who of them is next, and what pauses them. Used by
// hosts' NICs and switches' ports alike. Owned by a network; knows no time but what it is told.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "fabric/counters.hpp"
#include "fabric/frame_pool.hpp"
#include "fabric/link.hpp"
#include "fabric/switch_config.hpp"

namespace roce::fabric {

struct EgressQueue {
  FrameList frames;
  std::uint64_t bytes = 0;
  std::uint64_t most_bytes = 0;
  std::int32_t deficit = 0;  ///< wire bytes that weighted round robin still owes it
  std::int32_t quantum = 0;  ///< wire bytes a round

  [[nodiscard]] bool empty() const { return frames.empty(); }
  void push(FramePool& pool, FrameIndex frame) {
    pool.push(frames, frame);
    bytes += pool.meta(frame).length;
    if (bytes > most_bytes) most_bytes = bytes;
  }
  FrameIndex pop(FramePool& pool) {
    const FrameIndex frame = pool.pop(frames);
    bytes -= pool.meta(frame).length;
    return frame;
  }
};

class Egress {
 public:
  /// Quanta such that the least weight is worth a frame of max_wire_bytes.
  void configure(const Scheduling& scheduling, std::uint32_t max_wire_bytes) {
    std::uint16_t least = 0xffff;
    for (const std::uint16_t weight : scheduling.weight)
      if (weight != 0 && weight < least) least = weight;
    strict_ = 0;
    for (std::size_t i = 0; i < kPriorities; ++i) {
      const std::uint16_t weight = scheduling.weight[i];
      if (weight == 0) strict_ |= static_cast<std::uint8_t>(1u << i);
      queues[i].quantum = static_cast<std::int32_t>(std::uint64_t{max_wire_bytes} * weight / least);
    }
  }

  void push(FramePool& pool, FrameIndex frame, std::uint8_t priority) {
    queues[priority].push(pool, frame);
    waiting |= static_cast<std::uint8_t>(1u << priority);
  }
  FrameIndex pop(FramePool& pool, std::uint8_t priority) {
    EgressQueue& queue = queues[priority];
    const FrameIndex frame = queue.pop(pool);
    if (queue.empty()) {
      waiting &= static_cast<std::uint8_t>(~(1u << priority));
      queue.deficit = 0;  // an idle queue saves nothing up
    }
    return frame;
  }

  /// Queues that have frames and may send.
  [[nodiscard]] std::uint8_t eligible() const {
    return static_cast<std::uint8_t>(waiting & ~paused);
  }
  /// The next of the eligible queues, which must not be none; its frame is then taken by pop().
  [[nodiscard]] std::uint8_t choose(FramePool& pool) {
    const std::uint8_t mask = eligible();
    if (const auto strict = static_cast<std::uint8_t>(mask & strict_); strict != 0)
      return static_cast<std::uint8_t>(std::bit_width(strict) - 1);
    if ((mask & (mask - 1)) == 0) return static_cast<std::uint8_t>(std::countr_zero(mask));
    return round_robin(pool, mask);
  }

  std::uint8_t waiting = 0;  ///< bit n: queue n has frames
  std::uint8_t paused = 0;   ///< bit n: priority n was told to stop

 private:
  [[nodiscard]] std::uint8_t round_robin(FramePool& pool, std::uint8_t mask) {
    for (;;) {
      EgressQueue& queue = queues[turn_];
      if ((mask & (1u << turn_)) != 0) {
        const auto cost =
            static_cast<std::int32_t>(pool.meta(queue.frames.head).length + kWireOverheadBytes);
        if (queue.deficit >= cost) {
          queue.deficit -= cost;
          return turn_;
        }
      }
      turn_ = static_cast<std::uint8_t>((turn_ + 1) % kPriorities);
      if ((mask & (1u << turn_)) != 0) queues[turn_].deficit += queues[turn_].quantum;
    }
  }

  std::uint8_t strict_ = 0;
  std::uint8_t turn_ = 0;

 public:
  std::array<EgressQueue, kPriorities> queues{};
};

}  // namespace roce::fabric
