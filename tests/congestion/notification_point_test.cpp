// The notification point against the rules that published NICs and papers follow.
#include "congestion/notification_point.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "base/prng.hpp"

namespace roce::test {
namespace {

using namespace congestion;

NpFlow flow(std::uint32_t qpn, std::uint8_t source = 1, std::uint8_t destination = 2) {
  NpFlow flow;
  flow.qpn = Qpn{qpn};
  flow.source = IpAddress::v4(198, 18, 0, source);
  flow.destination = IpAddress::v4(198, 18, 1, destination);
  return flow;
}

Instant at_us(std::int64_t us) {
  return Instant::from_ns(us * 1000);
}

NpConfig config(NpScope scope, NpRule rule = NpRule::GATE, std::int64_t us = 50) {
  NpConfig config;
  config.scope = scope;
  config.rule = rule;
  config.min_time_between_cnps = Duration::microseconds(us);
  return config;
}

}  // namespace

TEST_CASE("Gate: one CNP per interval, marks within it are forgotten") {
  NotificationPoint np{config(NpScope::QP)};
  CHECK(np.on_marked(at_us(100), flow(1)));
  CHECK_FALSE(np.on_marked(at_us(100), flow(1)));
  CHECK_FALSE(np.on_marked(at_us(149), flow(1)));
  CHECK(np.next_deadline().is_never());
  NpFlow due;
  CHECK_FALSE(np.take_due(at_us(1000), due));
  CHECK(np.on_marked(at_us(1000), flow(1)));
  CHECK_FALSE(np.on_marked(at_us(1049), flow(1)));
  CHECK(np.on_marked(at_us(1050), flow(1)));
  CHECK(np.counters().marked == 6);
  CHECK(np.counters().cnps_for_marks == 3);
  CHECK(np.counters().suppressed == 3);
}

TEST_CASE("Window: marks within an interval make one CNP at its end, to the last marked QP") {
  NotificationPoint np{config(NpScope::SOURCE_IP, NpRule::WINDOW)};
  NpFlow due;
  CHECK(np.on_marked(at_us(100), flow(1)));
  CHECK_FALSE(np.on_marked(at_us(120), flow(2)));
  CHECK_FALSE(np.on_marked(at_us(130), flow(3)));
  CHECK(np.next_deadline() == at_us(150));
  CHECK_FALSE(np.take_due(at_us(149), due));
  REQUIRE(np.take_due(at_us(150), due));
  CHECK(due.qpn == Qpn{3});
  CHECK_FALSE(np.take_due(at_us(150), due));
  // The CNP at the end began the next interval, which ends without marks.
  CHECK_FALSE(np.on_marked(at_us(199), flow(1)));
  REQUIRE(np.take_due(at_us(200), due));
  CHECK_FALSE(np.take_due(at_us(250), due));
  CHECK(np.next_deadline().is_never());
  CHECK(np.on_marked(at_us(251), flow(1)));
  CHECK(np.counters().cnps_for_marks == 4);
  CHECK(np.counters().suppressed == 1);
}

TEST_CASE("Each scope shares its interval among what it names and nothing else") {
  const std::vector<std::tuple<NpScope, bool, bool, bool>> kScopes = {
      // another QP, another source, another destination: does each get a CNP of its own?
      {NpScope::QP, true, true, true},
      {NpScope::SOURCE_IP, false, true, false},
      {NpScope::IP_PAIR, false, true, true},
      {NpScope::PORT, false, false, false}};
  for (const auto& [scope, qp, source, destination] : kScopes) {
    NotificationPoint np{config(scope)};
    CHECK(np.on_marked(at_us(1), flow(1, 1, 1)));
    CHECK_FALSE(np.on_marked(at_us(1), flow(1, 1, 1)));
    CHECK(np.on_marked(at_us(1), flow(2, 1, 1)) == qp);
    CHECK(np.on_marked(at_us(1), flow(3, 2, 1)) == source);
    CHECK(np.on_marked(at_us(1), flow(4, 1, 2)) == destination);
  }
}

TEST_CASE("Without an interval each mark brings a CNP") {
  NotificationPoint np{config(NpScope::PORT, NpRule::GATE, 0)};
  for (int i = 0; i < 10; ++i) CHECK(np.on_marked(at_us(1), flow(1)));
  CHECK(np.counters().suppressed == 0);
}

TEST_CASE("Disabled, a notification point counts and says nothing") {
  NpConfig off = config(NpScope::QP);
  off.enabled = false;
  off.cnp_on_nak = true;
  NotificationPoint np{off};
  CHECK_FALSE(np.on_marked(at_us(1), flow(1)));
  CHECK_FALSE(np.on_nak());
  CHECK(np.counters().marked == 1);
  CHECK(np.counters().suppressed == 1);
}

TEST_CASE("A NAK brings a CNP when asked for, whatever the interval") {
  NpConfig with = config(NpScope::QP);
  with.cnp_on_nak = true;
  NotificationPoint np{with}, without{config(NpScope::QP)};
  CHECK(np.on_marked(at_us(1), flow(1)));
  CHECK(np.on_nak());
  CHECK(np.on_nak());
  CHECK_FALSE(without.on_nak());
  CHECK(np.counters().cnps_for_naks == 2);
}

TEST_CASE(
    "Random marks: never two CNPs of a scope within the interval, none lost, by either rule") {
  for (const NpRule rule : {NpRule::GATE, NpRule::WINDOW}) {
    for (const NpScope scope : {NpScope::QP, NpScope::SOURCE_IP, NpScope::IP_PAIR, NpScope::PORT}) {
      NotificationPoint np{config(scope, rule)};
      Prng prng{3};
      std::map<std::uint32_t, Instant> last;  // CNPs by scope
      const auto key_of = [&](const NpFlow& f) {
        switch (scope) {
          case NpScope::QP:
            return f.qpn.value();
          case NpScope::SOURCE_IP:
            return std::uint32_t{f.source.bytes[15]};
          case NpScope::IP_PAIR:
            return f.source.bytes[15] * 256u + f.destination.bytes[15];
          default:
            return 0u;
        }
      };
      std::uint64_t sent = 0;
      const auto cnp = [&](Instant now, const NpFlow& f) {
        const std::uint32_t key = key_of(f);
        if (last.contains(key)) REQUIRE(now - last[key] >= Duration::microseconds(50));
        last[key] = now;
        ++sent;
      };
      Instant now{};
      for (int i = 0; i < 20'000; ++i) {
        now = now + Duration::nanoseconds(prng.below(10'000));
        NpFlow due;
        while (np.next_deadline() <= now) {
          const Instant end = np.next_deadline();
          while (np.take_due(end, due)) cnp(end, due);
        }
        const std::uint32_t qp = prng.below(20);
        const NpFlow f =
            flow(qp, static_cast<std::uint8_t>(qp % 4), static_cast<std::uint8_t>(qp % 3));
        if (np.on_marked(now, f)) cnp(now, f);
        // Gate: a mark outside every interval must have brought one.
        REQUIRE(now - last[key_of(f)] < Duration::microseconds(50));
      }
      NpFlow due;
      while (np.take_due(now + Duration::seconds(1), due)) ++sent;
      const NpCounters& counters = np.counters();
      CHECK(counters.cnps_for_marks == sent);
      CHECK(counters.marked == 20'000);
      CHECK(counters.displaced == 0);
      CHECK(counters.marked == counters.cnps_for_marks + counters.suppressed);
    }
  }
}

TEST_CASE("More scopes than remembered cost CNPs too many, never too few, and are counted") {
  for (const NpRule rule : {NpRule::GATE, NpRule::WINDOW}) {
    NpConfig small = config(NpScope::QP, rule);
    small.max_keys = 64;
    NotificationPoint np{small};
    Prng prng{5};
    std::map<std::uint32_t, Instant> last;
    Instant now{};
    NpFlow due;
    for (int i = 0; i < 20'000; ++i) {
      now = now + Duration::nanoseconds(50);
      while (np.take_due(now, due)) last[due.qpn.value()] = now;
      const std::uint32_t qpn = prng.below(500);
      if (np.on_marked(now, flow(qpn))) last[qpn] = now;
      if (rule == NpRule::GATE) REQUIRE(now - last[qpn] < Duration::microseconds(50));
    }
    CHECK(np.counters().displaced > 0);
    while (np.take_due(now + Duration::seconds(1), due)) {
    }
    CHECK_FALSE(np.take_due(now + Duration::seconds(2), due));
    CHECK(np.next_deadline().is_never());
    CHECK(np.counters().marked == np.counters().cnps_for_marks + np.counters().suppressed);
  }
}

TEST_CASE("A configuration out of range is refused with its knob's name") {
  CHECK(validate(NpConfig{}));
  NpConfig bad;
  bad.cnp_dscp = 64;
  CHECK(validate(bad).error().place == "np_cnp_dscp");
  bad = {};
  bad.cnp_prio = 8;
  CHECK(validate(bad).error().place == "np_cnp_prio");
  bad = {};
  bad.cnp_ecn = 4;
  CHECK_FALSE(validate(bad));
  bad = {};
  bad.max_keys = 0;
  CHECK_FALSE(validate(bad));
  bad = {};
  bad.min_time_between_cnps = Duration::seconds(2);
  CHECK_FALSE(validate(bad));
  CHECK_FALSE(validate(config(NpScope::QP, NpRule::WINDOW, 0)));
}

}  // namespace roce::test
