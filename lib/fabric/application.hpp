// HostApplication: what runs on a host beside its worker: it polls completions and posts work
// requests. Implemented by traffic generators and tests; called by the network.
#pragma once

#include "base/time.hpp"

namespace roce::fabric {

class HostApplication {
 public:
  virtual ~HostApplication() = default;
  /// Called after each turn of the worker. Returns whether it posted or changed anything, so that
  /// the worker is turned once more at the same time.
  virtual bool step(Instant now) = 0;
  /// When it wants to be stepped even though nothing happens.
  [[nodiscard]] virtual Instant next_step() const { return Instant::never(); }
};

}  // namespace roce::fabric
