#include "congestion/notification_point.hpp"

#include <bit>
#include <cstring>

namespace roce::congestion {
namespace {

std::uint64_t mix(std::uint64_t hash, const IpAddress& ip) {
  std::uint64_t high = 0, low = 0;
  std::memcpy(&high, ip.bytes.data(), sizeof high);
  std::memcpy(&low, ip.bytes.data() + sizeof high, sizeof low);
  hash = (hash ^ high) * 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 32) ^ low) * 0xbf58476d1ce4e5b9;
  return hash ^ (hash >> 32);
}

}  // namespace

NotificationPoint::NotificationPoint(const NpConfig& config) : config_(config) {
  const std::uint32_t keys = config.enabled && config.scope != NpScope::PORT ? config.max_keys : 1;
  const std::uint32_t sets = std::bit_ceil((keys + kWays - 1) / kWays);
  set_mask_ = sets - 1;
  entries_.resize(std::size_t{sets} * kWays);
}

NotificationPoint::Key NotificationPoint::key_of(const NpFlow& flow) const {
  switch (config_.scope) {
    case NpScope::QP:
      return {flow.qpn, {}, {}};
    case NpScope::SOURCE_IP:
      return {{}, flow.source, {}};
    case NpScope::IP_PAIR:
      return {{}, flow.source, flow.destination};
    default:
      return {};
  }
}

/// The entry of key. When it is new it takes, in its set, a free place or one whose interval is
/// over; else the interval that ends first is cut short.
std::uint32_t NotificationPoint::find_or_take(Instant now, const Key& key) {
  std::uint64_t hash = mix(mix(key.qpn.value(), key.source), key.destination);
  hash *= 0x9e3779b97f4a7c15;
  const std::uint32_t begin = (static_cast<std::uint32_t>(hash >> 40) & set_mask_) * kWays;
  std::uint32_t victim = begin;
  for (std::uint32_t i = begin; i < begin + kWays; ++i) {
    const Entry& entry = entries_[i];
    if (entry.used && entry.key == key) return i;
    const Entry& worst = entries_[victim];
    if (!worst.used) continue;
    if (!entry.used || (worst.pending && !entry.pending) ||
        (worst.pending == entry.pending && entry.ends < worst.ends))
      victim = i;
  }
  Entry& entry = entries_[victim];
  if (entry.used && (entry.pending || entry.ends > now)) ++counters_.displaced;
  if (entry.pending) ++counters_.suppressed;
  if (entry.queued) unlink(victim);
  entry = Entry{};
  entry.key = key;
  entry.used = true;
  entry.ends = now;
  return victim;
}

/// Begins an interval.
void NotificationPoint::open(std::uint32_t index, Instant now) {
  Entry& entry = entries_[index];
  entry.ends = now + config_.min_time_between_cnps;
  ++counters_.cnps_for_marks;
  if (config_.rule == NpRule::GATE) return;
  if (entry.queued) unlink(index);
  entry.queued = true;
  entry.previous = last_;
  entry.next = kNone;
  (last_ == kNone ? first_ : entries_[last_].next) = index;
  last_ = index;
}

void NotificationPoint::unlink(std::uint32_t index) {
  Entry& entry = entries_[index];
  (entry.previous == kNone ? first_ : entries_[entry.previous].next) = entry.next;
  (entry.next == kNone ? last_ : entries_[entry.next].previous) = entry.previous;
  entry.queued = false;
}

bool NotificationPoint::on_marked(Instant now, const NpFlow& flow) {
  ++counters_.marked;
  if (!config_.enabled) {
    ++counters_.suppressed;
    return false;
  }
  const std::uint32_t index = find_or_take(now, key_of(flow));
  Entry& entry = entries_[index];
  // A mark that waits goes first, should the owner be late in asking for it.
  if (now >= entry.ends && !entry.pending) {
    open(index, now);
    return true;
  }
  if (config_.rule == NpRule::WINDOW && !entry.pending)
    entry.pending = true;
  else
    ++counters_.suppressed;
  entry.last = flow;
  return false;
}

bool NotificationPoint::on_nak() {
  if (!config_.enabled || !config_.cnp_on_nak) return false;
  ++counters_.cnps_for_naks;
  return true;
}

Instant NotificationPoint::next_deadline() const {
  return first_ == kNone ? Instant::never() : entries_[first_].ends;
}

bool NotificationPoint::take_due(Instant now, NpFlow& flow) {
  while (first_ != kNone && entries_[first_].ends <= now) {
    const std::uint32_t index = first_;
    Entry& entry = entries_[index];
    if (!entry.pending) {
      unlink(index);
      continue;
    }
    entry.pending = false;
    flow = entry.last;
    open(index, now);
    return true;
  }
  return false;
}

}  // namespace roce::congestion
