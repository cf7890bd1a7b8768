#include "transport/queues.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.hpp"
#include "transport/context.hpp"

namespace roce::transport {
namespace {

constexpr std::uint32_t kMostSges = 32;
constexpr std::uint32_t kMostInline = 1024;

std::uint32_t slots_for(std::uint32_t capacity) {
  ROCE_CHECK(capacity <= 1u << 24);
  return std::bit_ceil(std::max(capacity, 1u));
}

/// Calls move(host, position, n) for each stretch of [offset, offset + length) of the list, in
/// order. False when a key check fails or the list ends early.
template <class Move>
bool for_each_stretch(const verbs::MemoryTable& memory, verbs::Pd pd,
                      std::span<const verbs::Sge> list, std::uint64_t offset, std::size_t length,
                      std::uint8_t access, Move move) {
  std::size_t done = 0;
  for (const verbs::Sge& sge : list) {
    if (done == length) break;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const std::size_t n = std::min<std::size_t>(sge.length - offset, length - done);
    const verbs::KeyCheck check = memory.check(sge.lkey, pd, sge.addr + offset, n, access);
    if (!check.ok()) return false;
    move(check.host, done, n);
    done += n;
    offset = 0;
  }
  return done == length;
}

}  // namespace

SendQueue::SendQueue(const verbs::QpCapabilities& cap, verbs::QpType type)
    : capacity_(cap.max_send_wr),
      mask_(slots_for(cap.max_send_wr) - 1),
      max_sges_(std::clamp(cap.max_send_sge, 1u, kMostSges)),
      max_inline_(std::min(cap.max_inline_data, kMostInline)),
      wqes_(std::size_t{mask_} + 1),
      sges_((std::size_t{mask_} + 1) * max_sges_),
      inline_((std::size_t{mask_} + 1) * max_inline_),
      targets_(type == verbs::QpType::UD ? std::size_t{mask_} + 1 : 0) {}

ReceiveQueue::ReceiveQueue(const verbs::QpCapabilities& cap)
    : capacity_(cap.max_recv_wr),
      mask_(slots_for(cap.max_recv_wr) - 1),
      max_sges_(std::clamp(cap.max_recv_sge, 1u, kMostSges)),
      wqes_(std::size_t{mask_} + 1),
      sges_((std::size_t{mask_} + 1) * max_sges_) {}

void ReceiveQueue::push(const verbs::RecvWr& wr) {
  const std::uint32_t slot = tail++ & mask_;
  std::uint64_t length = 0;
  verbs::Sge* to = sges_.data() + std::size_t{slot} * max_sges_;
  for (const verbs::Sge& sge : wr.sg_list) {
    length += sge.length;
    *to++ = sge;
  }
  wqes_[slot] = {wr.wr_id,
                 static_cast<std::uint32_t>(std::min<std::uint64_t>(length, kMostMessageBytes)),
                 static_cast<std::uint32_t>(wr.sg_list.size())};
}

std::optional<std::span<const std::byte>> gather(const verbs::MemoryTable& memory, verbs::Pd pd,
                                                 std::span<const verbs::Sge> list,
                                                 std::uint64_t offset, std::span<std::byte> out) {
  std::span<const std::byte> bytes = out;
  const bool valid = for_each_stretch(memory, pd, list, offset, out.size(), 0,
                                      [&](const std::byte* host, std::size_t at, std::size_t n) {
                                        if (n == out.size())
                                          bytes = {host, n};
                                        else
                                          std::memcpy(out.data() + at, host, n);
                                      });
  if (!valid) return std::nullopt;
  return bytes;
}

bool scatter(const verbs::MemoryTable& memory, verbs::Pd pd, std::span<const verbs::Sge> list,
             std::uint64_t offset, std::span<const std::byte> in) {
  return for_each_stretch(memory, pd, list, offset, in.size(), verbs::ACCESS_LOCAL_WRITE,
                          [&](std::byte* host, std::size_t position, std::size_t n) {
                            std::memcpy(host, in.data() + position, n);
                          });
}

}  // namespace roce::transport
