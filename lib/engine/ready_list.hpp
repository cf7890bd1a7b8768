// ReadyList: the slots of QPs that want to transmit, in the order of their turns. Each stands in it
// once; joining, leaving from anywhere and taking the first cost the same few stores.
#pragma once

#include <cstdint>
#include <vector>

namespace roce::engine {

class ReadyList {
 public:
  /// slots: slot numbers are below it. Memory is taken here and never again.
  explicit ReadyList(std::uint32_t slots) : links_(std::size_t{slots} + 1), end_(slots) {
    links_[end_] = {end_, end_};
    for (std::uint32_t slot = 0; slot < slots; ++slot) links_[slot] = {kAbsent, kAbsent};
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool contains(std::uint32_t slot) const { return links_[slot].next != kAbsent; }
  /// The one whose turn it is; must not be empty.
  [[nodiscard]] std::uint32_t front() const { return links_[end_].next; }

  /// Joins at the end, unless it is in the list already.
  void push(std::uint32_t slot) {
    if (contains(slot)) return;
    const std::uint32_t last = links_[end_].previous;
    links_[slot] = {last, end_};
    links_[last].next = links_[end_].previous = slot;
    ++size_;
  }
  /// Leaves, if it is in the list.
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

  std::vector<Link> links_;  ///< by slot; the last one is both ends
  std::uint32_t end_;
  std::uint32_t size_ = 0;
};

}  // namespace roce::engine
