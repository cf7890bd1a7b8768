// PortSpec: what a user writes after --port, understood and checked as far as text can be.
//
// Called by apps, preflight and open_port(). It never touches the system: whether the interface
// exists or the driver is bound is preflight's business.
//
//   0000:81:00.0                  a PCI device ("81:00.0" means domain 0000)
//   net_af_packet0,iface=eth0     any DPDK vdev with its devargs
//   afpacket:IFACE                a kernel interface over AF_PACKET
//   afxdp:IFACE                   a kernel interface over AF_XDP
//   tap:NAME                      a new TAP interface
//   memif:SOCKET[,role=server|client][,id=N]
//   pcap:IN,OUT                   read IN, write OUT; one of them may be empty
//   ring                          two ports of this process, joined by DPDK rings
//   null                          transmits into nothing, receives nothing
//   wire                          two ports of this process, joined by memory, without DPDK
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace roce::port {

enum class PortKind : std::uint8_t {
  PCI,
  VDEV,
  AFPACKET,
  AFXDP,
  TAP,
  MEMIF,
  PCAP,
  RING,
  NULL_DEVICE,
  WIRE,
};

enum class MemifRole : std::uint8_t { CLIENT, SERVER };

struct PortSpec {
  std::string text;  ///< as the user wrote it
  PortKind kind = PortKind::NULL_DEVICE;
  std::string target;     ///< PCI address, devargs, interface, TAP name or socket path; else empty
  std::string interface;  ///< kernel interface that the port borrows; empty when it borrows none
  MemifRole memif_role = MemifRole::CLIENT;
  std::uint32_t memif_id = 0;
  std::string pcap_in, pcap_out;

  /// Whether opening it starts DPDK's environment.
  [[nodiscard]] bool needs_eal() const { return kind != PortKind::WIRE; }
};

/// The error names what is wrong and the fix; its place is "--port TEXT".
[[nodiscard]] Result<PortSpec> parse_port_spec(std::string_view text);

/// What the port's DPDK device is called and given: "net_tap3,iface=NAME,…", or the PCI address.
/// Empty for RING and WIRE, which no devargs describe. index: makes the name unique in the process.
/// mtu: most bytes of an IP packet; sizes buffers of the kinds that have their own.
[[nodiscard]] std::string device_args(const PortSpec& spec, unsigned index, std::uint16_t mtu);

/// The specs that exist, one a line, for --help.
[[nodiscard]] std::string_view port_spec_help();

}  // namespace roce::port
