// Both ways to the CRC against one that goes bit by bit, over every length that a packet can have.
#include <memory>

#include "base/prng.hpp"
#include "frames.hpp"
#include "support/skip.hpp"
#include "wire/crc32.hpp"
#include "wire/icrc.hpp"

using namespace roce;
using namespace roce::wire;
using namespace roce::test;

namespace {

/// Bit by bit, as the specification words it.
std::uint32_t plain_crc(std::uint32_t seed, const Bytes& data, const CrcMask& mask) {
  std::uint32_t state = ~seed;
  for (std::size_t i = 0; i < data.size(); ++i) {
    state ^= std::to_integer<std::uint32_t>(data[i]) | (i < mask.covered ? mask.bytes[i] : 0u);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~state;
}

Bytes random_bytes(Prng& prng, std::size_t length) {
  Bytes bytes(length);
  for (auto& byte : bytes) byte = static_cast<std::byte>(prng());
  return bytes;
}

CrcMask random_mask(Prng& prng, std::size_t covered) {
  CrcMask mask;
  mask.covered = covered;
  for (std::size_t i = 0; i < covered; ++i)
    if (prng.chance(0.3)) mask.bytes[i] = static_cast<std::uint8_t>(prng());
  return mask;
}

void check_all_lengths(MaskedCrc crc) {
  Prng prng{1};
  for (std::size_t length = 64; length <= 4200; length += 4) {
    const Bytes data = random_bytes(prng, length);
    const auto seed = static_cast<std::uint32_t>(prng());
    const CrcMask mask = random_mask(prng, 4 * prng.below(17));
    if (crc(seed, data, mask) != plain_crc(seed, data, mask)) FAIL_CHECK("length " << length);
  }
  for (std::size_t length = 16; length <= 64; length += 4)
    for (std::size_t covered = 0; covered <= length; ++covered) {
      const Bytes data = random_bytes(prng, length);
      const CrcMask mask = random_mask(prng, covered);
      if (crc(7, data, mask) != plain_crc(7, data, mask))
        FAIL_CHECK("length " << length << " covered " << covered);
    }
}

}  // namespace

TEST_CASE("The plain CRC is that of zlib", "[wire][icrc]") {
  Bytes nine;
  for (const char digit : std::string_view{"123456789"}) nine.push_back(std::byte(digit));
  CHECK(plain_crc(0, nine, {}) == 0xcbf43926);  // the check value that catalogues of CRCs give
}

TEST_CASE("The CRC by ISA-L equals the plain one for each length", "[wire][icrc]") {
  check_all_lengths(masked_crc_portable);
}

TEST_CASE("The CRC by folding equals the plain one for each length", "[wire][icrc]") {
  if (!folding_available()) return skip("the CPU has no PCLMULQDQ");
  check_all_lengths(masked_crc_folding);
}

TEST_CASE("The CRC by 512-bit folding equals the plain one for each length", "[wire][icrc]") {
  if (!wide_available()) return skip("the CPU has no VPCLMULQDQ with AVX-512");
  check_all_lengths(masked_crc_wide);
}

TEST_CASE("The copying ICRC equals copying first, and copies", "[wire][icrc]") {
  Prng prng{3};
  for (const std::size_t headers : {44u, 56u, 60u, 76u, 88u})
    for (std::size_t length = 0; length <= 4096; length += length < 1100 ? 4 : 252) {
      Bytes first(headers);
      first[0] = headers < 60 ? std::byte{0x45} : std::byte{0x60};
      for (std::size_t i = 1; i < headers; ++i) first[i] = static_cast<std::byte>(prng());
      const Bytes payload = random_bytes(prng, length);
      Bytes whole = first;
      whole.insert(whole.end(), payload.begin(), payload.end());
      Bytes copied = first;
      copied.resize(headers + length, std::byte{0xee});
      const std::uint32_t one = icrc(whole);
      if (icrc_copying(copied, payload) != one || copied != whole)
        FAIL_CHECK("headers " << headers << " payload " << length);
    }
}

TEST_CASE("The CRC reads nothing beyond its bytes", "[wire][icrc]") {
  Prng prng{2};
  for (std::size_t length = 44; length <= 700; length += 4) {
    // Memory of exactly this length, at each alignment, for a sanitizer to watch.
    for (std::size_t offset = 0; offset < 4; ++offset) {
      const std::unique_ptr<std::byte[]> memory{new std::byte[length + offset]()};
      const std::span data{memory.get() + offset, length};
      const CrcMask mask = random_mask(prng, 40);
      const std::uint32_t one = masked_crc_portable(1, data, mask);
      if (folding_available()) CHECK(masked_crc_folding(1, data, mask) == one);
      if (wide_available()) CHECK(masked_crc_wide(1, data, mask) == one);
    }
  }
}
