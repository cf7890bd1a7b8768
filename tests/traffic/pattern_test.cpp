#include "traffic/perftest/pattern.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace roce::traffic::perftest;

namespace {

/// docs/data-validation.md, word for word.
std::uint8_t documented(std::uint32_t seed, std::uint32_t i, std::uint64_t o) {
  return static_cast<std::uint8_t>(o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + i * 17 + seed + 0x5a);
}

}  // namespace

TEST_CASE("The pattern is the documented one at every offset, lane and seed", "[pattern]") {
  for (const std::uint32_t seed : {0U, 7U, 255U}) {
    for (const std::uint32_t lane : {0U, 1U, 300U}) {
      for (const std::uint64_t first : {0ULL, 1ULL, 255ULL, 256ULL, 4095ULL, 65530ULL}) {
        std::vector<std::byte> data(1000);
        fill_pattern(data, seed, lane, first);
        for (std::size_t i = 0; i < data.size(); ++i)
          REQUIRE(std::to_integer<std::uint8_t>(data[i]) == documented(seed, lane, first + i));
        CHECK_FALSE(find_mismatch(data, seed, lane, first));
      }
    }
  }
}

TEST_CASE("One changed byte is found wherever it is", "[pattern]") {
  std::vector<std::byte> data(700);
  fill_pattern(data, 3, 2, 100);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] ^= std::byte{0x10};
    REQUIRE(find_mismatch(data, 3, 2, 100) == i);
    data[i] ^= std::byte{0x10};
  }
}

TEST_CASE("Data that lies a packet, a page or a QP off does not pass", "[pattern]") {
  std::vector<std::byte> data(512);
  fill_pattern(data, 0, 0, 0);
  for (const std::uint64_t shift : {1ULL, 64ULL, 256ULL, 1024ULL, 4096ULL, 65536ULL, 1048576ULL})
    CHECK(find_mismatch(data, 0, 0, shift));
  CHECK(find_mismatch(data, 0, 1, 0));
  CHECK(find_mismatch(data, 1, 0, 0));
}

TEST_CASE("A verdict keeps the first mismatch and says what it is", "[pattern]") {
  Verdict verdict;
  CHECK_THAT(verdict.to_string(), Catch::Contains("nothing to check"));
  verdict.messages = 2;
  verdict.bytes = 20;
  CHECK(verdict.passed());
  CHECK_THAT(verdict.to_string(), Catch::Contains("no mismatch"));
  verdict.add({1, 5, 9, 0x10, 0x11, "byte"});
  verdict.add({2, 6, 8, 0x20, 0x21, "byte"});
  CHECK_FALSE(verdict.passed());
  CHECK_THAT(verdict.to_string(),
             Catch::Contains("2 mismatches") &&
                 Catch::Contains("QP 1, message 5, offset 9: byte is 0x11, expected 0x10"));
}
