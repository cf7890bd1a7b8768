#include "support/pair/side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace roce::test {

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {"SEND",      "SEND_IMM", "SEND_INV", "WRITE",
                                         "WRITE_IMM", "READ",     "CMP_SWAP", "FETCH_ADD"};
  return kNames[static_cast<std::size_t>(kind)];
}

Side::Side(Qpn qpn, verbs::QpType type, std::uint64_t va_base, std::size_t arena_bytes,
           std::uint32_t depth)
    : arena(arena_bytes, kGuardByte),
      expected(arena),
      base(va_base),
      memory(256, qpn.value()),
      send_cq(depth + 8),
      recv_cq(depth + 8),
      pd(memory.alloc_pd()) {
  constexpr std::uint8_t kAll = verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE |
                                verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC;
  mr = memory.reg_mr(pd, arena, base, kAll).value();
  verbs::QpInitAttributes init;
  init.type = type;
  init.pd = pd;
  init.send_cq = &send_cq;
  init.recv_cq = &recv_cq;
  init.cap = {depth, depth, 4, 4, 256};
  qp = std::make_unique<transport::Qp>(qpn, init, transport::Environment{memory, counters});
}

std::size_t Side::take(std::size_t n, std::size_t alignment) {
  const std::size_t place = (used_ + alignment - 1) / alignment * alignment;
  used_ = place + n + kGuard;
  if (used_ > arena.size()) throw std::length_error("the test's arena is too small");
  return place;
}

void Side::fill(std::size_t offset, std::size_t n, Prng& prng) {
  for (std::size_t i = 0; i < n; i += 8) {
    const std::uint64_t word = prng();
    for (std::size_t k = i; k < std::min(n, i + 8); ++k)
      arena[offset + k] = expected[offset + k] = static_cast<std::byte>(word >> (8 * (k - i)));
  }
}

std::string Side::compare() const {
  const auto [mine, wanted] = std::mismatch(arena.begin(), arena.end(), expected.begin());
  if (mine == arena.end()) return {};
  return fmt::format("byte {} of the arena is {:02x}, expected {:02x}", mine - arena.begin(),
                     std::to_integer<int>(*mine), std::to_integer<int>(*wanted));
}

}  // namespace roce::test
