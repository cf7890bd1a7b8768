// Timing wheel, pacer and transmit scheduler, each against a naive model or an exact figure.
#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "base/prng.hpp"
#include "engine/pacer.hpp"
#include "engine/timing_wheel.hpp"
#include "engine/transmit_scheduler.hpp"

namespace roce::test {
namespace {

using engine::Pacer;
using engine::TimingWheel;
using engine::TrafficClass;
using engine::TransmitScheduler;

Instant at_ns(std::int64_t ns) {
  return Instant::from_ns(ns);
}

/// Spans of all sizes that a wheel treats differently.
std::int64_t span_of(Prng& prng) {
  switch (prng.below(6)) {
    case 0:
      return prng.below(300);
    case 1:
      return prng.below(20'000);
    case 2:
      return prng.below(2'000'000);
    case 3:
      return prng.below(100'000'000);
    case 4:
      return prng.below(2'000'000'000);
    default:
      return std::int64_t{prng.below(2'000'000'000)} * prng.below(50);
  }
}

}  // namespace

TEST_CASE("The timing wheel does what a map would") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    constexpr std::uint32_t kSlots = 200;
    Prng prng{seed};
    TimingWheel wheel{kSlots};
    std::map<std::uint32_t, Instant> model;
    Instant now = at_ns(span_of(prng));
    for (int i = 0; i < 20'000; ++i) {
      const std::uint32_t slot = prng.below(kSlots);
      const std::uint32_t what = prng.below(10);
      if (what < 5) {
        // Late ones too: the past is due at once.
        const Instant when = now + Duration::nanoseconds(span_of(prng) - 100);
        wheel.set(slot, when, now);
        model[slot] = when;
      } else if (what == 5) {
        wheel.remove(slot);
        model.erase(slot);
      } else {
        now = what == 6 && !wheel.earliest().is_never() && wheel.earliest() > now
                  ? wheel.earliest()
                  : now + Duration::nanoseconds(span_of(prng));
        std::uint32_t due = 0;
        while (wheel.take_due(now, due)) {
          REQUIRE(model.contains(due));
          REQUIRE(model[due] <= now);
          model.erase(due);
        }
        Instant earliest = Instant::never();
        for (const auto& [of, when] : model) {
          REQUIRE(when > now);
          earliest = std::min(earliest, when);
        }
        REQUIRE(wheel.earliest() <= earliest);
        REQUIRE(wheel.earliest().is_never() == model.empty());
        REQUIRE((model.empty() || wheel.earliest() > now));
      }
      REQUIRE(wheel.size() == model.size());
      REQUIRE(wheel.contains(slot) == model.contains(slot));
    }
  }
}

TEST_CASE("Jumping from deadline to deadline takes each slot at its very nanosecond") {
  Prng prng{3};
  TimingWheel wheel{1000};
  std::multiset<std::int64_t> expected, taken;
  for (std::uint32_t slot = 0; slot < 1000; ++slot) {
    const std::int64_t when = 1 + span_of(prng);
    wheel.set(slot, at_ns(when), at_ns(0));
    expected.insert(when);
  }
  int jumps = 0;
  while (!wheel.earliest().is_never()) {
    const Instant now = wheel.earliest();
    std::uint32_t slot = 0;
    while (wheel.take_due(now, slot)) taken.insert(now.ns());
    REQUIRE(++jumps < 100'000);
  }
  CHECK(taken == expected);
}

TEST_CASE("A paced flow keeps its rate to a thousandth over 10 ms, however its packets are sized") {
  for (const double mbps : {1.0, 37.0, 1000.0, 39'999.0, 100'000.0, 400'000.0}) {
    CAPTURE(mbps);
    Prng prng{5};
    Pacer pacer{4, Duration::microseconds(10)};
    pacer.set(2, congestion::FixedRate{Rate::mbps(mbps)}, Rate::gbps(400));
    Instant now = at_ns(12'345);
    const Instant end = now + Duration::milliseconds(mbps < 1000 ? 10'000 : 10);
    double bytes = 0;
    std::uint32_t last = 0;
    while (now < end) {
      while (pacer.may_send(now, 2)) {
        last = 64 + prng.below(4096);
        pacer.charge(now, 2, last);
        bytes += last;
      }
      pacer.hold(now, 2);
      CHECK(pacer.holds(2));
      std::uint32_t slot = 0;
      do {
        now = pacer.next_deadline();
      } while (!pacer.take_due(now, slot));
      REQUIRE(slot == 2);
    }
    // The last packet may not be paid off yet.
    const double exact = Rate::mbps(mbps).bytes_in(now - at_ns(12'345));
    CHECK(std::abs(bytes - exact) <= std::max(1e-3 * exact, 4160.0));
    CHECK(std::abs(bytes - exact) <= 1e-4 * exact + 4160);
  }
}

TEST_CASE("A held flow is put anew when its rate changes, down by a CNP and up by itself") {
  Pacer pacer{1, Duration::microseconds(10)};
  const auto config = congestion::make_preset("paper", Rate::gbps(40)).value();
  pacer.set(0, config, Rate::gbps(40));
  CHECK(pacer.heeds_marks(0));
  REQUIRE(pacer.may_send(at_ns(0), 0));
  pacer.charge(at_ns(0), 0, 5000);  // 1 us at 40 Gb/s
  REQUIRE_FALSE(pacer.may_send(at_ns(0), 0));
  pacer.hold(at_ns(0), 0);
  CHECK(pacer.next_deadline() == at_ns(1000));
  REQUIRE(pacer.on_cnp(at_ns(500), 0));  // half is left, at half the rate
  CHECK(pacer.next_deadline() == at_ns(1500));
  std::uint32_t slot = 7;
  CHECK_FALSE(pacer.take_due(at_ns(1499), slot));
  REQUIRE(pacer.take_due(at_ns(1500), slot));
  CHECK(slot == 0);

  // Up: at 20 Gb/s a megabyte would take until 401.5 us; the rate rises from 55.5 us on.
  pacer.charge(at_ns(1500), 0, 1'000'000);
  pacer.hold(at_ns(1500), 0);
  // 54 us at 20, 55 at 30, 55 at 35, 55 at 37.5 Gb/s; the rest at 38.75.
  const double rest = 1'000'000 - 135'000 - 206'250 - 240'625 - 257'812.5;
  const Instant free = at_ns(220'500 + std::llround(std::ceil(rest * 8 / 38.75)));
  CHECK_FALSE(pacer.take_due(free - Duration::nanoseconds(1), slot));
  CHECK(pacer.next_deadline() == free);
  CHECK(pacer.take_due(free, slot));
}

TEST_CASE("A flow in recovery is released in time, and not woken at each change of its rate") {
  for (const std::string_view preset : congestion::preset_names()) {
    CAPTURE(preset);
    Pacer pacer{1, Duration::microseconds(10)};
    const auto config = congestion::make_preset(preset, Rate::gbps(100)).value();
    pacer.set(0, config, Rate::gbps(100));
    std::int64_t t = 0;
    for (int i = 0; i < 40; ++i) pacer.on_cnp(at_ns(t += 4'000), 0);
    pacer.charge(at_ns(t), 0, 1'000'000);
    pacer.hold(at_ns(t), 0);
    // The same by a reaction point of its own, in small steps.
    congestion::ReactionPoint rp{config, Rate::gbps(100)};
    for (std::int64_t cnp = 4'000; cnp <= t; cnp += 4'000) rp.on_cnp(at_ns(cnp));
    rp.on_sent(at_ns(t), 1'000'000);
    double debt = 1'000'000;
    std::int64_t paid = t;
    int changes = 0;
    for (; debt > 0; paid += 50) {
      const Rate before = rp.rate(at_ns(paid));
      debt -= before.bytes_in(Duration::nanoseconds(50));
      if (rp.rate(at_ns(paid + 50)) != before) ++changes;
    }
    int wakes = 0;
    std::uint32_t slot = 0;
    Instant now = pacer.next_deadline();
    for (; !pacer.take_due(now, slot); now = pacer.next_deadline()) ++wakes;
    CHECK(std::abs(static_cast<double>(now.ns() - paid)) <=
          1e-3 * static_cast<double>(paid - t) + 100);
    // A wake-up per 64 changes, and those by which the wheel comes nearer.
    CHECK(wakes <= changes / 64 + 8 + (paid - t) / 1'000'000);
  }
}

TEST_CASE(
    "After a stall a flow catches up for the burst and no more; at rest it saves nothing up") {
  Pacer pacer{1, Duration::microseconds(10)};
  pacer.set(0, congestion::FixedRate{Rate::gbps(8)}, Rate::gbps(8));  // a byte per ns
  const auto burst = [&](Instant now) {
    std::uint32_t bytes = 0;
    while (pacer.may_send(now, 0)) {
      pacer.charge(now, 0, 1000);
      bytes += 1000;
    }
    return bytes;
  };
  CHECK(burst(at_ns(0)) == 1000);
  CHECK(burst(at_ns(4'000)) == 4000);        // late by 3 us: made up
  CHECK(burst(at_ns(5'000'000)) == 11'000);  // late by 5 ms: 10 us of it, and the packet due
  pacer.rest(0);
  CHECK(burst(at_ns(10'000'000)) == 1000);
  CHECK_FALSE(pacer.heeds_marks(0));
}

TEST_CASE("Thousands of paced flows share one wheel, each at its own rate") {
  constexpr std::uint32_t kFlows = 4096;
  Pacer pacer{kFlows, Duration::microseconds(10)};
  std::vector<double> bytes(kFlows);
  const auto rate = [](std::uint32_t slot) { return Rate::mbps(1 + slot); };
  Instant now = at_ns(0);
  const auto send = [&](std::uint32_t slot) {
    while (pacer.may_send(now, slot)) {
      pacer.charge(now, slot, 1000);
      bytes[slot] += 1000;
    }
    pacer.hold(now, slot);
  };
  for (std::uint32_t slot = 0; slot < kFlows; ++slot) {
    pacer.set(slot, congestion::FixedRate{rate(slot)}, Rate::gbps(100));
    send(slot);
  }
  while ((now = pacer.next_deadline()) < at_ns(2'000'000)) {
    std::uint32_t slot = 0;
    while (pacer.take_due(now, slot)) send(slot);
  }
  for (std::uint32_t slot = 0; slot < kFlows; ++slot) {
    const double exact = rate(slot).bytes_in(now - at_ns(0));
    CAPTURE(slot, bytes[slot], exact);
    REQUIRE(std::abs(bytes[slot] - exact) <= 1000 + 1e-4 * exact);
  }
}

TEST_CASE("A flow that is removed is neither held nor due") {
  Pacer pacer{2, Duration::microseconds(10)};
  pacer.set(1, congestion::FixedRate{Rate::gbps(1)}, Rate::gbps(1));
  REQUIRE(pacer.may_send(at_ns(0), 1));
  pacer.charge(at_ns(0), 1, 1000);
  pacer.hold(at_ns(0), 1);
  pacer.remove(1);
  CHECK_FALSE(pacer.has(1));
  CHECK_FALSE(pacer.holds(1));
  CHECK(pacer.next_deadline().is_never());
}

TEST_CASE("Weighted classes share bytes by weight within a percent, strict ones go first") {
  TransmitScheduler scheduler{8, {{false, 1}, {false, 3}, {false, 6}, {true, 1}, {true, 1}}};
  for (std::uint32_t slot = 0; slot < 8; ++slot)
    scheduler.set_class(slot, static_cast<std::uint8_t>(slot % 5));
  Prng prng{9};
  std::map<std::uint32_t, double> bytes;
  // Slots 0 to 2 and 5 to 7 are always ready (classes 0, 1, 2); their packets differ in size.
  for (const std::uint32_t slot : {0u, 1u, 2u, 5u, 6u, 7u}) scheduler.push(slot);
  double total = 0;
  for (int i = 0; i < 50'000; ++i) {
    const std::uint32_t slot = scheduler.next();
    REQUIRE(slot % 5 < 3);
    scheduler.remove(slot);
    const std::uint32_t sent = slot < 3 ? 8 * 4170 : 64 + prng.below(1000);
    scheduler.charge(slot, sent);
    bytes[slot % 5] += sent;
    total += sent;
    scheduler.push(slot);
  }
  CHECK(bytes[0] / total == Approx(0.1).epsilon(0.01));
  CHECK(bytes[1] / total == Approx(0.3).epsilon(0.01));
  CHECK(bytes[2] / total == Approx(0.6).epsilon(0.01));

  scheduler.push(3);
  scheduler.push(4);
  CHECK(scheduler.size() == 8);
  CHECK(scheduler.next() == 4);
  scheduler.remove(4);
  CHECK(scheduler.next() == 3);
  scheduler.remove(3);
  CHECK(scheduler.next() % 5 < 3);
}

TEST_CASE("Within a class QPs take turns, and a class that was idle saved nothing up") {
  TransmitScheduler scheduler{4, {{false, 1}, {false, 1}}};
  scheduler.set_class(3, 1);
  for (const std::uint32_t slot : {0u, 1u, 2u}) scheduler.push(slot);
  for (std::uint32_t i = 0; i < 300; ++i) {
    const std::uint32_t slot = scheduler.next();
    CHECK(slot == i % 3);
    scheduler.remove(slot);
    scheduler.charge(slot, 4000);
    scheduler.push(slot);
  }
  scheduler.push(3);
  std::map<bool, int> turns;
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t slot = scheduler.next();
    scheduler.remove(slot);
    scheduler.charge(slot, 4000);
    scheduler.push(slot);
    ++turns[slot == 3];
  }
  CHECK(std::abs(turns[true] - turns[false]) <= 4);
}

TEST_CASE("A slot that changes its class while ready stays ready there") {
  TransmitScheduler scheduler{2, {{false, 1}, {true, 1}}};
  scheduler.push(0);
  scheduler.push(1);
  CHECK(scheduler.next() == 0);
  scheduler.set_class(1, 1);
  CHECK(scheduler.next() == 1);
  CHECK(scheduler.size() == 2);
  CHECK(engine::validate({TrafficClass{}}));
  CHECK_FALSE(engine::validate({}));
  CHECK_FALSE(engine::validate(std::vector<TrafficClass>(9)));
  CHECK_FALSE(engine::validate({{false, 0}}));
}

}  // namespace roce::test
