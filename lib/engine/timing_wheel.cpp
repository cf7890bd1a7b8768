#include "engine/timing_wheel.hpp"

#include <algorithm>
#include <bit>

namespace roce::engine {

TimingWheel::TimingWheel(std::uint32_t slots)
    : when_(slots), links_(slots), heads_(kFine + kCoarse, kAbsent), floors_(kFine) {}

void TimingWheel::set(std::uint32_t slot, Instant when, Instant now) {
  if (contains(slot)) remove(slot);
  if (size_ == 0) tick_ = std::max(tick_, tick_of(now));
  when_[slot] = when;
  ++size_;
  insert(slot);
}

/// Links slot into the bucket of its instant. What is late goes where is looked first.
void TimingWheel::insert(std::uint32_t slot) {
  const std::int64_t tick = std::max(tick_, tick_of(when_[slot]));
  const std::int64_t ahead = (tick >> kFineShift) - epoch();
  std::uint32_t bucket = 0;
  if (ahead == 0) {
    bucket = static_cast<std::uint32_t>(tick) & (kFine - 1);
    fine_[bucket / 64] |= 1ull << bucket % 64;
    fine_summary_ |= 1ull << bucket / 64;
    if (heads_[bucket] == kAbsent || when_[slot] < floors_[bucket]) floors_[bucket] = when_[slot];
  } else {
    const std::int64_t target = epoch() + std::min<std::int64_t>(ahead, kCoarse - 1);
    const std::uint32_t coarse = static_cast<std::uint32_t>(target) & (kCoarse - 1);
    coarse_[coarse / 64] |= 1ull << coarse % 64;
    bucket = kFine + coarse;
  }
  const std::uint32_t next = heads_[bucket];
  links_[slot] = {kAbsent, next, bucket};
  if (next != kAbsent) links_[next].previous = slot;
  heads_[bucket] = slot;
}

void TimingWheel::remove(std::uint32_t slot) {
  if (!contains(slot)) return;
  const Link link = links_[slot];
  links_[slot].bucket = kAbsent;
  --size_;
  if (link.next != kAbsent) links_[link.next].previous = link.previous;
  if (link.previous != kAbsent) {
    links_[link.previous].next = link.next;
    return;
  }
  heads_[link.bucket] = link.next;
  if (link.next != kAbsent) return;
  if (link.bucket >= kFine) {
    const std::uint32_t coarse = link.bucket - kFine;
    coarse_[coarse / 64] &= ~(1ull << coarse % 64);
    return;
  }
  const std::uint32_t word = link.bucket / 64;
  fine_[word] &= ~(1ull << link.bucket % 64);
  if (fine_[word] == 0) fine_summary_ &= ~(1ull << word);
}

/// The first fine bucket that holds something, or kAbsent. None does before tick_.
std::uint32_t TimingWheel::first_fine() const {
  static_assert(kFine == 64 * 64, "one word sums up the others");
  if (fine_summary_ == 0) return kAbsent;
  const auto word = static_cast<std::uint32_t>(std::countr_zero(fine_summary_));
  return word * 64 + static_cast<std::uint32_t>(std::countr_zero(fine_[word]));
}

/// The next epoch whose coarse bucket holds something; one must.
std::int64_t TimingWheel::next_epoch() const {
  const auto begin = static_cast<std::uint32_t>(epoch() + 1) & (kCoarse - 1);
  // The word of begin twice: first what is not before it, at last what is.
  for (std::uint32_t i = 0; i <= kCoarse / 64; ++i) {
    const std::uint32_t word = (begin / 64 + i) % (kCoarse / 64);
    std::uint64_t bits = coarse_[word];
    if (i == 0) bits &= ~0ull << begin % 64;
    if (bits == 0) continue;
    const std::uint32_t found = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
    return epoch() + 1 + ((found - begin) & (kCoarse - 1));
  }
  return epoch();
}

/// Goes to an epoch and spreads what waited for it over the fine buckets.
void TimingWheel::enter_epoch(std::int64_t epoch) {
  tick_ = epoch << kFineShift;
  const std::uint32_t coarse = static_cast<std::uint32_t>(epoch) & (kCoarse - 1);
  std::uint32_t slot = heads_[kFine + coarse];
  heads_[kFine + coarse] = kAbsent;
  coarse_[coarse / 64] &= ~(1ull << coarse % 64);
  while (slot != kAbsent) {
    const std::uint32_t next = links_[slot].next;
    insert(slot);
    slot = next;
  }
}

bool TimingWheel::take_due(Instant now, std::uint32_t& slot) {
  const std::int64_t target = tick_of(now);
  while (size_ > 0) {
    if (const std::uint32_t bucket = first_fine(); bucket != kAbsent) {
      const std::int64_t tick = (epoch() << kFineShift) + bucket;
      if (tick > target) break;
      tick_ = tick;
      return take_from(bucket, now, slot);
    }
    const std::int64_t next = next_epoch();
    if (next << kFineShift > target) break;
    enter_epoch(next);
  }
  return false;
}

bool TimingWheel::take_from(std::uint32_t bucket, Instant now, std::uint32_t& slot) {
  if (floors_[bucket] > now) return false;
  Instant floor = Instant::never();
  for (std::uint32_t i = heads_[bucket]; i != kAbsent; i = links_[i].next) {
    if (when_[i] <= now) {
      slot = i;
      remove(i);
      return true;
    }
    floor = std::min(floor, when_[i]);
  }
  floors_[bucket] = floor;
  return false;
}

Instant TimingWheel::earliest() const {
  if (size_ == 0) return Instant::never();
  if (const std::uint32_t bucket = first_fine(); bucket != kAbsent) return floors_[bucket];
  return Instant::from_ns(next_epoch() << kFineShift << kTickShift);
}

}  // namespace roce::engine
