// NeighbourTable: what is known of the hosts around, by VLAN and address. Owned by Neighbours; it
// reads no clock and allocates only when made.
//
// Bounded: a new entry displaces the coldest. Hosts that we asked for are hot, hosts that only
// spoke to us are cold, so that a flood of invented ones displaces nothing but itself.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/address.hpp"
#include "base/time.hpp"

namespace roce::engine {

struct Neighbour {
  std::optional<MacAddress> mac;
  Instant learnt;                ///< when mac was last told
  std::optional<Instant> asked;  ///< the last request
  std::uint8_t unanswered = 0;   ///< requests since the last answer
  bool fixed = false;            ///< told by our own side: holds for good
};

/// Where an entry stands in the order of displacement.
enum class Heat : std::uint8_t { HOT, COLD };

class NeighbourTable {
 public:
  /// capacity: at least 1. secret: makes hash collisions hard to provoke.
  NeighbourTable(std::uint32_t capacity, std::uint64_t secret);

  /// Null when unknown. Pointers stay valid until the next insert().
  [[nodiscard]] Neighbour* find(std::uint16_t vid, const IpAddress& ip);
  /// Finds or makes an entry. HOT moves it to the hot end; COLD leaves an old one where it is.
  [[nodiscard]] Neighbour& insert(std::uint16_t vid, const IpAddress& ip, Heat heat);

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t capacity() const {
    return static_cast<std::uint32_t>(entries_.size()) - 1;
  }
  /// Entries that had to go for others.
  [[nodiscard]] std::uint64_t displaced() const { return displaced_; }

 private:
  using Index = std::uint32_t;
  /// Entry 0 is none: it ends chains and is both ends of the order.
  static constexpr Index kNone = 0;

  struct Entry {
    IpAddress ip;
    Neighbour neighbour;
    std::uint16_t vid = 0;
    Index chain = kNone;  ///< next of the same bucket
    Index hotter = kNone, colder = kNone;
  };

  [[nodiscard]] Index& bucket(std::uint16_t vid, const IpAddress& ip);
  [[nodiscard]] Index index_of(std::uint16_t vid, const IpAddress& ip);
  [[nodiscard]] Index take_free();
  void unchain(Index index);
  void unlink(Index index);
  void link(Index index, Heat heat);

  std::vector<Entry> entries_;
  std::vector<Index> buckets_;
  std::uint64_t secret_;
  std::uint32_t size_ = 0;
  std::uint64_t displaced_ = 0;
};

}  // namespace roce::engine
