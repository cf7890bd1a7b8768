// FramePool: the memory of all frames in a network, and what the fabric knows of each. Frames move
// by index; nothing is copied between the host that built a frame and the one that reads it.
//
// Bounded: when it is empty take() says so and counts. Never allocates after construction; pages
// are touched as frames come to lie in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/sim_time.hpp"
#include "wire/build.hpp"

namespace roce::fabric {

using FrameIndex = std::uint32_t;
inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// What a frame is to the fabric: read once from its bytes when it enters, kept beside them.
struct alignas(32) FrameMeta {
  SimTime arrives;                    ///< while it is on a wire
  FrameIndex next = kNone;            ///< in a queue or on a wire
  std::uint32_t destination = kNone;  ///< host that the destination MAC names; kNone: not one
  std::uint32_t flow_hash = 0;        ///< of the five-tuple; of the MACs when it has none
  std::uint32_t in_port = kNone;      ///< of the switch that it is in
  std::uint16_t length = 0;           ///< bytes without FCS
  std::uint8_t traffic_class = 0;     ///< DSCP 6 bits, ECN 2; 0 when it is no IP packet
  std::uint8_t pcp = kUntagged;
  std::uint8_t l3_at = 0;     ///< offset of the IP header; 0: no IP packet
  std::uint8_t priority = 0;  ///< class of the queue that it is or was last in
  bool is_v6 = false;
  bool flow_control = false;  ///< PAUSE or PFC: ends at the port that receives it

  static constexpr std::uint8_t kUntagged = 0xff;
  [[nodiscard]] std::uint8_t dscp() const { return traffic_class >> 2; }
  /// RFC 3168 code point.
  [[nodiscard]] std::uint8_t ecn() const { return traffic_class & 3; }
};
static_assert(sizeof(FrameMeta) == 32);

/// Frames one behind the other, linked through their metas.
struct FrameList {
  FrameIndex head = kNone;
  FrameIndex tail = kNone;
  [[nodiscard]] bool empty() const { return head == kNone; }
};

class FramePool {
 public:
  /// Bytes of each frame; a whole number of cache lines and odd, so that headers of neighbouring
  /// frames fall into different sets.
  static constexpr std::size_t kStride = 67 * 64;
  /// Puts the payload of a packet with 54 bytes of headers on a cache line.
  static constexpr std::size_t kHeadroom = 64 - 54;
  static constexpr std::uint32_t kCapacity = kStride - kHeadroom;
  static_assert(kCapacity >= wire::kMaxFrameBytes);

  explicit FramePool(std::uint32_t frames);

  /// kNone when there is none left.
  [[nodiscard]] FrameIndex take() {
    if (free_.empty()) [[unlikely]] {
      ++exhausted_;
      return kNone;
    }
    const FrameIndex frame = free_.back();
    free_.pop_back();
    const auto used = static_cast<std::uint32_t>(meta_.size() - free_.size());
    if (used > most_used_) most_used_ = used;
    return frame;
  }
  void give_back(FrameIndex frame) { free_.push_back(frame); }

  void prefetch(FrameIndex frame) const {
    if (frame != kNone) __builtin_prefetch(&meta_[frame]);
  }
  [[nodiscard]] FrameMeta& meta(FrameIndex frame) { return meta_[frame]; }
  [[nodiscard]] std::byte* data(FrameIndex frame) const {
    return bytes_.get() + frame * kStride + kHeadroom;
  }
  [[nodiscard]] std::span<const std::byte> view(FrameIndex frame) const {
    return {data(frame), meta_[frame].length};
  }

  void push(FrameList& list, FrameIndex frame) {
    meta_[frame].next = kNone;
    if (list.tail == kNone)
      list.head = frame;
    else
      meta_[list.tail].next = frame;
    list.tail = frame;
  }
  /// The list must not be empty.
  FrameIndex pop(FrameList& list) {
    const FrameIndex frame = list.head;
    list.head = meta_[frame].next;
    if (list.head == kNone) list.tail = kNone;
    return frame;
  }

  [[nodiscard]] std::uint32_t capacity() const { return static_cast<std::uint32_t>(meta_.size()); }
  [[nodiscard]] std::uint32_t in_use() const {
    return static_cast<std::uint32_t>(meta_.size() - free_.size());
  }
  [[nodiscard]] std::uint32_t most_used() const { return most_used_; }
  /// Times that a frame was asked for in vain.
  [[nodiscard]] std::uint64_t exhausted() const { return exhausted_; }

 private:
  struct Unmap {
    std::size_t bytes = 0;
    void operator()(std::byte* base) const;
  };

  std::unique_ptr<std::byte, Unmap> bytes_;
  std::vector<FrameMeta> meta_;
  std::vector<FrameIndex> free_;  ///< last given back, first taken: few frames stay in cache
  std::uint32_t most_used_ = 0;
  std::uint64_t exhausted_ = 0;
};

}  // namespace roce::fabric
