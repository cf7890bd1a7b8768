// The reaction point against the reference model, and against numbers worked out by hand.
#include "congestion/reaction_point.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/prng.hpp"
#include "congestion/model.hpp"

namespace roce::test {
namespace {

using congestion::DcqcnConfig;
using congestion::ReactionPoint;
using congestion::RpConfig;
using congestion::RpEvent;
using congestion::RpEventKind;

Instant at_us(std::int64_t us) {
  return Instant::from_ns(us * 1000);
}

DcqcnConfig preset(std::string_view name, double gbps = 40) {
  return congestion::make_preset(name, Rate::gbps(gbps)).value();
}

/// Rc in Mb/s to the thousandth, as the tables print it.
std::string rc_at(ReactionPoint& rp, std::int64_t us) {
  return fmt::format("{:.3f}", rp.rate(at_us(us)).mbps());
}

std::vector<std::string> rates(const RpConfig& config, double gbps,
                               const std::vector<std::int64_t>& cnps,
                               const std::vector<std::int64_t>& when) {
  ReactionPoint rp{config, Rate::gbps(gbps)};
  std::vector<std::string> text;
  std::size_t next = 0;
  for (const std::int64_t us : when) {
    while (next < cnps.size() && cnps[next] <= us) rp.on_cnp(at_us(cnps[next++]));
    text.push_back(rc_at(rp, us));
  }
  return text;
}

using Rates = std::vector<std::string>;

congestion::RpObserver into(std::vector<RpEvent>& events) {
  return {[](void* context, const RpEvent& event) {
            static_cast<std::vector<RpEvent>*>(context)->push_back(event);
          },
          &events};
}

}  // namespace

TEST_CASE("paper: one CNP halves the rate, five steps of fast recovery follow") {
  CHECK(rates(preset("paper"), 40, {0}, {0, 54, 55, 110, 165, 220, 275, 330, 385, 440, 495, 550}) ==
        Rates{"20000.000", "20000.000", "30000.000", "35000.000", "37500.000", "38750.000",
              "39375.000", "39687.500", "39843.750", "39921.875", "39960.938", "39980.469"});
}

TEST_CASE("paper: CNPs every 50 us halve the rate each time, then it creeps up by R_AI") {
  std::vector<std::int64_t> cnps;
  for (std::int64_t i = 0; i < 10; ++i) cnps.push_back(50 * i);
  CHECK(rates(preset("paper"), 40, cnps, {0, 50, 100, 200, 450, 505, 560, 725, 780, 835, 1000}) ==
        Rates{"20000.000", "10000.000", "5000.000", "1250.000", "39.062", "58.594", "68.359",
              "76.904", "97.515", "127.820", "239.337"});
}

TEST_CASE("paper: a second CNP pulls Rt down to where Rc was") {
  CHECK(rates(preset("paper"), 40, {0, 300}, {299, 300, 355, 410, 465, 520, 575, 630}) ==
        Rates{"39375.000", "20069.029", "29722.015", "34548.507", "36961.754", "38168.377",
              "38771.688", "39093.344"});
}

TEST_CASE("nvidia: a CNP cuts at the end of its monitor period and recovers by the timer") {
  CHECK(rates(preset("nvidia", 100), 100, {0}, {0, 3, 4, 303, 304, 604, 904, 1204, 1504, 2404}) ==
        Rates{"100000.000", "100000.000", "51025.391", "51025.391", "75512.695", "87756.348",
              "93878.174", "96939.087", "98469.543", "99808.693"});
}

TEST_CASE("nvidia: CNPs every 50 us leave Rt at the line rate") {
  std::vector<std::int64_t> cnps;
  for (std::int64_t i = 0; i < 10; ++i) cnps.push_back(50 * i);
  CHECK(rates(preset("nvidia", 100), 100, cnps,
              {4, 52, 104, 152, 204, 252, 304, 352, 404, 452, 752}) ==
        Rates{"51025.391", "31616.807", "22570.201", "17643.990", "14757.888", "12999.624",
              "11876.122", "11099.071", "10627.577", "10399.250", "55199.625"});
}

TEST_CASE("nvidia: CNPs every 4 us collapse the rate within 80 us") {
  std::vector<std::int64_t> cnps;
  for (std::int64_t i = 0; i < 20; ++i) cnps.push_back(4 * i);
  CHECK(rates(preset("nvidia", 100), 100, cnps, {4, 8, 12, 16, 20, 40, 80}) ==
        Rates{"51025.391", "26409.626", "13862.475", "7377.977", "3980.793", "222.044", "1.622"});
}

TEST_CASE("nvidia: rate_to_set_on_first_cnp takes the place of the first cut") {
  DcqcnConfig config = preset("nvidia", 100);
  REQUIRE(congestion::set_knob(config, "rp_rate_to_set_on_first_cnp", "85000"));
  CHECK(rates(config, 100, {0, 100}, {0, 99, 103, 104, 404, 704, 1004}) ==
        Rates{"85000.000", "85000.000", "85000.000", "60803.223", "72901.611", "78953.306",
              "81981.653"});
}

TEST_CASE("ns3_rdma on the paper's timer: 25 percent cut, four steps, then R_AI") {
  DcqcnConfig config = preset("ns3_rdma");
  REQUIRE(congestion::set_knob(config, "rp_time_reset", "55"));
  CHECK(rates(config, 40, {0}, {0, 55, 110, 165, 220}) ==
        Rates{"29960.938", "34980.469", "37490.234", "38745.117", "39372.559"});
  // Rt has no cap: the fifth step adds 40 Mb/s to it.
  CHECK(rates(config, 40, {0}, {275}) == Rates{"39706.279"});
}

TEST_CASE("ns3_hpcc: the first cut comes a nanosecond late, one additive step, then hyper") {
  std::vector<RpEvent> events;
  ReactionPoint rp{preset("ns3_hpcc", 100), Rate::gbps(100)};
  rp.observe(into(events));
  rp.on_cnp(at_us(0));
  rp.on_sent(at_us(1), 1u << 30);
  rp.settle(at_us(1000));
  REQUIRE(events.size() == 5);
  CHECK(events[1].kind == RpEventKind::CUT);
  CHECK(events[1].at.ns() == 4001);
  CHECK(events[2].kind == RpEventKind::FAST_RECOVERY_TIMER);
  CHECK(events[3].kind == RpEventKind::ADDITIVE_TIMER);
  CHECK(events[4].kind == RpEventKind::HYPER_TIMER);
}

TEST_CASE("ns3_rdma: periods halve within hyper increase, which grows with each event") {
  DcqcnConfig config = preset("ns3_rdma");
  REQUIRE(congestion::set_knob(config, "byte_reset_bytes", "1000000"));
  REQUIRE(congestion::set_knob(config, "rt_eighths", "0"));
  std::vector<RpEvent> events;
  ReactionPoint rp{config, Rate::gbps(40)};
  rp.observe(into(events));
  for (std::int64_t i = 0; i < 4; ++i) rp.on_cnp(at_us(i));
  events.clear();
  rp.on_sent(at_us(4), 5'000'000);  // BC 5: fast recovery, then additive
  rp.settle(at_us(3 + 5 * 60));     // T 5: min(T, BC) reaches F
  REQUIRE(rp.snapshot(at_us(303)).t == 5);
  CHECK(events.back().kind == RpEventKind::HYPER_TIMER);
  CHECK(events.back().at == at_us(303));
  const double rt = events.back().rt_mbps;
  rp.on_sent(at_us(304), 1'000'000);  // the period that ran was a whole one
  CHECK(events.back().kind == RpEventKind::HYPER_BYTES);
  CHECK(events.back().rt_mbps == rt + 200);
  rp.on_sent(at_us(305), 500'000);  // the next is half as long
  CHECK(events.back().bc == 7);
  CHECK(rp.snapshot(at_us(362)).t == 5);
  CHECK(rp.snapshot(at_us(363)).t == 6);  // the last whole timer period, from 303
  CHECK(rp.snapshot(at_us(392)).t == 6);
  CHECK(rp.snapshot(at_us(393)).t == 7);
  CHECK(rp.snapshot(at_us(393)).rt.mbps() == rt + 200 + 200 + 400 + 600);
}

TEST_CASE("ns3_rdma: an Rt above ten times Rc goes to an eighth at the first stage") {
  DcqcnConfig config = preset("ns3_rdma");
  REQUIRE(congestion::set_knob(config, "rt_on_cut", "never"));
  std::vector<RpEvent> events;
  ReactionPoint rp{config, Rate::gbps(40)};
  rp.observe(into(events));
  for (std::int64_t i = 0; i < 12; ++i) rp.on_cnp(at_us(i));
  REQUIRE(events.back().rc_mbps < 4000);
  REQUIRE(events.back().rt_mbps == 40'000);
  const double rc = events.back().rc_mbps;
  rp.settle(at_us(11 + 60));
  CHECK(events.back().rt_mbps == 5000);
  CHECK(events.back().rc_mbps == (rc + 5000) / 2);
}

TEST_CASE("Spaced: a CNP within the monitor period raises alpha and leaves the rate alone") {
  const DcqcnConfig config = preset("intel_like");
  std::vector<RpEvent> events;
  ReactionPoint rp{config, Rate::gbps(40)};
  rp.observe(into(events));
  rp.on_cnp(at_us(0));
  CHECK(events.back().kind == RpEventKind::CNP_CUT);
  CHECK(events.back().rc_mbps == 20'000);
  rp.on_cnp(at_us(49));
  CHECK(events.back().kind == RpEventKind::CNP);
  CHECK(events.back().rc_mbps == 20'000);
  rp.on_cnp(at_us(50));
  CHECK(events.back().kind == RpEventKind::CNP_CUT);
  CHECK(events.back().rc_mbps == 10'000);
  CHECK(rp.snapshot(at_us(50)).cuts == 2);
  CHECK(rp.snapshot(at_us(50)).cnps == 3);
  // The CNP at 49 us put off alpha's decay, not the increase timer.
  rp.settle(at_us(105));
  CHECK(events[events.size() - 2].kind == RpEventKind::ALPHA);
  CHECK(events.back().kind == RpEventKind::FAST_RECOVERY_TIMER);
}

TEST_CASE("The tables of the reference model are ours, row by row") {
  for (const auto& recording : recorded("tables"))
    CHECK(difference(recording, replay(recording), 1e-12) == "");
}

TEST_CASE("Random events make the trajectories of the reference model") {
  for (const auto& recording : recorded("random 1 6"))
    CHECK(difference(recording, replay(recording), 1e-9) == "");
}

TEST_CASE("Timers evaluated late give what timers evaluated in time give") {
  for (const std::string_view name : congestion::preset_names()) {
    CAPTURE(name);
    Prng prng{7};
    const Rate line = Rate::gbps(100);
    const DcqcnConfig config = preset(name, 100);
    ReactionPoint lazy{config, line}, eager{config, line};
    Instant now{};
    for (int i = 0; i < 400; ++i) {
      const std::uint32_t most = prng.chance(0.1) ? 20'000'000 : 200'000;
      const Instant next = now + Duration::nanoseconds(prng.below(most));
      for (Instant t = now; t <= next; t = t + Duration::nanoseconds(500)) eager.settle(t);
      now = next;
      if (prng.chance(0.6)) {
        const bool heeded = lazy.on_cnp(now);
        CHECK(heeded == eager.on_cnp(now));
      } else {
        const std::uint32_t bytes = prng.below(1'000'000);
        lazy.on_sent(now, bytes);
        eager.on_sent(now, bytes);
      }
      CHECK(lazy.rate(now).mbps() == Approx(eager.rate(now).mbps()).epsilon(1e-9));
    }
    const auto a = lazy.snapshot(now), b = eager.snapshot(now);
    CHECK(a.rt.mbps() == Approx(b.rt.mbps()).epsilon(1e-9));
    CHECK(a.alpha == Approx(b.alpha).epsilon(1e-9).margin(1e-12));
    CHECK(a.t == b.t);
    CHECK(a.bc == b.bc);
    CHECK(a.cuts == b.cuts);
  }
}

TEST_CASE("The rate changes by itself at next_change and not before") {
  for (const std::string_view name : congestion::preset_names()) {
    CAPTURE(name);
    ReactionPoint rp{preset(name, 100), Rate::gbps(100)};
    CHECK(rp.next_change().is_never());
    rp.on_cnp(at_us(10));
    rp.on_cnp(at_us(12));
    int changes = 0;
    while (!rp.next_change().is_never()) {
      const Instant change = rp.next_change();
      const Rate before = rp.rate(change - Duration::nanoseconds(1));
      CHECK(rp.next_change() == change);
      const Rate after = rp.rate(change);
      CHECK(rp.next_change() > change);
      if (before != after) ++changes;
      REQUIRE(++changes < 200'000);
    }
    CHECK(changes > 5);
    CHECK(rp.rate(at_us(100'000'000)).gbps() == Approx(100).epsilon(1e-9));
  }
}

TEST_CASE("A rate stays within its bounds whatever comes") {
  for (const std::string_view name : congestion::preset_names()) {
    CAPTURE(name);
    Prng prng{11};
    const DcqcnConfig config = preset(name, 25);
    ReactionPoint rp{config, Rate::gbps(25)};
    Instant now{};
    for (int i = 0; i < 20'000; ++i) {
      now = now + Duration::nanoseconds(prng.below(30'000));
      if (prng.chance(0.5)) rp.on_cnp(now);
      rp.on_sent(now, prng.below(100'000));
      const Rate rate = rp.rate(now);
      REQUIRE(rate >= config.min_rate);
      REQUIRE(rate <= Rate::gbps(25));
    }
    CHECK(rp.snapshot(now).cuts > 10);
  }
}

TEST_CASE("No control limits nothing, a fixed rate stays, and both ignore CNPs") {
  ReactionPoint none;
  CHECK(none.rate(at_us(0)).is_unlimited());
  CHECK_FALSE(none.on_cnp(at_us(0)));
  ReactionPoint fixed{congestion::FixedRate{Rate::gbps(3)}, Rate::gbps(40)};
  CHECK_FALSE(fixed.on_cnp(at_us(1)));
  fixed.on_sent(at_us(2), 100'000'000);
  CHECK(fixed.rate(at_us(10'000)) == Rate::gbps(3));
  CHECK(fixed.next_change().is_never());
  CHECK(congestion::name_of(RpConfig{congestion::FixedRate{}}) == "fixed");
  CHECK(congestion::name_of(RpConfig{}) == "none");
  CHECK_FALSE(congestion::validate(congestion::FixedRate{}, Rate::gbps(40)));
}

}  // namespace roce::test
