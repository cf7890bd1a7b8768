#include "base/prng.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

using roce::Prng;

TEST_CASE("A seed fixes the sequence", "[base][prng]") {
  Prng a{42}, b{42}, other{43};
  int differing = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = a();
    CHECK(value == b());
    differing += value != other() ? 1 : 0;
  }
  CHECK(differing > 990);
  // A copy goes on where the original stood.
  Prng copy = a;
  CHECK(copy() == a());
}

TEST_CASE("The sequence is that of xoshiro256** seeded by SplitMix64", "[base][prng]") {
  // Computed by an independent implementation in Python from the authors' descriptions.
  constexpr std::array<std::uint64_t, 4> kSeed0 = {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a,
                                                   0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c};
  constexpr std::array<std::uint64_t, 4> kSeed42 = {0x15780b2e0c2ec716, 0x6104d9866d113a7e,
                                                    0xae17533239e499a1, 0xecb8ad4703b360a1};
  Prng zero{0}, answer{42};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(zero() == kSeed0[i]);
    CHECK(answer() == kSeed42[i]);
  }
  constexpr std::uint64_t kFirst = [] {
    Prng prng{0};
    return prng();
  }();
  static_assert(kFirst == kSeed0[0]);
}

TEST_CASE("below() stays below its bound and is uniform", "[base][prng]") {
  Prng prng{7};
  for (const std::uint32_t bound : {1u, 2u, 3u, 10u, 1000u, 0x80000001u, 0xffffffffu})
    for (int i = 0; i < 1000; ++i) CHECK(prng.below(bound) < bound);
  std::array<int, 10> counts{};
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) ++counts[prng.below(10)];
  double chi_squared = 0;
  for (const int count : counts) chi_squared += std::pow(count - kDraws / 10, 2) / (kDraws / 10);
  CHECK(chi_squared < 27.9);  // 9 degrees of freedom, p = 0.001; the seed is fixed
}

TEST_CASE("uniform() fills [0, 1) and chance() follows its probability", "[base][prng]") {
  Prng prng{11};
  double sum = 0, least = 1, most = 0;
  int hits = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = prng.uniform();
    sum += u;
    least = std::min(least, u);
    most = std::max(most, u);
    hits += prng.chance(0.1) ? 1 : 0;
    CHECK_FALSE(prng.chance(0.0));
    CHECK(prng.chance(1.0));
  }
  CHECK(least >= 0.0);
  CHECK(most < 1.0);
  CHECK(least < 0.001);
  CHECK(most > 0.999);
  CHECK(sum / kDraws == Approx(0.5).margin(0.005));
  CHECK(hits == Approx(kDraws / 10).margin(400));
}

TEST_CASE("A Prng drives the standard library's distributions", "[base][prng]") {
  Prng prng{5};
  std::uniform_int_distribution<int> die(1, 6);
  for (int i = 0; i < 100; ++i) {
    const int eyes = die(prng);
    CHECK((eyes >= 1 && eyes <= 6));
  }
}
