// Nic: the port that a program runs on, opened from its options, and the interface that it
// emulates.
//
// Called by the programs at their start. It reads the system; the worker it feeds does not.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/interface.hpp"
#include "engine/packet_io.hpp"
#include "port/open.hpp"
#include "traffic/perftest/options.hpp"

namespace roce::apps {

/// One end of a port with the interface on it.
struct NicEnd {
  engine::PacketIo* io = nullptr;
  engine::InterfaceConfig interface;
};

class Nic {
 public:
  /// Opens the port of the settings, or `wire` without one. Fails when it cannot be opened, or when
  /// no address is given and the interface has none. family: V6 puts an IPv6 address first, which
  /// is the one that counts as GID.
  [[nodiscard]] static Result<Nic> open(const traffic::perftest::PortSettings& settings,
                                        traffic::perftest::AddressFamily family,
                                        std::uint64_t fault_seed);

  [[nodiscard]] const NicEnd& end() const { return end_; }
  /// The other end of `wire` and `ring`; none for other ports.
  [[nodiscard]] const std::optional<NicEnd>& peer() const { return peer_; }
  [[nodiscard]] const port::OpenPort& port() const { return port_; }
  /// As the user wrote it, or "wire".
  [[nodiscard]] const std::string& spec() const { return spec_; }
  /// Writes out what the capture still holds.
  void flush_capture();

 private:
  Nic(port::OpenPort port, std::string spec) : port_(std::move(port)), spec_(std::move(spec)) {}

  port::OpenPort port_;
  std::string spec_;
  NicEnd end_;
  std::optional<NicEnd> peer_;
};

/// --check: what preflight finds, one a line, and the exit status: 2 when a finding is an error.
struct CheckReport {
  std::string text;
  int status = 0;
};
[[nodiscard]] CheckReport check_port(const traffic::perftest::PortSettings& settings);

}  // namespace roce::apps
