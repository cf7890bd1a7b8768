// ROCE_CHECK: for our own bugs only. Bad input never reaches it: packets get a verdict and a
// counter, callers get a Result.
#pragma once

namespace roce {

/// Prints the broken condition and its place, then aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace roce

#define ROCE_CHECK(condition)                               \
  do {                                                      \
    if (!(condition)) [[unlikely]]                          \
      ::roce::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
