// TimingWheel: one instant per slot, for many slots whose instants move with almost every packet:
// paced QPs. Setting, moving and removing cost the same few stores, whatever the number of slots.
// Owned by a Pacer; it reads no clock.
//
// Two levels: 4096 buckets of 256 ns, and 1024 buckets that are each as long as all of those
// (1.05 ms), so 1.07 s ahead; what lies further waits in the last bucket. Instants themselves are
// kept exactly: a bucket only says where to look (docs/design/0010-pacing.md).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/time.hpp"

namespace roce::engine {

class TimingWheel {
 public:
  /// slots: slot numbers are below it. Memory is taken here and never again.
  explicit TimingWheel(std::uint32_t slots);

  /// Puts slot at an instant, or moves it there. now never goes back, here and in take_due().
  void set(std::uint32_t slot, Instant when, Instant now);
  /// Forgets slot, if it is there.
  void remove(std::uint32_t slot);
  [[nodiscard]] bool contains(std::uint32_t slot) const { return links_[slot].bucket != kAbsent; }
  [[nodiscard]] std::uint32_t size() const { return size_; }

  /// Whether a slot's instant has come; slot is then that one, and no longer in the wheel.
  [[nodiscard]] bool take_due(Instant now, std::uint32_t& slot);

  /// No later than the earliest instant; never() when there is none. Exact within 256 ns of it.
  [[nodiscard]] Instant earliest() const;

 private:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};
  static constexpr unsigned kTickShift = 8;   // 256 ns
  static constexpr unsigned kFineShift = 12;  // buckets of the fine level
  static constexpr std::uint32_t kFine = 1u << kFineShift;
  static constexpr std::uint32_t kCoarse = 1024;

  struct Link {
    std::uint32_t previous, next;
    std::uint32_t bucket = kAbsent;  ///< below kFine: fine; else coarse
  };

  [[nodiscard]] static std::int64_t tick_of(Instant t) { return t.ns() >> kTickShift; }
  [[nodiscard]] std::int64_t epoch() const { return tick_ >> kFineShift; }
  void insert(std::uint32_t slot);
  [[nodiscard]] std::uint32_t first_fine() const;
  [[nodiscard]] std::int64_t next_epoch() const;
  void enter_epoch(std::int64_t epoch);
  [[nodiscard]] bool take_from(std::uint32_t bucket, Instant now, std::uint32_t& slot);

  std::vector<Instant> when_;                     ///< by slot
  std::vector<Link> links_;                       ///< by slot
  std::vector<std::uint32_t> heads_;              ///< by bucket, fine ones first
  std::vector<Instant> floors_;                   ///< by fine bucket: none in it is earlier
  std::array<std::uint64_t, kFine / 64> fine_{};  ///< a bit per bucket that holds something
  std::uint64_t fine_summary_ = 0;                ///< a bit per word above that is not 0
  std::array<std::uint64_t, kCoarse / 64> coarse_{};
  std::int64_t tick_ = 0;  ///< fine buckets before it are empty
  std::uint32_t size_ = 0;
};

}  // namespace roce::engine
