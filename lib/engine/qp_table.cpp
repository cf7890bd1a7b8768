#include "engine/qp_table.hpp"

#include <bit>
#include <string>

#include "base/check.hpp"
#include "base/prng.hpp"

namespace roce::engine {
namespace {

constexpr unsigned kWorkerShift = 16;
constexpr unsigned kHighShift = 20;

}  // namespace

// The high part of a generation, bits 20 to 23 of the QPN, is never 0, and so no QPN is 0 or 1.
QpTable::QpTable(std::uint8_t worker, std::uint32_t max_qps, std::uint64_t seed)
    : entries_(max_qps),
      free_(max_qps),
      slot_bits_(static_cast<unsigned>(std::bit_width(max_qps - 1))),
      slot_mask_((1u << slot_bits_) - 1),
      generations_(15u << (kWorkerShift - slot_bits_)),
      worker_(worker) {
  ROCE_CHECK(worker < 16 && max_qps >= 1 && max_qps <= kMostQps);
  Prng prng{seed};
  for (std::uint32_t slot = 0; slot < max_qps; ++slot) {
    entries_[slot].generation = prng.below(generations_);
    free_.push(slot);
  }
}

Qpn QpTable::number(std::uint32_t slot, std::uint32_t generation) const {
  const std::uint32_t high = 1 + generation % 15;
  const std::uint32_t low = generation / 15;
  return Qpn{high << kHighShift | static_cast<std::uint32_t>(worker_) << kWorkerShift |
             low << slot_bits_ | slot};
}

Result<Qpn> QpTable::create(const verbs::QpInitAttributes& init,
                            transport::Environment environment) {
  if (init.send_cq == nullptr || init.recv_cq == nullptr)
    return failure("create_qp", "a QP needs a send CQ and a receive CQ", "pass both");
  if (free_.empty())
    return failure("create_qp", "all " + std::to_string(entries_.size()) + " QPs are in use",
                   "destroy some or raise max_qps");
  const std::uint32_t slot = free_.front();
  free_.pop();
  Entry& entry = entries_[slot];
  entry.qpn = number(slot, entry.generation);
  entry.generation = (entry.generation + 1) % generations_;
  entry.qp.emplace(entry.qpn, init, environment);
  return entry.qpn;
}

void QpTable::destroy(Qpn qpn) {
  if (find(qpn) == nullptr) return;
  const std::uint32_t slot = slot_of(qpn);
  entries_[slot].qp.reset();
  entries_[slot].qpn = Qpn{};
  free_.push(slot);
}

}  // namespace roce::engine
