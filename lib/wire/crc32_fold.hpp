// Folding a CRC-32 with carry-less multiplication: what crc32_folding.cpp and crc32_wide.cpp share.
//
// Bytes stand for a polynomial over GF(2), the first byte's lowest bit for the highest power. A
// register X of 128 bits that stands b bits before the end of the message is worth X * x^b, so it
// may be replaced by anything equal to it modulo P: multiplying its halves by x^n mod P moves it n
// bits on, onto the next bytes, where it is added. In this reflected order the product of two
// 64-bit registers A and C is x * A * C, so the constant for n bits is x^(n-1) mod P.
#pragma once

#include <immintrin.h>

#include "wire/crc32.hpp"

#define ROCE_FOLDING __attribute__((target("pclmul,sse4.1")))

namespace roce::wire::fold {

/// x^32 + x^26 + ... + 1, highest power (x^32) left out, in plain order.
inline constexpr std::uint32_t kPolynomial = 0x04c11db7;

template <class T>
constexpr T reflect(T value, unsigned bits) {
  T result = 0;
  for (unsigned i = 0; i < bits; ++i)
    if (value & (T{1} << i)) result |= T{1} << (bits - 1 - i);
  return result;
}

/// The multiplier that moves 64 bits n bits on: x^(n-1) mod P, reflected, in the high half.
constexpr std::int64_t shift_by(unsigned n) {
  std::uint32_t power = 1;
  for (unsigned i = 0; i + 1 < n; ++i)
    power = (power << 1) ^ ((power >> 31) != 0 ? kPolynomial : 0);
  return static_cast<std::int64_t>(std::uint64_t{reflect(power, 32)} << 32);
}

/// floor(x^64 / P), 33 bits, by long division.
constexpr std::uint64_t quotient_of_x64() {
  constexpr std::uint64_t kP = std::uint64_t{1} << 32 | kPolynomial;
  std::uint64_t quotient = 0;
  std::uint64_t rest = 1;  // x^64 is fed in from its highest power on
  for (int power = 64; power >= 0; --power) {
    quotient <<= 1;
    if ((rest >> 32) != 0) {
      quotient |= 1;
      rest ^= kP;
    }
    rest <<= 1;
  }
  return quotient;
}

inline constexpr auto kReflectedP =
    static_cast<std::int64_t>(reflect(std::uint64_t{1} << 32 | kPolynomial, 33));
inline constexpr auto kReflectedQuotient =
    static_cast<std::int64_t>(reflect(quotient_of_x64(), 33));

ROCE_FOLDING inline __m128i load(const void* at) {
  return _mm_loadu_si128(static_cast<const __m128i*>(at));
}

/// Moves x on by some bits and adds next. The low half, which holds the higher powers, has 64 bits
/// further to go.
template <unsigned bits>
ROCE_FOLDING inline __m128i fold(__m128i x, __m128i next) {
  const __m128i k = _mm_set_epi64x(shift_by(bits), shift_by(bits + 64));
  return _mm_xor_si128(
      _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)), next);
}

/// The CRC register of a message that ends with x: x * x^32 mod P, by Barrett's method.
ROCE_FOLDING inline std::uint32_t reduce(__m128i x) {
  const __m128i k = _mm_set_epi64x(shift_by(64), shift_by(96));
  // 128 bits to 96: the low half moves by 96 bits, the high half by 32.
  const __m128i y =
      _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_slli_si128(_mm_srli_si128(x, 8), 4));
  // 96 bits to 64.
  const __m128i z = _mm_xor_si128(_mm_clmulepi64_si128(y, k, 0x10), y);
  const auto rest = static_cast<std::uint64_t>(_mm_extract_epi64(z, 1));
  // 64 bits to 32: subtract P times the quotient.
  const __m128i barrett = _mm_set_epi64x(kReflectedP, kReflectedQuotient);
  const __m128i high = _mm_cvtsi64_si128(static_cast<std::int64_t>(rest & 0xffff'ffff));
  const __m128i q = _mm_clmulepi64_si128(high, barrett, 0x00);
  const __m128i q32 = _mm_and_si128(q, _mm_cvtsi64_si128(0xffff'ffff));
  const __m128i product = _mm_clmulepi64_si128(q32, barrett, 0x10);
  return static_cast<std::uint32_t>(
      (rest ^ static_cast<std::uint64_t>(_mm_cvtsi128_si64(product))) >> 32);
}

/// Shuffle controls: 16 bytes read from n on keep the first n bytes of a register and move them to
/// its end, with zeros before them, which a CRC does not see.
alignas(16) inline constexpr std::uint8_t kToTheEnd[32] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15};

/// A message under way: the register, and what is yet to be folded in, a multiple of 16 bytes.
struct State {
  __m128i x;
  const std::byte* at;
  std::size_t left;
};

/// Takes the masked bytes, and as many before the rest that the rest is a multiple of 16.
ROCE_FOLDING inline State begin(std::uint32_t seed, std::span<const std::byte> data,
                                const CrcMask& mask) {
  const std::size_t first = ((data.size() - 1) & 15) + 1;
  const std::uint8_t* ones = mask.bytes.data();
  const __m128i start = _mm_xor_si128(_mm_or_si128(load(data.data()), load(ones)),
                                      _mm_cvtsi32_si128(static_cast<std::int32_t>(~seed)));
  State s{_mm_shuffle_epi8(start, load(kToTheEnd + first)), data.data() + first,
          data.size() - first};
  for (std::size_t offset = first; offset < mask.covered; offset += 16, s.at += 16, s.left -= 16)
    s.x = fold<128>(s.x, _mm_or_si128(load(s.at), load(ones + offset)));
  return s;
}

/// Takes bytes (a multiple of 16, at most s.left), four registers side by side where there are
/// enough, so that their multiplications overlap.
ROCE_FOLDING inline void take(State& s, std::size_t bytes) {
  const std::byte* const end = s.at + bytes;
  s.left -= bytes;
  if (bytes >= 64) {
    __m128i a = fold<128>(s.x, load(s.at));
    __m128i b = load(s.at + 16), c = load(s.at + 32), d = load(s.at + 48);
    for (s.at += 64; end - s.at >= 64; s.at += 64) {
      a = fold<512>(a, load(s.at));
      b = fold<512>(b, load(s.at + 16));
      c = fold<512>(c, load(s.at + 32));
      d = fold<512>(d, load(s.at + 48));
    }
    s.x = fold<128>(fold<128>(fold<128>(a, b), c), d);
  }
  for (; s.at != end; s.at += 16) s.x = fold<128>(s.x, load(s.at));
}

}  // namespace roce::wire::fold
