#include "base/rate.hpp"

#include <catch2/catch.hpp>

namespace roce::test {

TEST_CASE("A rate is read with its unit and refused without") {
  CHECK(Rate::from_string("40Gbps").value() == Rate::gbps(40));
  CHECK(Rate::from_string("2.5 Gbps").value() == Rate::mbps(2500));
  CHECK(Rate::from_string("800bps").value() == Rate::bps(800));
  CHECK(Rate::from_string("1Tbps").value() == Rate::gbps(1000));
  for (const char* text :
       {"", "40", "Gbps", "40G", "40gbps", "-1Gbps", "nanGbps", "1e99Gbps", "40Gbps "})
    CHECK_FALSE(Rate::from_string(text));
}

TEST_CASE("Bytes and time convert by the rate") {
  CHECK(Rate::gbps(8).bytes_in(Duration::microseconds(1)) == 1000);
  CHECK(Rate::gbps(8).ns_for(1000) == 1000);
  CHECK(Rate::unlimited().ns_for(1000) == 0);
  CHECK(Rate::unlimited() > Rate::gbps(1e6));
  CHECK(Rate::unlimited().is_unlimited());
}

}  // namespace roce::test
