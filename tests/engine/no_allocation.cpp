#include "engine/no_allocation.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local bool forbidden = false;
thread_local std::uint64_t violation_count = 0;

void* allocate(std::size_t bytes) {
  if (forbidden) ++violation_count;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc{};
}

void* allocate(std::size_t bytes, std::align_val_t alignment) {
  if (forbidden) ++violation_count;
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (bytes + align - 1) / align * align)) return memory;
  throw std::bad_alloc{};
}

}  // namespace

// The array and nothrow forms of the standard library call these.
void* operator new(std::size_t bytes) {
  return allocate(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, alignment);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace roce::test {

NoAllocation::NoAllocation() : outer_(forbidden) {
  forbidden = true;
}
NoAllocation::~NoAllocation() {
  forbidden = outer_;
}
std::uint64_t NoAllocation::violations() {
  return violation_count;
}

}  // namespace roce::test
