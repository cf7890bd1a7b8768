// AllocGuard: while one lives, the thread may not allocate: the QP's calls promise not to. Programs
// that link alloc_guard.cpp abort at a breach.
#pragma once

namespace roce::test {

class AllocGuard {
 public:
  AllocGuard() { ++depth; }
  ~AllocGuard() { --depth; }
  AllocGuard(const AllocGuard&) = delete;
  AllocGuard& operator=(const AllocGuard&) = delete;

  static inline thread_local int depth = 0;
};

/// Lifts the ban for its lifetime.
class AllocPermit {
 public:
  AllocPermit() : saved_(AllocGuard::depth) { AllocGuard::depth = 0; }
  ~AllocPermit() { AllocGuard::depth = saved_; }
  AllocPermit(const AllocPermit&) = delete;
  AllocPermit& operator=(const AllocPermit&) = delete;

 private:
  int saved_;
};

}  // namespace roce::test
