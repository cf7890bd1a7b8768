#include "support/pair/alloc_guard.hpp"

#include <cstdio>
#include <cstdlib>
#include <new>

// Replaces the global allocation functions of the program.
void* operator new(std::size_t size) {
  if (roce::test::AllocGuard::depth > 0) {
    std::fputs("a QP allocated memory in a call that must not\n", stderr);
    std::abort();
  }
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
