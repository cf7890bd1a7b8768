// NoAllocation: while one lives, each use of operator new on its thread is counted. A turn of a
// worker must not allocate.
#pragma once

#include <cstdint>

namespace roce::test {

class NoAllocation {
 public:
  NoAllocation();
  ~NoAllocation();
  NoAllocation(const NoAllocation&) = delete;
  NoAllocation& operator=(const NoAllocation&) = delete;

  /// Allocations that fell into any guard so far, on this thread.
  [[nodiscard]] static std::uint64_t violations();

 private:
  bool outer_;
};

}  // namespace roce::test
