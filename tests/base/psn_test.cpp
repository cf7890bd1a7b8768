#include <catch2/catch.hpp>

#include "base/types.hpp"

using roce::before;
using roce::distance;
using roce::Psn;

TEST_CASE("PSNs compare in serial arithmetic across the wrap", "[base][psn]") {
  CHECK(distance(Psn{0}, Psn{0xffffff}) == 1);
  CHECK(distance(Psn{0xffffff}, Psn{0}) == -1);
  CHECK(before(Psn{0xfffffe}, Psn{1}));
  CHECK_FALSE(before(Psn{1}, Psn{0xfffffe}));
}

TEST_CASE("a PSN half the space away counts as older", "[base][psn]") {
  CHECK(distance(Psn{0x800000}, Psn{0}) == -(1 << 23));
  CHECK(distance(Psn{0x7fffff}, Psn{0}) == (1 << 23) - 1);
}

TEST_CASE("PSN addition keeps 24 bits", "[base][psn]") {
  CHECK((Psn{0xffffff} + 2).value() == 1);
  CHECK((Psn{1} - 2).value() == 0xffffff);
}
