// open_port(): from a --port SPEC to a running port with its decorators. Called by apps.
//
// The only header of lib/port that most apps need beside spec.hpp. Links roce_port_dpdk.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/address.hpp"
#include "base/result.hpp"
#include "engine/packet_io.hpp"
#include "port/capture_port.hpp"
#include "port/fault_port.hpp"
#include "port/spec.hpp"

namespace roce::port {

/// What DPDK says goes to stderr, or only into error messages.
enum class DpdkLog : std::uint8_t { QUIET, SHOWN };

struct PortOptions {
  PortSpec spec;
  std::optional<std::uint16_t> mtu;  ///< none: the interface's or device's, else 4200
  std::string capture_file;          ///< empty: none
  std::uint32_t capture_snap_length = 0;
  std::vector<FaultRule> faults;
  std::uint64_t fault_seed = 1;
  std::string eal;  ///< more arguments for EAL, as on a command line; those of the first port count
  DpdkLog dpdk_log = DpdkLog::QUIET;
};

/// A running port, and all that it needs to run.
class OpenPort {
 public:
  OpenPort(OpenPort&&) noexcept;
  OpenPort& operator=(OpenPort&&) noexcept;
  ~OpenPort();

  /// What a worker runs on. Frames pass, from the worker outwards: faults, capture, port.
  [[nodiscard]] engine::PacketIo& io() const;
  /// The other end of `ring` and `wire`, undecorated; null for other kinds.
  [[nodiscard]] engine::PacketIo* peer() const;
  /// What the kernel holds on the interface of `afpacket` and `afxdp`; empty for other kinds. On
  /// `afxdp` they are ours to answer for (io().info().kernel_has_address is false): AF_XDP takes
  /// every frame of the interface's queue 0, and the kernel gets none.
  [[nodiscard]] const std::vector<IpPrefix>& kernel_addresses() const;
  /// Null without faults, without capture.
  [[nodiscard]] const FaultPort* faults() const;
  [[nodiscard]] CapturePort* capture() const;

 private:
  struct Stack;
  explicit OpenPort(std::unique_ptr<Stack> stack);
  friend Result<OpenPort> open_port(const PortOptions& options);
  std::unique_ptr<Stack> stack_;
};

/// Opens a port. Starts EAL when it is the first one that needs it; not thread-safe.
[[nodiscard]] Result<OpenPort> open_port(const PortOptions& options);

/// Opens several ports in order, or none. Prefer it to calls in turn when some are PCI devices: EAL
/// is then told of all of them.
[[nodiscard]] Result<std::vector<OpenPort>> open_ports(const std::vector<PortOptions>& options);

}  // namespace roce::port
