#include "traffic/perftest/plan.hpp"

#include <catch2/catch.hpp>

using namespace roce;
using namespace roce::traffic::perftest;

TEST_CASE("Small messages take turns in a ring of cache lines, large ones stay in place",
          "[plan]") {
  CHECK(ring_offset(0, 1) == 0);
  CHECK(ring_offset(1, 1) == 64);
  CHECK(ring_offset(63, 1) == 4032);
  CHECK(ring_offset(64, 1) == 0);
  CHECK(ring_offset(1, 65) == 128);
  CHECK(ring_offset(31, 65) == 31 * 128);
  CHECK(ring_offset(32, 65) == 0);
  CHECK(ring_offset(1, 2048) == 2048);
  CHECK(ring_offset(2, 2048) == 0);
  CHECK(ring_offset(1, 2049) == 0);
  for (std::uint64_t size = 1; size <= 2048; ++size)
    CHECK(ring_offset(ring_slots(size) - 1, size) + size <= kCycleBuffer);
}

TEST_CASE("Depths and moderation follow the iterations and the size", "[plan]") {
  Plan plan = default_plan(Test::SEND_BW, Role::CLIENT);
  plan.iterations = 10;
  plan.size = 8192;
  adjust(plan, Switch::OFF);
  CHECK(plan.tx_depth == 10);
  CHECK(plan.rx_depth == 10);
  CHECK(plan.cq_mod == 10);
  plan = default_plan(Test::SEND_BW, Role::CLIENT);
  plan.size = 8193;
  adjust(plan, Switch::OFF);
  CHECK(plan.cq_mod == 1);
  plan = default_plan(Test::SEND_BW, Role::CLIENT);
  adjust(plan, Switch::ON);
  CHECK(plan.cq_mod == 100);
  plan.post_list = 16;
  adjust(plan, Switch::OFF);
  CHECK(plan.cq_mod == 16);
  plan.iterations = kMaxPeakIterations + 1;
  plan.peak = Switch::ON;
  adjust(plan, Switch::OFF);
  CHECK(plan.peak == Switch::OFF);
}

TEST_CASE("The path MTU is the largest that fits the port, unless a smaller one is asked for",
          "[plan]") {
  Plan plan = default_plan(Test::SEND_BW, Role::CLIENT);
  REQUIRE(fit_to_port(plan, {}, 1500));
  CHECK(plan.mtu == verbs::Mtu::MTU_1024);
  REQUIRE(fit_to_port(plan, {}, 4200));
  CHECK(plan.mtu == verbs::Mtu::MTU_4096);
  REQUIRE(fit_to_port(plan, verbs::Mtu::MTU_256, 1500));
  CHECK(plan.mtu == verbs::Mtu::MTU_256);
  const auto wrong = fit_to_port(plan, verbs::Mtu::MTU_4096, 1500);
  REQUIRE_FALSE(wrong);
  CHECK_THAT(wrong.error().to_string(), Catch::Contains("-m 1024"));
  CHECK(plan.size == 65536);
  plan.transport = verbs::QpType::UD;
  REQUIRE(fit_to_port(plan, {}, 1500));
  CHECK(plan.size == 1024);
}

TEST_CASE("All sizes are the powers of two", "[plan]") {
  Plan plan = default_plan(Test::WRITE_BW, Role::CLIENT);
  CHECK(sizes_of(plan) == std::vector<std::uint64_t>{65536});
  plan.all_sizes = Switch::ON;
  plan.size = kMaxSize;
  const auto sizes = sizes_of(plan);
  CHECK(sizes.size() == 23);
  CHECK(sizes.front() == 2);
  CHECK(sizes.back() == kMaxSize);
}
