// The worker's small structures against naive models.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <list>
#include <set>

#include "base/prng.hpp"
#include "engine/neighbour_table.hpp"
#include "engine/qp_table.hpp"
#include "engine/ready_list.hpp"

using namespace roce;
using engine::Heat;

TEST_CASE("the ready list does what a plain list would", "[engine][ready]") {
  constexpr std::uint32_t kSlots = 20;
  Prng prng{5};
  engine::ReadyList ready{kSlots};
  std::deque<std::uint32_t> model;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint32_t slot = prng.below(kSlots);
    const auto found = std::find(model.begin(), model.end(), slot);
    REQUIRE(ready.contains(slot) == (found != model.end()));
    switch (prng.below(3)) {
      case 0:
        ready.push(slot);
        if (found == model.end()) model.push_back(slot);
        break;
      case 1:
        ready.remove(slot);
        if (found != model.end()) model.erase(found);
        break;
      default:
        if (model.empty()) break;
        REQUIRE(ready.front() == model.front());
        ready.remove(ready.front());
        model.pop_front();
        break;
    }
    REQUIRE(ready.size() == model.size());
    REQUIRE(ready.empty() == model.empty());
    if (!model.empty()) REQUIRE(ready.front() == model.front());
  }
}

TEST_CASE("the neighbour table keeps what a plain list ordered by heat would",
          "[engine][neighbours]") {
  struct Known {
    std::uint16_t vid;
    IpAddress ip;
    std::int64_t mark;
  };
  for (const std::uint32_t capacity : {1u, 2u, 7u, 64u}) {
    Prng prng{capacity};
    engine::NeighbourTable table{capacity, 99};
    std::list<Known> model;  // hottest first
    std::uint64_t displaced = 0;
    for (std::int64_t step = 0; step < 20'000; ++step) {
      const auto vid = static_cast<std::uint16_t>(prng.below(2));
      const IpAddress ip =
          IpAddress::v4(198, 18, 0, static_cast<std::uint8_t>(prng.below(2 * capacity)));
      const auto found = std::find_if(model.begin(), model.end(), [&](const Known& known) {
        return known.vid == vid && known.ip == ip;
      });
      engine::Neighbour* known = table.find(vid, ip);
      REQUIRE((known != nullptr) == (found != model.end()));
      if (known != nullptr) REQUIRE(known->learnt.ns() == found->mark);
      if (prng.chance(0.3)) continue;

      const Heat heat = prng.chance(0.5) ? Heat::HOT : Heat::COLD;
      engine::Neighbour& entry = table.insert(vid, ip, heat);
      if (found == model.end()) {
        REQUIRE_FALSE(entry.mac);
        entry.learnt = Instant::from_ns(step);
        if (model.size() == capacity) {
          model.pop_back();
          ++displaced;
        }
        model.insert(heat == Heat::HOT ? model.begin() : model.end(), {vid, ip, step});
      } else {
        REQUIRE(entry.learnt.ns() == found->mark);
        if (heat == Heat::HOT) model.splice(model.begin(), model, found);
      }
      REQUIRE(table.size() == model.size());
      REQUIRE(table.displaced() == displaced);
    }
  }
}

TEST_CASE("each QP number names one slot of one worker, and comes back late", "[engine][qp]") {
  verbs::MemoryTable memory{1};
  transport::Counters counters;
  verbs::CompletionQueue cq{1};
  verbs::QpInitAttributes init;
  init.send_cq = init.recv_cq = &cq;
  init.cap = {1, 1, 1, 1, 0};
  struct Size {
    std::uint32_t qps;
    std::size_t uses;  ///< of a slot with numbers of their own
  };
  for (const Size& size : {Size{1, 15 << 16}, Size{3, 15 << 14}, Size{1000, 960}}) {
    engine::QpTable table{9, size.qps, 7};
    std::set<std::uint32_t> seen;
    const std::size_t uses = std::min<std::size_t>(size.uses, 2000);
    // One slot is free, so that each use is of the same one.
    std::vector<Qpn> others;
    for (std::uint32_t i = 1; i < size.qps; ++i)
      others.push_back(table.create(init, {memory, counters}).value());
    for (std::size_t i = 0; i < uses; ++i) {
      const Qpn qpn = table.create(init, {memory, counters}).value();
      REQUIRE((qpn.value() >> 16 & 15) == 9);
      REQUIRE(qpn.value() > 1);
      REQUIRE(seen.insert(qpn.value()).second);
      REQUIRE(table.find(qpn) == table.at(table.slot_of(qpn)));
      table.destroy(qpn);
      REQUIRE(table.find(qpn) == nullptr);
    }
    for (const Qpn other : others) REQUIRE(table.find(other)->number() == other);
    if (uses < size.uses) continue;
    REQUIRE_FALSE(seen.insert(table.create(init, {memory, counters}).value().value()).second);
  }
}
