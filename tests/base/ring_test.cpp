#include "base/ring.hpp"

#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <deque>
#include <memory>
#include <thread>

#include "base/spsc_ring.hpp"

using roce::Ring;
using roce::SpscRing;

TEST_CASE("A Ring behaves as a bounded deque", "[base][ring][property]") {
  rc::prop("same as std::deque", [] {
    const auto capacity = *rc::gen::inRange<std::size_t>(0, 20);
    Ring<int> ring(capacity);
    std::deque<int> model;
    RC_ASSERT(ring.capacity() == capacity);
    const auto steps =
        *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange<std::uint8_t>(0, 16));
    int next = 0;
    for (const auto step : steps) {
      if (step == 0) {
        ring.clear();
        model.clear();
      } else if (step < 9 && !ring.full()) {
        if (step % 2 == 0)
          ring.push(next);
        else
          ring.push_slot() = next;
        model.push_back(next++);
      } else if (!ring.empty()) {
        RC_ASSERT(ring.front() == model.front());
        ring.pop();
        model.pop_front();
      }
      RC_ASSERT(ring.size() == model.size());
      RC_ASSERT(ring.empty() == model.empty());
      RC_ASSERT(ring.full() == (model.size() == capacity));
      for (std::size_t i = 0; i < model.size(); ++i) RC_ASSERT(ring[i] == model[i]);
      if (!model.empty()) RC_ASSERT(ring.back() == model.back());
    }
  });
}

TEST_CASE("A slot of a Ring comes back as it was left", "[base][ring]") {
  Ring<std::vector<int>> ring(2);
  ring.push_slot().reserve(100);
  ring.pop();
  ring.push_slot();
  ring.pop();
  CHECK(ring.push_slot().capacity() >= 100);  // so that elements keep their memory
}

TEST_CASE("A Ring holds types that only move", "[base][ring]") {
  Ring<std::unique_ptr<int>> ring(1);
  ring.push(std::make_unique<int>(7));
  CHECK(ring.full());
  CHECK(*ring.front() == 7);
}

TEST_CASE("An SpscRing takes what fits and gives what is there", "[base][spsc]") {
  SpscRing<int> ring(5);
  CHECK(ring.capacity() == 8);
  const std::vector<int> in = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<int> out(10, -1);
  CHECK(ring.pop(out) == 0);
  CHECK(ring.push({}) == 0);
  CHECK(ring.push(in) == 8);
  CHECK(ring.push(in) == 0);
  CHECK(ring.pop(std::span{out}.first(3)) == 3);
  CHECK(ring.push(std::span{in}.subspan(8)) == 2);
  CHECK(ring.pop(std::span{out}.subspan(3)) == 7);
  CHECK(out == in);
}

TEST_CASE("Two threads pass every element through an SpscRing once and in order", "[base][spsc]") {
  SpscRing<std::uint64_t> ring(64);
  constexpr std::uint64_t kCount = 300'000;
  std::thread producer([&] {
    std::uint64_t next = 0;
    std::array<std::uint64_t, 37> batch;
    while (next < kCount) {
      const std::size_t n = std::min<std::size_t>(1 + next % batch.size(), kCount - next);
      for (std::size_t i = 0; i < n; ++i) batch[i] = next + i;
      const std::size_t taken = ring.push(std::span{batch}.first(n));
      next += taken;
      if (taken == 0) std::this_thread::yield();
    }
  });
  std::uint64_t expected = 0;
  std::uint64_t wrong = 0;
  std::array<std::uint64_t, 23> batch;
  while (expected < kCount) {
    const std::size_t n = ring.pop(batch);
    for (std::size_t i = 0; i < n; ++i) wrong += batch[i] != expected++ ? 1u : 0u;
    if (n == 0) std::this_thread::yield();
  }
  producer.join();
  CHECK(wrong == 0);
  CHECK(ring.pop(batch) == 0);
}
