#include "base/histogram.hpp"

#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/prng.hpp"

using roce::Histogram;
using roce::Prng;

namespace {

/// The value of rank ceil(share * n), at least 1: the definition that quantile() approximates.
std::uint64_t exact_quantile(std::vector<std::uint64_t> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

/// Never below the exact value, and at most 1/64 above it.
bool close_enough(std::uint64_t answer, std::uint64_t exact) {
  return answer >= exact && answer - exact <= exact / 64;
}

/// Spreads a value over all magnitudes.
std::uint64_t spread(std::uint64_t random, unsigned shift) {
  return random >> (shift & 63);
}

}  // namespace

TEST_CASE("An empty histogram answers 0", "[base][histogram]") {
  const auto histogram = std::make_unique<Histogram>();
  CHECK(histogram->count() == 0);
  CHECK(histogram->min() == 0);
  CHECK(histogram->max() == 0);
  CHECK(histogram->mean() == 0.0);
  CHECK(histogram->quantile(0.5) == 0);
}

TEST_CASE("Quantiles lie within 1/64 above those of a sorted vector",
          "[base][histogram][property]") {
  rc::prop("against a sorted vector", [] {
    const auto raw =
        *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<std::uint64_t, unsigned>>>(
            rc::gen::pair(rc::gen::arbitrary<std::uint64_t>(), rc::gen::inRange(0u, 64u))));
    const auto histogram = std::make_unique<Histogram>();
    std::vector<std::uint64_t> values;
    double sum = 0;
    for (const auto& [random, shift] : raw) {
      values.push_back(spread(random, shift));
      histogram->record(values.back());
      sum += static_cast<double>(values.back());
    }
    RC_ASSERT(histogram->count() == values.size());
    RC_ASSERT(histogram->min() == *std::min_element(values.begin(), values.end()));
    RC_ASSERT(histogram->max() == *std::max_element(values.begin(), values.end()));
    RC_ASSERT(std::abs(histogram->mean() - sum / static_cast<double>(values.size())) <= 1e-9 * sum);
    for (const double share : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0})
      RC_ASSERT(close_enough(histogram->quantile(share), exact_quantile(values, share)));
    RC_ASSERT(histogram->quantile(1.0) == histogram->max());
    RC_ASSERT(histogram->quantile(-1.0) == histogram->quantile(0.0));
    RC_ASSERT(histogram->quantile(2.0) == histogram->max());
  });
}

TEST_CASE("Values below 64 and the ends of the range are exact", "[base][histogram]") {
  for (std::uint64_t value = 0; value < 64; ++value) {
    const auto histogram = std::make_unique<Histogram>();
    histogram->record(value);
    histogram->record(1'000'000);
    CHECK(histogram->quantile(0.5) == value);
  }
  for (const std::uint64_t value : {std::uint64_t{64}, std::uint64_t{127}, std::uint64_t{128},
                                    std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    const auto histogram = std::make_unique<Histogram>();
    histogram->record(value);
    CHECK(histogram->quantile(0.5) == value);
    CHECK(histogram->max() == value);
  }
}

TEST_CASE("A merged histogram equals one that saw all values", "[base][histogram]") {
  const auto a = std::make_unique<Histogram>();
  const auto b = std::make_unique<Histogram>();
  const auto all = std::make_unique<Histogram>();
  Prng prng{3};
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = spread(prng(), prng.below(64));
    (i % 3 == 0 ? a : b)->record(value);
    all->record(value);
  }
  a->merge(*b);
  a->merge(*std::make_unique<Histogram>());
  CHECK(a->count() == all->count());
  CHECK(a->min() == all->min());
  CHECK(a->max() == all->max());
  CHECK(a->mean() == Approx(all->mean()));
  for (double share = 0; share <= 1; share += 0.01)
    CHECK(a->quantile(share) == all->quantile(share));
}
