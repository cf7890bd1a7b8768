// NoAllocation: while one lives, each use of operator new on its thread is a breach that is
// counted: neither a turn of a worker nor a call to a QP may allocate. Only programs that link
// no_allocation.cpp see breaches; in others it does nothing.
#pragma once

#include <cstdint>

namespace roce::test {

class NoAllocation {
 public:
  NoAllocation() : outer_(forbidden) { forbidden = true; }
  ~NoAllocation() { forbidden = outer_; }
  NoAllocation(const NoAllocation&) = delete;
  NoAllocation& operator=(const NoAllocation&) = delete;

  /// Allocations that fell into any guard so far, on this thread.
  [[nodiscard]] static std::uint64_t violations() { return breaches; }
  /// operator new calls it.
  static void on_allocation() {
    if (forbidden) ++breaches;
  }

 private:
  friend class AllocationAllowed;
  static inline thread_local bool forbidden = false;
  static inline thread_local std::uint64_t breaches = 0;
  bool outer_;
};

/// Lifts the ban for its lifetime.
class AllocationAllowed {
 public:
  AllocationAllowed() : outer_(NoAllocation::forbidden) { NoAllocation::forbidden = false; }
  ~AllocationAllowed() { NoAllocation::forbidden = outer_; }
  AllocationAllowed(const AllocationAllowed&) = delete;
  AllocationAllowed& operator=(const AllocationAllowed&) = delete;

 private:
  bool outer_;
};

}  // namespace roce::test
