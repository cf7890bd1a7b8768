// ReadyList: the slots of QPs that want to transmit, in the order of their turns, in one list per
// traffic class. Each stands in one at most; joining, leaving from anywhere and taking the first
// cost the same few stores.
#pragma once

#include <cstdint>
#include <vector>

namespace roce::engine {

class ReadyList {
 public:
  /// slots: slot numbers are below it. Memory is taken here and never again.
  explicit ReadyList(std::uint32_t slots, std::uint32_t lists = 1)
      : links_(std::size_t{slots} + lists), slots_(slots) {
    for (std::uint32_t slot = 0; slot < slots; ++slot) links_[slot] = {kAbsent, kAbsent};
    for (std::uint32_t end = slots; end < slots + lists; ++end) links_[end] = {end, end};
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// In all lists together.
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool contains(std::uint32_t slot) const { return links_[slot].next != kAbsent; }
  [[nodiscard]] bool empty(std::uint32_t list) const {
    return links_[slots_ + list].next == slots_ + list;
  }
  /// The one whose turn it is; the list must not be empty.
  [[nodiscard]] std::uint32_t front(std::uint32_t list = 0) const {
    return links_[slots_ + list].next;
  }

  /// Joins at the end, unless it is in a list already.
  void push(std::uint32_t slot, std::uint32_t list = 0) {
    if (contains(slot)) return;
    const std::uint32_t end = slots_ + list;
    const std::uint32_t last = links_[end].previous;
    links_[slot] = {last, end};
    links_[last].next = links_[end].previous = slot;
    ++size_;
  }
  /// Leaves, if it is in a list.
  void remove(std::uint32_t slot) {
    if (!contains(slot)) return;
    const Link link = links_[slot];
    links_[link.previous].next = link.next;
    links_[link.next].previous = link.previous;
    links_[slot] = {kAbsent, kAbsent};
    --size_;
  }

 private:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};
  struct Link {
    std::uint32_t previous, next;
  };

  std::vector<Link> links_;  ///< by slot; behind them, one per list that is both its ends
  std::uint32_t slots_;
  std::uint32_t size_ = 0;
};

}  // namespace roce::engine
