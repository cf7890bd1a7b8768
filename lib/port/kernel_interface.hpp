// What the kernel knows about an interface that a port borrows, and how to keep the kernel from
// answering RoCEv2 traffic on it. No DPDK.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/address.hpp"
#include "base/result.hpp"

namespace roce::port {

struct KernelInterface {
  std::string name;
  unsigned index = 0;
  MacAddress mac;
  std::uint32_t mtu = 0;  ///< most bytes of an IP packet
  bool up = false;        ///< administratively up
  bool carrier = false;   ///< and its link runs
  std::vector<IpPrefix> addresses;
};

/// Fails when there is no such interface in this network namespace.
[[nodiscard]] Result<KernelInterface> kernel_interface(const std::string& name);

/// The addresses the kernel holds on an interface, global ones before link-local ones; empty when
/// there are none or no such interface.
[[nodiscard]] std::vector<IpPrefix> kernel_addresses(const std::string& name);

/// Holds UDP port 4791 on one interface, for IPv4 and IPv6, as long as it lives. The kernel sees
/// each frame that an AF_PACKET port receives; without a socket it would answer RoCEv2 with ICMP
/// port unreachable. Nothing is ever queued or read: a filter drops each datagram.
class UdpPortHolder {
 public:
  /// in_use(): another socket (Soft-RoCE in the kernel, another process) has the port. It answers
  /// or swallows the datagrams then, so this is not a failure here; preflight warns of it.
  [[nodiscard]] static Result<UdpPortHolder> hold(const std::string& interface);
  UdpPortHolder(UdpPortHolder&& other) noexcept;
  UdpPortHolder& operator=(UdpPortHolder&& other) noexcept;
  ~UdpPortHolder();

  [[nodiscard]] bool in_use() const { return in_use_; }

 private:
  UdpPortHolder() = default;
  void close();
  std::vector<int> sockets_;
  bool in_use_ = false;
};

}  // namespace roce::port
