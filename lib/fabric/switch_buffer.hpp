// SwitchBuffer: who may still store how much in a switch. Lossless classes are accounted where they
// came in (ingress port and priority), lossy ones where they go out. Owned by a switch.
//
// A lossless frame is charged to the shared pool while its class is below the threshold there, else
// to the class's headroom, which nobody else may use; while any of it is used the class is in XOFF.
// What leaves frees the headroom first.
#pragma once

#include <cstdint>

#include "fabric/switch_config.hpp"

namespace roce::fabric {

/// Of one ingress port and lossless priority.
struct IngressClass {
  std::uint32_t shared = 0;    ///< bytes in the shared pool
  std::uint32_t headroom = 0;  ///< bytes in its headroom
};

enum class Admission : std::uint8_t { SHARED, HEADROOM, REFUSED };

class SwitchBuffer {
 public:
  SwitchBuffer() = default;
  /// pool: total without all headroom. headroom limits come with each call: they differ by port.
  SwitchBuffer(const BufferConfig& config, std::uint64_t pool) : config_(config), pool_(pool) {}

  [[nodiscard]] Admission admit_lossless(IngressClass& in, std::uint32_t bytes,
                                         std::uint32_t headroom_limit) {
    // Once in XOFF, all goes to the headroom until the class is through with it: frames keep their
    // order of release and the threshold is not crossed twice.
    if (in.headroom == 0 && in.shared + bytes <= limit(config_.lossless) &&
        used_ + bytes <= pool_) {
      in.shared += bytes;
      used_ += bytes;
      return Admission::SHARED;
    }
    if (in.headroom + bytes > headroom_limit) return Admission::REFUSED;
    in.headroom += bytes;
    return Admission::HEADROOM;
  }
  void release_lossless(IngressClass& in, std::uint32_t bytes) {
    const std::uint32_t from_headroom = bytes < in.headroom ? bytes : in.headroom;
    in.headroom -= from_headroom;
    in.shared -= bytes - from_headroom;
    used_ -= bytes - from_headroom;
  }
  /// Whether a class in XOFF has fallen far enough.
  [[nodiscard]] bool may_resume(const IngressClass& in, std::uint64_t offset) const {
    if (in.headroom != 0) return false;
    const std::uint64_t most = limit(config_.lossless);
    return in.shared + offset <= most || in.shared == 0;
  }

  [[nodiscard]] bool admit_lossy(std::uint64_t queued, std::uint64_t bytes) {
    if (queued + bytes > limit(config_.lossy) || used_ + bytes > pool_) return false;
    used_ += bytes;
    return true;
  }
  void release_lossy(std::uint64_t bytes) { used_ -= bytes; }

  [[nodiscard]] std::uint64_t pool() const { return pool_; }
  [[nodiscard]] std::uint64_t used() const { return used_; }
  [[nodiscard]] CellSize cell() const { return config_.cell; }

 private:
  [[nodiscard]] std::uint64_t limit(const Threshold& threshold) const {
    if (threshold.bytes) return *threshold.bytes;
    return static_cast<std::uint64_t>(threshold.alpha * static_cast<double>(pool_ - used_));
  }

  BufferConfig config_{};
  std::uint64_t pool_ = 0;
  std::uint64_t used_ = 0;  ///< of the pool
};

}  // namespace roce::fabric
