// MemifServerSocket: keeps clients off a memif server that is still starting.
//
// DPDK's driver listens from the moment its device is probed, and a client that connects before the
// device has queues brings it down. So the driver gets a temporary path, and the socket moves to
// the real one once the device runs.
#pragma once

#include <string>

#include "base/result.hpp"

namespace roce::port::dpdk {

class MemifServerSocket {
 public:
  /// Fails when another server answers on path; removes what a dead one left there.
  [[nodiscard]] static Result<MemifServerSocket> prepare(const std::string& path);
  MemifServerSocket(MemifServerSocket&& other) noexcept;
  MemifServerSocket& operator=(MemifServerSocket&&) = delete;
  ~MemifServerSocket();

  /// Where the driver is to listen.
  [[nodiscard]] std::string temporary_path() const { return path_ + ".new"; }
  /// Lets clients in.
  [[nodiscard]] Result<void> publish();

 private:
  explicit MemifServerSocket(std::string path) : path_(std::move(path)) {}
  std::string path_;
  bool published_ = false;
};

}  // namespace roce::port::dpdk
