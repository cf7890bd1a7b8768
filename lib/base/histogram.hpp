// Histogram: log-linear counts of latencies; fixed memory, no allocation when recording.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace roce {

/// Counts of unsigned values with a relative error below 1/64 (values under 64 are exact).
class Histogram {
 public:
  static constexpr unsigned kSubBits = 6;

  void record(std::uint64_t value) {
    ++counts_[index_of(value)];
    ++total_;
    sum_ += static_cast<double>(value);
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }

  [[nodiscard]] std::uint64_t count() const { return total_; }
  [[nodiscard]] std::uint64_t min() const { return total_ == 0 ? 0 : min_; }
  [[nodiscard]] std::uint64_t max() const { return max_; }
  [[nodiscard]] double mean() const {
    return total_ == 0 ? 0.0 : sum_ / static_cast<double>(total_);
  }
  /// Smallest recorded bucket at or below which the given share (0..1) of values lies; the
  /// answer is the bucket's upper edge, clamped to the maximum seen. 0 when empty.
  [[nodiscard]] std::uint64_t quantile(double share) const;
  void merge(const Histogram& other);

 private:
  static constexpr std::size_t kBuckets = (64 - kSubBits + 1) << kSubBits;

  [[nodiscard]] static constexpr std::size_t index_of(std::uint64_t value) {
    if (value < (std::uint64_t{1} << kSubBits)) return static_cast<std::size_t>(value);
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - kSubBits - 1;
    const auto sub = (value >> shift) & ((std::uint64_t{1} << kSubBits) - 1);
    return ((static_cast<std::size_t>(shift) + 1) << kSubBits) + static_cast<std::size_t>(sub);
  }
  [[nodiscard]] static std::uint64_t upper_edge(std::size_t index);

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t total_ = 0;
  std::uint64_t min_ = ~std::uint64_t{0};
  std::uint64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace roce
