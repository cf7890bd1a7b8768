#include "common/stop.hpp"

#include <csignal>

namespace roce::apps {
namespace {

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_stop_signal(int) {
  stop.store(true, std::memory_order_relaxed);
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

bool stop_requested() {
  return stop.load(std::memory_order_relaxed);
}

}  // namespace roce::apps
