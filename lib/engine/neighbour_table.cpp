#include "engine/neighbour_table.hpp"

#include <bit>

#include "base/check.hpp"
#include "engine/interfaces.hpp"

namespace roce::engine {

NeighbourTable::NeighbourTable(std::uint32_t capacity, std::uint64_t secret)
    : entries_(std::size_t{capacity} + 1),
      buckets_(std::bit_ceil(capacity), kNone),
      secret_(secret) {
  ROCE_CHECK(capacity >= 1);
}

NeighbourTable::Index& NeighbourTable::bucket(std::uint16_t vid, const IpAddress& ip) {
  return buckets_[(hash_of(ip, secret_) + vid * 0x9e37u) & (buckets_.size() - 1)];
}

NeighbourTable::Index NeighbourTable::index_of(std::uint16_t vid, const IpAddress& ip) {
  Index index = bucket(vid, ip);
  while (index != kNone && (entries_[index].ip != ip || entries_[index].vid != vid))
    index = entries_[index].chain;
  return index;
}

Neighbour* NeighbourTable::find(std::uint16_t vid, const IpAddress& ip) {
  const Index index = index_of(vid, ip);
  return index == kNone ? nullptr : &entries_[index].neighbour;
}

Neighbour& NeighbourTable::insert(std::uint16_t vid, const IpAddress& ip, Heat heat) {
  Index index = index_of(vid, ip);
  if (index != kNone) {
    if (heat == Heat::HOT) {
      unlink(index);
      link(index, heat);
    }
    return entries_[index].neighbour;
  }
  index = take_free();
  Entry& entry = entries_[index];
  entry.ip = ip;
  entry.vid = vid;
  entry.neighbour = {};
  Index& first = bucket(vid, ip);
  entry.chain = first;
  first = index;
  link(index, heat);
  return entry.neighbour;
}

NeighbourTable::Index NeighbourTable::take_free() {
  if (size_ < capacity()) return ++size_;
  ++displaced_;
  const Index coldest = entries_[kNone].hotter;
  unchain(coldest);
  unlink(coldest);
  return coldest;
}

void NeighbourTable::unchain(Index index) {
  Index* at = &bucket(entries_[index].vid, entries_[index].ip);
  while (*at != index) at = &entries_[*at].chain;
  *at = entries_[index].chain;
}

void NeighbourTable::unlink(Index index) {
  const Entry& entry = entries_[index];
  entries_[entry.hotter].colder = entry.colder;
  entries_[entry.colder].hotter = entry.hotter;
}

/// The order is a ring through entry 0: behind it stands the hottest, before it the coldest.
void NeighbourTable::link(Index index, Heat heat) {
  Entry& end = entries_[kNone];
  Entry& entry = entries_[index];
  entry.hotter = heat == Heat::HOT ? kNone : end.hotter;
  entry.colder = heat == Heat::HOT ? end.colder : kNone;
  entries_[entry.hotter].colder = index;
  entries_[entry.colder].hotter = index;
}

}  // namespace roce::engine
