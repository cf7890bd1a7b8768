#include "traffic/perftest/meter.hpp"

#include <catch2/catch.hpp>

using namespace roce;
using namespace roce::traffic::perftest;

namespace {

Instant us(std::int64_t n) {
  return Instant::from_ns(n * 1000);
}
constexpr auto kSample = RunClock::Phase::SAMPLE;

}  // namespace

TEST_CASE("Average bandwidth is from the first post to the last completion", "[meter]") {
  Plan plan = default_plan(Test::WRITE_BW, Role::CLIENT);
  plan.size = 1000;
  plan.iterations = 10;
  BandwidthMeter meter(plan);
  meter.posted(us(100), 10);
  meter.completed(us(105), 5, kSample);
  meter.completed(us(120), 5, kSample);
  const BandwidthResult result = meter.result();
  CHECK(result.iterations == 10);
  CHECK(result.elapsed == Duration::microseconds(20));
  CHECK(result.average_bytes_per_s == Approx(500e6));
  CHECK(result.messages_per_s == Approx(0.5e6));
  CHECK(*result.peak_bytes_per_s == Approx(1000e6));  // five messages in the first 5 us
}

TEST_CASE("A receiver's clock starts with the first arrival, which is not counted in the rate",
          "[meter]") {
  Plan plan = default_plan(Test::SEND_BW, Role::SERVER);
  plan.size = 1;
  plan.iterations = 3;
  plan.peak = Switch::OFF;
  BandwidthMeter meter(plan);
  for (int i = 0; i < 3; ++i) meter.completed(us(10 * i), 1, kSample);
  CHECK(meter.result().messages == 3);
  CHECK(meter.result().messages_per_s == Approx(1e5));
  CHECK_FALSE(meter.result().peak_bytes_per_s);
}

TEST_CASE("The peak stays right when there are more instants than are kept", "[meter]") {
  Plan plan = default_plan(Test::WRITE_BW, Role::CLIENT);
  plan.size = 1;
  plan.iterations = 20'000;
  BandwidthMeter meter(plan);
  for (int i = 0; i < 20'000; ++i) {
    meter.posted(us(i), 1);
    meter.completed(us(i + 1), 1, kSample);
  }
  CHECK(*meter.result().peak_bytes_per_s == Approx(1e6).epsilon(0.01));
}

TEST_CASE("A run by duration counts its sample only", "[meter]") {
  Plan plan = default_plan(Test::WRITE_BW, Role::CLIENT);
  plan.until = Until::DURATION;
  plan.duration = Duration::seconds(10);
  plan.margin = Duration::seconds(2);
  plan.size = 100;
  adjust(plan, Switch::OFF);
  RunClock clock(plan);
  BandwidthMeter meter(plan);
  using Phase = RunClock::Phase;
  const auto at = [](int s) { return Instant::from_ns(1'000'000'000LL * (s + 7)); };
  for (const auto& [second, phase] :
       {std::pair{0, Phase::WARM_UP}, std::pair{1, Phase::WARM_UP}, std::pair{2, Phase::SAMPLE},
        std::pair{7, Phase::SAMPLE}, std::pair{8, Phase::COOL_DOWN}, std::pair{10, Phase::OVER}}) {
    REQUIRE(clock.phase(at(second)) == phase);
    meter.completed(at(second), 6, phase);
  }
  CHECK(meter.result().messages == 12);
  CHECK(meter.result().messages_per_s == Approx(2.0));
  CHECK(meter.result().average_bytes_per_s == Approx(200.0));
}

TEST_CASE("A ping-pong's latency is half the time between posts", "[meter]") {
  Plan plan = default_plan(Test::SEND_LAT, Role::CLIENT);
  plan.iterations = 101;
  LatencyMeter meter(plan);
  std::int64_t now = 0;
  meter.posted(us(now), kSample);
  for (int i = 1; i <= 100; ++i) meter.posted(us(now += 2 * i), kSample);
  const LatencyResult result = meter.result();
  CHECK(result.iterations == 100);
  CHECK(result.min_us == Approx(1));
  CHECK(result.max_us == Approx(100));
  CHECK(result.typical_us == Approx(50));
  CHECK(result.average_us == Approx(50.5));
  CHECK(result.stdev_us == Approx(28.866).epsilon(0.001));
  CHECK(result.p99_us == Approx(99));
  CHECK(result.p999_us == Approx(100));
  CHECK(result.samples_us.size() == 100);
  CHECK(result.samples_us.front() == Approx(1));
}

TEST_CASE("A READ's latency is from its post to its completion", "[meter]") {
  Plan plan = default_plan(Test::READ_LAT, Role::CLIENT);
  plan.iterations = 5;
  LatencyMeter meter(plan);
  for (int i = 0; i < 5; ++i) {
    meter.posted(us(100 * i), kSample);
    meter.completed(us(100 * i + 7), kSample);
  }
  CHECK(meter.result().iterations == 5);
  CHECK(meter.result().average_us == Approx(7));
  CHECK(meter.result().max_us == Approx(7));
}
