#include "verbs/completion_queue.hpp"

#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <deque>

using namespace roce::verbs;

namespace {
Wc numbered(std::uint64_t wr_id) {
  Wc wc;
  wc.wr_id = wr_id;
  return wc;
}
}  // namespace

TEST_CASE("Completions come out in the order they went in", "[verbs][cq][property]") {
  rc::prop("against a bounded deque", [] {
    const auto capacity = *rc::gen::inRange<std::size_t>(1, 12);
    CompletionQueue cq(capacity);
    std::deque<std::uint64_t> model;
    bool overrun = false;
    std::uint64_t next = 0;
    for (const auto step :
         *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 10))) {
      if (step < 6) {
        cq.push(numbered(next), false);
        if (model.size() < capacity)
          model.push_back(next);
        else
          overrun = true;
        ++next;
      } else {
        std::vector<Wc> out(step - 6);
        const std::size_t n = cq.poll(out);
        RC_ASSERT(n == std::min(out.size(), model.size()));
        for (std::size_t i = 0; i < n; ++i) {
          RC_ASSERT(out[i].wr_id == model.front());
          model.pop_front();
        }
      }
      RC_ASSERT(cq.size() == model.size());
      RC_ASSERT(cq.overrun() == overrun);
    }
    RC_ASSERT(cq.capacity() == capacity);
  });
}

TEST_CASE("An overrun stays even when the queue drains", "[verbs][cq]") {
  CompletionQueue cq(2);
  for (std::uint64_t i = 0; i < 2; ++i) cq.push(numbered(i), false);
  CHECK_FALSE(cq.overrun());
  cq.push(numbered(2), false);
  CHECK(cq.overrun());
  std::array<Wc, 4> out;
  CHECK(cq.poll(out) == 2);
  CHECK(out[1].wr_id == 1);  // what was there is kept, the newcomer is lost
  CHECK(cq.overrun());
}

TEST_CASE("One event is raised per arming", "[verbs][cq]") {
  CompletionQueue cq(8);
  cq.push(numbered(0), true);
  CHECK_FALSE(cq.take_event());  // was not armed
  cq.arm(Notify::ANY);
  CHECK_FALSE(cq.take_event());  // what is already there raises none
  cq.push(numbered(1), false);
  cq.push(numbered(2), false);
  CHECK(cq.take_event());
  CHECK_FALSE(cq.take_event());
  cq.push(numbered(3), false);
  CHECK_FALSE(cq.take_event());
}

TEST_CASE("Arming for solicited completions lets the others pass", "[verbs][cq]") {
  CompletionQueue cq(8);
  cq.arm(Notify::SOLICITED);
  cq.push(numbered(0), false);
  CHECK_FALSE(cq.take_event());
  cq.push(numbered(1), true);
  CHECK(cq.take_event());
  cq.arm(Notify::ANY);
  cq.arm(Notify::NONE);
  cq.push(numbered(2), true);
  CHECK_FALSE(cq.take_event());
}
