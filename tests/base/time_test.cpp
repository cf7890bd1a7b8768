#include "base/time.hpp"

#include <catch2/catch.hpp>

#include "base/result.hpp"

using roce::Duration;
using roce::Instant;

TEST_CASE("Durations convert between their units", "[base][time]") {
  CHECK(Duration::seconds(2) == Duration::milliseconds(2000));
  CHECK(Duration::milliseconds(2) == Duration::microseconds(2000));
  CHECK(Duration::microseconds(2) == Duration::nanoseconds(2000));
  CHECK(Duration::nanoseconds(1500).us() == 1.5);
  CHECK(Duration::milliseconds(1500).s() == 1.5);
  CHECK(Duration{}.ns() == 0);
  CHECK(Duration::seconds(1) / 3 == Duration::nanoseconds(333'333'333));
  CHECK(Duration::microseconds(3) * 4 == Duration::microseconds(12));
  CHECK(Duration::seconds(1) - Duration::seconds(2) == Duration::seconds(-1));
}

TEST_CASE("Instants and durations calculate as times do", "[base][time]") {
  const Instant start = Instant::from_ns(1000);
  const Instant later = start + Duration::microseconds(5);
  CHECK(later - start == Duration::microseconds(5));
  CHECK(start - later == Duration::microseconds(-5));
  CHECK(later - Duration::microseconds(5) == start);
  CHECK(start < later);
  CHECK(later < Instant::never());
  CHECK(Instant::never().is_never());
  CHECK_FALSE(later.is_never());
}

TEST_CASE("An error prints place, reason and fix, leaving out what is empty", "[base][result]") {
  CHECK(roce::Error{"--mtu", "too large", "use 4096"}.to_string() == "--mtu: too large; use 4096");
  CHECK(roce::Error{"", "too large", ""}.to_string() == "too large");
  CHECK(roce::Error{"", "too large", "use 4096"}.to_string() == "too large; use 4096");
  const roce::Result<int> result = roce::failure("here", "wrong");
  REQUIRE_FALSE(result);
  CHECK(result.error().place == "here");
}
