#include "engine/qp_table.hpp"

#include <string>

#include "base/check.hpp"
#include "base/prng.hpp"

namespace roce::engine {

QpTable::QpTable(std::uint8_t worker, std::uint32_t max_qps, std::uint64_t seed)
    : entries_(max_qps), free_(max_qps), worker_(worker) {
  ROCE_CHECK(worker < 16 && max_qps >= 1 && max_qps <= kMostQps);
  Prng prng{seed};
  for (std::uint32_t slot = 0; slot < max_qps; ++slot) {
    entries_[slot].generation = static_cast<std::uint8_t>(1 + prng.below(15));
    free_.push(slot);
  }
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
  entry.qpn = Qpn{static_cast<std::uint32_t>(entry.generation) << 20 |
                  static_cast<std::uint32_t>(worker_) << 16 | slot};
  entry.generation = static_cast<std::uint8_t>(entry.generation == 15 ? 1 : entry.generation + 1);
  entry.qp = std::make_unique<transport::Qp>(entry.qpn, init, environment);
  return entry.qpn;
}

void QpTable::destroy(Qpn qpn) {
  if (find(qpn) == nullptr) return;
  const std::uint32_t slot = qpn.value() & kSlotMask;
  entries_[slot].qp.reset();
  entries_[slot].qpn = Qpn{};
  free_.push(slot);
}

}  // namespace roce::engine
