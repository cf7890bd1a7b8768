// Ring: a bounded FIFO with random access inside one thread; memory is taken once, at the start.
#pragma once

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace roce {

/// Fixed-capacity queue; index 0 is the oldest element.
template <class T>
class Ring {
 public:
  Ring() : Ring(0) {}
  /// capacity: the most elements it will hold (exactly, not rounded).
  explicit Ring(std::size_t capacity)
      : slots_(std::bit_ceil(capacity == 0 ? std::size_t{1} : capacity)), capacity_(capacity) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool full() const { return size_ == capacity_; }

  [[nodiscard]] T& operator[](std::size_t i) { return slots_[(head_ + i) & (slots_.size() - 1)]; }
  [[nodiscard]] const T& operator[](std::size_t i) const {
    return slots_[(head_ + i) & (slots_.size() - 1)];
  }
  [[nodiscard]] T& front() { return (*this)[0]; }
  [[nodiscard]] const T& front() const { return (*this)[0]; }
  [[nodiscard]] T& back() { return (*this)[size_ - 1]; }
  [[nodiscard]] const T& back() const { return (*this)[size_ - 1]; }

  /// Makes room for one more element and returns it as it was left (not reset). Must not be full.
  T& push_slot() {
    ROCE_CHECK(!full());
    return slots_[(head_ + size_++) & (slots_.size() - 1)];
  }
  void push(T value) { push_slot() = std::move(value); }
  void pop() {
    ROCE_CHECK(!empty());
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
  }
  void clear() { head_ = size_ = 0; }

 private:
  std::vector<T> slots_;
  std::size_t capacity_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace roce
