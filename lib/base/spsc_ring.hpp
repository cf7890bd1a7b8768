// SpscRing: a bounded queue between exactly one producing and one consuming thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <span>
#include <vector>

namespace roce {

/// Single-producer, single-consumer ring of trivially copyable elements, moved in batches.
/// Each side caches the other's index, so an uncontended batch costs one atomic store.
template <class T>
class SpscRing {
 public:
  /// capacity: elements, rounded up to a power of two.
  explicit SpscRing(std::size_t capacity)
      : slots_(std::bit_ceil(capacity)), mask_(slots_.size() - 1) {}

  [[nodiscard]] std::size_t capacity() const { return slots_.size(); }

  /// Producer: copies in as many of items as fit, returns how many.
  std::size_t push(std::span<const T> items) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (slots_.size() - (head - cached_tail_) < items.size())
      cached_tail_ = tail_.load(std::memory_order_acquire);
    const std::size_t n = std::min(items.size(), slots_.size() - (head - cached_tail_));
    for (std::size_t i = 0; i < n; ++i) slots_[(head + i) & mask_] = items[i];
    head_.store(head + n, std::memory_order_release);
    return n;
  }

  /// Consumer: copies out up to out.size() elements, returns how many.
  std::size_t pop(std::span<T> out) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (cached_head_ - tail < out.size()) cached_head_ = head_.load(std::memory_order_acquire);
    const std::size_t n = std::min(out.size(), cached_head_ - tail);
    for (std::size_t i = 0; i < n; ++i) out[i] = slots_[(tail + i) & mask_];
    tail_.store(tail + n, std::memory_order_release);
    return n;
  }

 private:
  std::vector<T> slots_;
  std::size_t mask_;
  alignas(64) std::atomic<std::size_t> head_{0};
  std::size_t cached_tail_ = 0;
  alignas(64) std::atomic<std::size_t> tail_{0};
  std::size_t cached_head_ = 0;
};

}  // namespace roce
