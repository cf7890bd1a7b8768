// Prng: the only source of randomness. Seeded, so that a seed and a configuration fix every run.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace roce {

/// xoshiro256** (Blackman and Vigna, 2018), seeded through SplitMix64.
class Prng {
 public:
  using result_type = std::uint64_t;

  explicit constexpr Prng(std::uint64_t seed) {
    for (auto& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }

  [[nodiscard]] static constexpr std::uint64_t min() { return 0; }
  [[nodiscard]] static constexpr std::uint64_t max() { return ~std::uint64_t{0}; }

  constexpr std::uint64_t operator()() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform in [0, bound); bound > 0. Multiply-shift on 32 bits: the bias is below bound/2^32.
  constexpr std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((*this)() >> 32) * bound >> 32);
  }
  /// Uniform in [0, 1) with 53 bits.
  constexpr double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }
  /// True with the given probability.
  constexpr bool chance(double probability) { return uniform() < probability; }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace roce
