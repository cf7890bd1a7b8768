#include "engine/deadline_queue.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "base/prng.hpp"

using namespace roce;

TEST_CASE("the deadline queue fires what a plain map would, never late", "[engine][deadline]") {
  constexpr std::uint32_t kSlots = 50;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng{seed};
    engine::DeadlineQueue queue{kSlots};
    std::map<std::uint32_t, Instant> wanted;  // the deadline each slot told last
    Instant now = Instant::from_ns(0);
    for (int step = 0; step < 3000; ++step) {
      const std::uint32_t slot = prng.below(kSlots);
      switch (prng.below(4)) {
        case 0:
        case 1: {
          const Instant deadline = now + Duration::nanoseconds(prng.below(1000));
          wanted[slot] = deadline;
          queue.set(slot, deadline);
          break;
        }
        case 2:
          wanted.erase(slot);
          queue.remove(slot);
          break;
        default: {
          now = now + Duration::nanoseconds(prng.below(300));
          std::uint32_t due = 0;
          while (queue.take_due(now, due)) {
            const auto found = wanted.find(due);
            if (found == wanted.end()) continue;  // an early firing of an older, nearer deadline
            if (found->second <= now)
              wanted.erase(found);
            else
              queue.set(due, found->second);
          }
          for (const auto& [other, deadline] : wanted) REQUIRE(deadline > now);
          break;
        }
      }
      Instant earliest = Instant::never();
      for (const auto& [other, deadline] : wanted) earliest = std::min(earliest, deadline);
      REQUIRE(queue.earliest() <= earliest);
    }
  }
}
