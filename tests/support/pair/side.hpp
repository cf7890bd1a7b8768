// Side: one end of a Pair: a QP with its own memory, CQs and counters, and the work that a test
// posted.
//
// Memory is one arena. Each operation gets places of its own with guard bytes between them, and a
// second arena holds what the first must look like when all is done.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "transport/qp.hpp"

namespace roce::test {

/// What the tests do, by verbs' names; each is one message.
enum class Kind : std::uint8_t {
  SEND,
  SEND_IMM,
  SEND_INV,
  WRITE,
  WRITE_IMM,
  READ,
  CMP_SWAP,
  FETCH_ADD,
};
inline constexpr Kind kKinds[] = {Kind::SEND,      Kind::SEND_IMM, Kind::SEND_INV, Kind::WRITE,
                                  Kind::WRITE_IMM, Kind::READ,     Kind::CMP_SWAP, Kind::FETCH_ADD};
[[nodiscard]] std::string_view name_of(Kind kind);
[[nodiscard]] constexpr bool is_atomic(Kind kind) {
  return kind == Kind::CMP_SWAP || kind == Kind::FETCH_ADD;
}
[[nodiscard]] constexpr bool is_send(Kind kind) {
  return kind == Kind::SEND || kind == Kind::SEND_IMM || kind == Kind::SEND_INV;
}
/// Whether the responder needs a receive WR for it.
[[nodiscard]] constexpr bool takes_receive(Kind kind) {
  return is_send(kind) || kind == Kind::WRITE_IMM;
}

/// One posted message as the test knows it.
struct Op {
  Kind kind{};
  std::uint32_t length = 0;  ///< bytes; 8 for atomics
  std::uint64_t wr_id = 0;
  std::size_t local = 0;   ///< offset in the poster's arena
  std::size_t remote = 0;  ///< offset in the other one's arena
  std::uint64_t remote_va = 0;
  std::uint32_t rkey = 0;
  bool signalled = true;
  bool solicited = false;
  Psn first;  ///< RC, UC: PSN of its first packet
  std::uint32_t packets = 1;
  std::uint64_t expected_original = 0;  ///< atomics
};

struct Receive {
  std::uint64_t wr_id = 0;
  std::size_t place = 0;
  std::uint32_t length = 0;
};

class Side {
 public:
  static constexpr std::size_t kGuard = 16;
  static constexpr std::byte kGuardByte{0xee};

  /// base: VA of the arena's first byte.
  Side(Qpn qpn, verbs::QpType type, std::uint64_t base, std::size_t arena_bytes,
       std::uint32_t depth);

  /// A place for n bytes with guards around it; fails the test when the arena is full.
  [[nodiscard]] std::size_t take(std::size_t n, std::size_t alignment = 1);
  [[nodiscard]] std::span<std::byte> at(std::size_t offset, std::size_t n) {
    return {arena.data() + offset, n};
  }
  [[nodiscard]] std::span<std::byte> expected_at(std::size_t offset, std::size_t n) {
    return {expected.data() + offset, n};
  }
  /// Fills a place and what is expected of it with random bytes.
  void fill(std::size_t offset, std::size_t n, Prng& prng);

  /// Empty, or how the arena differs from what is expected.
  [[nodiscard]] std::string compare() const;

  std::vector<std::byte> arena, expected;
  std::uint64_t base;
  verbs::MemoryTable memory;
  transport::Counters counters;
  verbs::CompletionQueue send_cq, recv_cq;
  verbs::Pd pd;
  verbs::MemoryRegion mr;
  transport::Effects effects;
  std::unique_ptr<transport::Qp> qp;

  std::vector<Op> ops;           ///< posted by this side, in order
  std::deque<Receive> receives;  ///< posted and not yet consumed
  Psn next_psn;                  ///< of the next op
  std::vector<verbs::Wc> sent;   ///< completions of sends, in order
  std::vector<verbs::Wc> received;
  std::vector<Receive> consumed;  ///< the receive of each entry of received
  std::vector<transport::AsyncEvent> events;

 private:
  std::size_t used_ = kGuard;
};

}  // namespace roce::test
