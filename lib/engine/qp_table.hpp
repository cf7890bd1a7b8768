// QpTable: the QPs of one worker by number. Finding one is an array access.
//
// QPN: bits 16 to 19 are the worker's index, the low bits the slot, as many as max_qps needs; all
// others count how often the slot was used. With 1024 slots a number comes back after its slot has
// had 960 others, with 65,536 after 15.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "base/ring.hpp"
#include "transport/qp.hpp"

namespace roce::engine {

class QpTable {
 public:
  static constexpr std::uint32_t kMostQps = 65536;

  /// worker: 0..15. max_qps: 1..kMostQps. seed: first generation of each slot.
  QpTable(std::uint8_t worker, std::uint32_t max_qps, std::uint64_t seed);

  [[nodiscard]] Result<Qpn> create(const verbs::QpInitAttributes& init,
                                   transport::Environment environment);
  /// Nothing when there is no such QP; otherwise its slot is free for a later one.
  void destroy(Qpn qpn);

  /// The slot that a QPN names; may be free or another QP's.
  [[nodiscard]] std::uint32_t slot_of(Qpn qpn) const { return qpn.value() & slot_mask_; }
  [[nodiscard]] transport::Qp* find(Qpn qpn) {
    const std::uint32_t slot = slot_of(qpn);
    return slot < entries_.size() && entries_[slot].qpn == qpn ? at(slot) : nullptr;
  }
  /// The QP in a slot; null when the slot is free.
  [[nodiscard]] transport::Qp* at(std::uint32_t slot) {
    std::optional<transport::Qp>& qp = entries_[slot].qp;
    return qp ? &*qp : nullptr;
  }

 private:
  struct Entry {
    std::optional<transport::Qp> qp;
    Qpn qpn;                       ///< 0, which no QP has, when the slot is free
    std::uint32_t generation = 0;  ///< of the next QP
  };

  [[nodiscard]] Qpn number(std::uint32_t slot, std::uint32_t generation) const;

  std::vector<Entry> entries_;
  Ring<std::uint32_t> free_;  ///< the slot freed longest ago is taken first
  unsigned slot_bits_;
  std::uint32_t slot_mask_;
  std::uint32_t generations_;
  std::uint8_t worker_;
};

}  // namespace roce::engine
