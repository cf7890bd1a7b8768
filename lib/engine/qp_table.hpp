// QpTable: the QPs of one worker by number. QPN = generation 4 bits | worker 4 bits | slot 16 bits,
// so that finding one is an array access and a number is not used again until fifteen others had
// its slot.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "base/ring.hpp"
#include "transport/qp.hpp"

namespace roce::engine {

class QpTable {
 public:
  static constexpr std::uint32_t kMostQps = 65536;
  static constexpr std::uint32_t kSlotMask = kMostQps - 1;

  /// worker: 0..15. max_qps: 1..kMostQps. seed: first generation of each slot.
  QpTable(std::uint8_t worker, std::uint32_t max_qps, std::uint64_t seed);

  [[nodiscard]] std::uint32_t slots() const { return static_cast<std::uint32_t>(entries_.size()); }
  [[nodiscard]] Result<Qpn> create(const verbs::QpInitAttributes& init,
                                   transport::Environment environment);
  /// Nothing when there is no such QP; otherwise its slot is free for a later one.
  void destroy(Qpn qpn);

  [[nodiscard]] transport::Qp* find(Qpn qpn) const {
    const std::uint32_t slot = qpn.value() & kSlotMask;
    if (slot >= entries_.size() || entries_[slot].qpn != qpn) return nullptr;
    return entries_[slot].qp.get();
  }
  /// The QP in a slot; null when the slot is free.
  [[nodiscard]] transport::Qp* at(std::uint32_t slot) const { return entries_[slot].qp.get(); }

 private:
  struct Entry {
    std::unique_ptr<transport::Qp> qp;
    Qpn qpn;
    std::uint8_t generation = 0;  ///< of the next QP; never 0, so that no QPN is 0 or 1
  };

  std::vector<Entry> entries_;
  Ring<std::uint32_t> free_;  ///< the slot freed longest ago is taken first
  std::uint8_t worker_;
};

}  // namespace roce::engine
