// AllocGuard: a NoAllocation that aborts at a breach: the QP's calls promise not to allocate.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "support/no_allocation.hpp"

namespace roce::test {

class AllocGuard {
 public:
  AllocGuard() = default;
  ~AllocGuard() {
    if (NoAllocation::violations() == before_) return;
    std::fputs("a QP allocated memory in a call that must not\n", stderr);
    std::abort();
  }
  AllocGuard(const AllocGuard&) = delete;
  AllocGuard& operator=(const AllocGuard&) = delete;

 private:
  std::uint64_t before_ = NoAllocation::violations();
  NoAllocation guard_;
};

}  // namespace roce::test
