// EthdevPort: a PacketIo over one DPDK ethdev: one receive and one transmit queue, frames in mbufs
// of one pool. No rte_* shows here.
//
// Owned by open_port(), used by one thread at a time; counters() may be called from any. EAL must
// run before (start_eal()).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/address.hpp"
#include "base/result.hpp"
#include "engine/packet_io.hpp"
#include "port/spec.hpp"

namespace roce::port::dpdk {

/// Who else is behind the device.
enum class Sharing : std::uint8_t {
  ALONE,   ///< all frames are for us; the device is set promiscuous
  KERNEL,  ///< the kernel uses the interface as well: its own frames come back and are dropped
};

struct EthdevConfig {
  std::string name;  ///< PortInfo::name
  PortKind kind = PortKind::VDEV;
  std::string device;                ///< devargs or PCI address, see device_args()
  std::optional<std::uint16_t> mtu;  ///< none: what the device has, 4200 where it has none
  std::optional<MacAddress> mac;     ///< none: the device's
  Sharing sharing = Sharing::ALONE;
};

/// Probes, configures and starts the device.
[[nodiscard]] Result<std::unique_ptr<engine::PacketIo>> open_ethdev(const EthdevConfig& config);

/// Two ethdevs of this process whose rings cross: what one sends the other receives.
[[nodiscard]] Result<
    std::pair<std::unique_ptr<engine::PacketIo>, std::unique_ptr<engine::PacketIo>>>
open_ring_pair(const std::string& name, std::uint16_t mtu);

}  // namespace roce::port::dpdk
