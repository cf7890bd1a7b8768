#include "fabric/frame_pool.hpp"

#include <sys/mman.h>

#include "base/check.hpp"

namespace roce::fabric {
namespace {

std::byte* map(std::size_t bytes) {
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ROCE_CHECK(base != MAP_FAILED);
  // Where the kernel grants them: frames lie far apart, and a TLB miss each costs more than a hop.
  (void)::madvise(base, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(base);
}

}  // namespace

void FramePool::Unmap::operator()(std::byte* base) const {
  ::munmap(base, bytes);
}

FramePool::FramePool(std::uint32_t frames)
    : bytes_(map(frames * kStride), Unmap{frames * kStride}), meta_(frames) {
  free_.reserve(frames);
  for (std::uint32_t i = frames; i > 0; --i) free_.push_back(i - 1);
}

}  // namespace roce::fabric
