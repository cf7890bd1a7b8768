#include "base/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace roce {

std::uint64_t Histogram::upper_edge(std::size_t index) {
  const std::size_t octave = index >> kSubBits;
  const std::uint64_t sub = index & ((std::size_t{1} << kSubBits) - 1);
  if (octave == 0) return sub;
  const std::uint64_t base = (std::uint64_t{1} << kSubBits) + sub;
  return (base << (octave - 1)) + ((std::uint64_t{1} << (octave - 1)) - 1);
}

std::uint64_t Histogram::quantile(double share) const {
  if (total_ == 0) return 0;
  const double wanted = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(total_));
  const auto rank = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::clamp(upper_edge(i), min_, max_);
  }
  return max_;
}

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

}  // namespace roce
