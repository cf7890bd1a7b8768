// The bulk of long packets, 4 x 512 bits at a time, read where it stands or copied on the way.
#include <cstring>

#include "wire/crc32_fold.hpp"

#ifndef __clang__
// The "undefined" operands in g++ 12's own intrinsics (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define ROCE_WIDE \
  __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,vpclmulqdq,pclmul,sse4.1")))

namespace roce::wire {
namespace {

constexpr std::size_t kBlock = 256;

enum class Copy : std::uint8_t { NO, YES };

/// fold::fold for four registers of 128 bits.
template <unsigned bits>
ROCE_WIDE inline __m512i fold_wide(__m512i x, __m512i next) {
  const __m512i k =
      _mm512_broadcast_i64x2(_mm_set_epi64x(fold::shift_by(bits), fold::shift_by(bits + 64)));
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
                                   _mm512_clmulepi64_epi128(x, k, 0x11), next, kXorOfThree);
}

/// to: what is read goes to to + offset as well; not looked at without Copy::YES.
template <Copy copy>
ROCE_WIDE inline __m512i load_wide(const std::byte* from, std::byte* to, std::size_t offset) {
  const __m512i value = _mm512_loadu_si512(from + offset);
  if constexpr (copy == Copy::YES) _mm512_storeu_si512(to + offset, value);
  return value;
}

/// Folds bytes (a multiple of kBlock, not 0) behind x; copies them to `to` on the way.
template <Copy copy>
ROCE_WIDE inline __m128i fold_blocks(__m128i x, const std::byte* from, std::size_t bytes,
                                     std::byte* to) {
  // What came before is added to the first 128 bits.
  __m512i a = _mm512_xor_si512(load_wide<copy>(from, to, 0),
                               _mm512_zextsi128_si512(fold::fold<128>(x, _mm_setzero_si128())));
  __m512i b = load_wide<copy>(from, to, 64);
  __m512i c = load_wide<copy>(from, to, 128);
  __m512i d = load_wide<copy>(from, to, 192);
  for (std::size_t i = kBlock; i < bytes; i += kBlock) {
    a = fold_wide<2048>(a, load_wide<copy>(from, to, i));
    b = fold_wide<2048>(b, load_wide<copy>(from, to, i + 64));
    c = fold_wide<2048>(c, load_wide<copy>(from, to, i + 128));
    d = fold_wide<2048>(d, load_wide<copy>(from, to, i + 192));
  }
  const __m512i all = fold_wide<512>(fold_wide<512>(fold_wide<512>(a, b), c), d);
  __m128i sum = _mm512_castsi512_si128(all);
  sum = fold::fold<128>(sum, _mm512_extracti64x2_epi64(all, 1));
  sum = fold::fold<128>(sum, _mm512_extracti64x2_epi64(all, 2));
  return fold::fold<128>(sum, _mm512_extracti64x2_epi64(all, 3));
}

}  // namespace

ROCE_WIDE std::uint32_t masked_crc_wide(std::uint32_t seed, std::span<const std::byte> data,
                                        const CrcMask& mask) {
  fold::State s = fold::begin(seed, data, mask);
  const std::size_t blocks = s.left & ~(kBlock - 1);
  fold::take(s, s.left - blocks);
  if (blocks != 0) s.x = fold_blocks<Copy::NO>(s.x, s.at, blocks, nullptr);
  return ~fold::reduce(s.x);
}

ROCE_WIDE std::uint32_t masked_crc_copy_wide(std::uint32_t seed, std::span<std::byte> data,
                                             const CrcMask& mask, std::span<const std::byte> tail) {
  const std::size_t blocks = tail.size() & ~(kBlock - 1);
  const std::size_t before = data.size() - blocks;
  const std::size_t lead = tail.size() - blocks;
  if (lead != 0) std::memcpy(data.data() + before - lead, tail.data(), lead);
  fold::State s = fold::begin(seed, data, mask);
  fold::take(s, s.left - blocks);
  if (blocks != 0)
    s.x = fold_blocks<Copy::YES>(s.x, tail.data() + lead, blocks, data.data() + before);
  return ~fold::reduce(s.x);
}

bool wide_available() {
  return folding_available() && __builtin_cpu_supports("vpclmulqdq") &&
         __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

}  // namespace roce::wire
