#include <isa-l/crc.h>

#include "wire/crc32_fold.hpp"

namespace roce::wire {
namespace {

/// From here on ISA-L, which takes 256 bits or more at a time, is faster than 4 x 128.
constexpr std::size_t kLong = 512;

}  // namespace

ROCE_FOLDING std::uint32_t masked_crc_folding(std::uint32_t seed, std::span<const std::byte> data,
                                              const CrcMask& mask) {
  fold::State s = fold::begin(seed, data, mask);
  if (s.left >= kLong)
    return crc32_gzip_refl(~fold::reduce(s.x), reinterpret_cast<const unsigned char*>(s.at),
                           s.left);
  fold::take(s, s.left);
  return ~fold::reduce(s.x);
}

bool folding_available() {
  return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

}  // namespace roce::wire
