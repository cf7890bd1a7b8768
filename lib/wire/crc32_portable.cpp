#include <cstring>

#include <isa-l/crc.h>

#include "wire/crc32.hpp"

namespace roce::wire {

std::uint32_t masked_crc_portable(std::uint32_t seed, std::span<const std::byte> data,
                                  const CrcMask& mask) {
  unsigned char masked[64];
  std::memcpy(masked, data.data(), mask.covered);
  for (std::size_t i = 0; i < mask.covered; ++i) masked[i] |= mask.bytes[i];
  const std::uint32_t crc = crc32_gzip_refl(seed, masked, mask.covered);
  const auto rest = data.subspan(mask.covered);
  return crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(rest.data()), rest.size());
}

}  // namespace roce::wire
