#include "verbs/completion_queue.hpp"

#include <algorithm>

namespace roce::verbs {

std::size_t CompletionQueue::poll(std::span<Wc> out) {
  const std::size_t n = std::min(out.size(), entries_.size());
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = entries_.front();
    entries_.pop();
  }
  return n;
}

void CompletionQueue::push(const Wc& wc, bool solicited) {
  if (entries_.full()) {
    overrun_ = true;
    return;
  }
  entries_.push(wc);
  if (armed_ == Notify::ANY || (armed_ == Notify::SOLICITED && solicited)) {
    armed_ = Notify::NONE;
    event_ = true;
  }
}

bool CompletionQueue::take_event() {
  const bool had = event_;
  event_ = false;
  return had;
}

}  // namespace roce::verbs
