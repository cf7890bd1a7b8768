#include "verbs/memory.hpp"

#include <algorithm>
#include <limits>

#include "base/prng.hpp"

namespace roce::verbs {

MemoryTable::MemoryTable(std::size_t capacity, std::uint64_t seed)
    : entries_(std::min<std::size_t>(capacity, (1u << 24) - 1) + 1), free_(entries_.size() - 1) {
  Prng prng{seed};
  tag_step_ = static_cast<std::uint8_t>(prng() | 1);
  // Slot 0 stays unused so that small integers are not keys.
  for (std::uint32_t i = 1; i < entries_.size(); ++i) {
    entries_[i].key = i << 8 | (prng.below(256));
    free_.push(i);
  }
}

Pd MemoryTable::alloc_pd() {
  return Pd{next_pd_++};
}

Result<MemoryRegion> MemoryTable::reg_mr(Pd pd, std::span<std::byte> memory, std::uint64_t iova,
                                         std::uint8_t access, RemoteInvalidate inv) {
  if (memory.empty()) return failure("reg_mr", "the memory is empty", "register at least one byte");
  if (memory.size() - 1 > std::numeric_limits<std::uint64_t>::max() - iova)
    return failure("reg_mr", "the address range wraps past 2^64", "choose a lower IOVA");
  if ((access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC)) != 0 &&
      (access & ACCESS_LOCAL_WRITE) == 0)
    return failure("reg_mr", "REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE", "add LOCAL_WRITE");
  if (free_.empty())
    return failure("reg_mr",
                   "all " + std::to_string(entries_.size() - 1) + " memory regions are in use",
                   "deregister some or make the table larger");
  const std::uint32_t index = free_.front();
  free_.pop();
  Entry& entry = entries_[index];
  // The step is odd, so a key comes back only after its slot had 255 other owners.
  const std::uint32_t tag = (entry.key + tag_step_) & 0xff;
  entry =
      Entry{memory.data(), iova, memory.size(), index << 8 | tag, pd.id, access, true, true, inv};
  return MemoryRegion{iova, memory.size(), entry.key, entry.key};
}

Result<MemoryRegion> MemoryTable::reg_mr(Pd pd, std::span<std::byte> memory, std::uint8_t access) {
  return reg_mr(pd, memory, reinterpret_cast<std::uintptr_t>(memory.data()), access);
}

Result<void> MemoryTable::dereg_mr(std::uint32_t key) {
  const std::uint32_t index = key >> 8;
  if (index == 0 || index >= entries_.size() || !entries_[index].used || entries_[index].key != key)
    return failure("dereg_mr", "no region has this key", "pass the lkey that reg_mr gave");
  entries_[index].used = entries_[index].valid = false;
  free_.push(index);
  return {};
}

const MemoryTable::Entry* MemoryTable::find(std::uint32_t key) const {
  const std::uint32_t index = key >> 8;
  if (index >= entries_.size()) return nullptr;
  const Entry& entry = entries_[index];
  return entry.valid && entry.key == key ? &entry : nullptr;
}

KeyCheck MemoryTable::check(std::uint32_t key, Pd pd, std::uint64_t va, std::uint64_t length,
                            std::uint8_t access) const {
  using Outcome = KeyCheck::Outcome;
  const Entry* entry = find(key);
  if (entry == nullptr) return {Outcome::BAD_KEY};
  if (entry->pd != pd.id) return {Outcome::WRONG_PD};
  if ((entry->access & access) != access) return {Outcome::NO_ACCESS};
  // Written so that neither va + length nor iova + length is ever formed: both may wrap.
  if (va < entry->iova) return {Outcome::OUT_OF_RANGE};
  const std::uint64_t offset = va - entry->iova;
  if (offset > entry->length || length > entry->length - offset) return {Outcome::OUT_OF_RANGE};
  return {Outcome::OK, entry->host + offset};
}

bool MemoryTable::invalidate(std::uint32_t rkey, Pd pd) {
  const std::uint32_t index = rkey >> 8;
  const Entry* entry = find(rkey);
  if (entry == nullptr || entry->pd != pd.id || entry->invalidate != RemoteInvalidate::ALLOW)
    return false;
  entries_[index].valid = false;
  return true;
}

}  // namespace roce::verbs
