// System: the facts that preflight judges, read from /sys, /proc and /dev. Private to lib/port.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "port/preflight.hpp"

namespace roce::port {

struct PciDevice {
  std::uint32_t device_class = 0;  ///< 24 bits: 0x020000 is Ethernet
  std::string driver;              ///< empty: none
  std::string iommu_group;         ///< empty: none
  bool group_accessible = false;   ///< /dev/vfio/GROUP may be read and written
  int numa_node = -1;              ///< -1: none
};

struct RdmaDevice {
  std::string name;
  std::string driver;  ///< of the PCI device below it; empty for software (rxe, siw)
};

class System {
 public:
  explicit System(const PreflightRoots& roots) : roots_(roots) {}

  /// bit: as in <linux/capability.h>; looks at the effective set.
  [[nodiscard]] bool has_capability(unsigned bit) const;
  /// Whether some socket of this network namespace is bound to the port, kernel's included.
  [[nodiscard]] bool udp_port_bound(std::uint16_t port) const;
  [[nodiscard]] std::vector<RdmaDevice> rdma_devices(const std::string& interface) const;
  [[nodiscard]] std::optional<PciDevice> pci_device(const std::string& address) const;
  /// Whether this thread may run on a CPU of the node.
  [[nodiscard]] bool runs_on_node(int node) const;
  [[nodiscard]] bool has_device(const std::string& name) const;
  /// Bytes; none when unknown.
  [[nodiscard]] std::optional<std::uint64_t> available_memory() const;
  [[nodiscard]] bool supports_xdp_sockets() const;

 private:
  PreflightRoots roots_;
};

}  // namespace roce::port
