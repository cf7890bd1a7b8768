// CompletionQueue: a bounded queue of Wc, written by the QPs of one worker and polled on it.
#pragma once

#include <cstdint>
#include <span>

#include "base/ring.hpp"
#include "verbs/work.hpp"

namespace roce::verbs {

/// Which completions raise the event that arm() asks for.
enum class Notify : std::uint8_t { NONE, ANY, SOLICITED };

class CompletionQueue {
 public:
  /// cqe: capacity in completions, at least 1.
  explicit CompletionQueue(std::size_t cqe) : entries_(cqe) {}

  /// Moves up to out.size() of the oldest completions into out; returns how many.
  std::size_t poll(std::span<Wc> out);

  /// Called by QPs. When full the completion is lost, overrun() turns true and stays (CQ_ERR).
  /// solicited: the packet had SE set, or the status is an error.
  void push(const Wc& wc, bool solicited);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::size_t capacity() const { return entries_.capacity(); }
  [[nodiscard]] bool overrun() const { return overrun_; }

  /// Asks for one event at the next completion that matches (ibv_req_notify_cq).
  void arm(Notify what) { armed_ = what; }
  /// True once per armed event (ibv_get_cq_event without blocking).
  [[nodiscard]] bool take_event();

 private:
  Ring<Wc> entries_;
  Notify armed_ = Notify::NONE;
  bool event_ = false;
  bool overrun_ = false;
};

}  // namespace roce::verbs
