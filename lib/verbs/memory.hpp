// MemoryTable: protection domains, memory regions and their keys, and the one check that every
// local and remote access goes through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/ring.hpp"
#include "verbs/enums.hpp"
#include "verbs/work.hpp"

namespace roce::verbs {

/// Protection domain handle.
struct Pd {
  std::uint32_t id = 0;
  friend constexpr bool operator==(Pd, Pd) = default;
};

/// Whether a peer's SEND_WITH_INV may invalidate the region (in verbs only fast-registered regions
/// and type 2 windows allow it).
enum class RemoteInvalidate : std::uint8_t { REFUSE, ALLOW };

/// A registered region as the application sees it. lkey == rkey.
struct MemoryRegion {
  std::uint64_t addr = 0;    ///< VA that peers and SGEs use (the IOVA)
  std::uint64_t length = 0;  ///< bytes
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
};

/// The outcome of a key check: why it failed, or where the bytes are.
struct KeyCheck {
  enum class Outcome : std::uint8_t { OK, BAD_KEY, WRONG_PD, NO_ACCESS, OUT_OF_RANGE };
  Outcome outcome = Outcome::BAD_KEY;
  std::byte* host = nullptr;  ///< set when outcome is OK
  [[nodiscard]] bool ok() const { return outcome == Outcome::OK; }
};

class MemoryTable {
 public:
  /// capacity: most regions at a time (up to 2^24). seed: makes keys hard to guess and repeatable.
  explicit MemoryTable(std::size_t capacity, std::uint64_t seed = 1);

  [[nodiscard]] Pd alloc_pd();

  /// Registers memory for access (AccessFlags; REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE).
  /// iova: the VA of its first byte as peers will name it. memory must outlive the region.
  /// Fails when the table is full, memory is empty, [iova, iova + size) wraps, or access is wrong.
  [[nodiscard]] Result<MemoryRegion> reg_mr(Pd pd, std::span<std::byte> memory, std::uint64_t iova,
                                            std::uint8_t access,
                                            RemoteInvalidate inv = RemoteInvalidate::REFUSE);
  /// Registers memory under its own host address.
  [[nodiscard]] Result<MemoryRegion> reg_mr(Pd pd, std::span<std::byte> memory,
                                            std::uint8_t access);
  /// Forgets the region; its key names nothing for the next 255 regions in its place. Fails on an
  /// unknown key.
  [[nodiscard]] Result<void> dereg_mr(std::uint32_t key);

  /// Checks that key names a valid region of pd which grants all of access (AccessFlags; 0 for a
  /// local read) over [va, va + length). length 0 is checked like any other; transports skip the
  /// call for zero-length RDMA.
  [[nodiscard]] KeyCheck check(std::uint32_t key, Pd pd, std::uint64_t va, std::uint64_t length,
                               std::uint8_t access) const;

  /// SEND_WITH_INV: true when the key named a region of pd that allows it; the key is dead after.
  [[nodiscard]] bool invalidate(std::uint32_t rkey, Pd pd);

 private:
  struct Entry {
    std::byte* host = nullptr;
    std::uint64_t iova = 0;
    std::uint64_t length = 0;
    std::uint32_t key = 0;  ///< of the present or last region here; 0 never names one
    std::uint32_t pd = 0;
    std::uint8_t access = 0;
    bool used = false;   ///< slot is taken (valid or invalidated)
    bool valid = false;  ///< key is alive
    RemoteInvalidate invalidate = RemoteInvalidate::REFUSE;
  };
  [[nodiscard]] const Entry* find(std::uint32_t key) const;

  std::vector<Entry> entries_;  ///< indexed by key >> 8
  Ring<std::uint32_t> free_;    ///< the slot freed longest ago is taken first
  std::uint8_t tag_step_ = 1;   ///< odd; added to the key's low byte for each new owner
  std::uint32_t next_pd_ = 1;
};

}  // namespace roce::verbs
