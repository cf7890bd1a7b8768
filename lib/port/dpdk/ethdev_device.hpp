// EthdevDevice: an ethdev that is configured and started, and its buffers; stops and closes it in
// the end. Private to port/dpdk: the only header with rte_* types.
#pragma once

#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "engine/packet_io.hpp"
#include "port/dpdk/ethdev_port.hpp"

namespace roce::port::dpdk {

class EthdevDevice {
 public:
  /// Takes over the ethdev; start() makes it run.
  explicit EthdevDevice(std::uint16_t port_id) : port_id_(port_id) {}
  EthdevDevice(EthdevDevice&& other) noexcept;
  EthdevDevice& operator=(EthdevDevice&&) = delete;
  ~EthdevDevice();

  [[nodiscard]] Result<void> start(const EthdevConfig& config);

  [[nodiscard]] std::uint16_t port_id() const { return port_id_; }
  [[nodiscard]] rte_mempool* pool() const { return pool_; }
  [[nodiscard]] const engine::PortInfo& info() const { return info_; }
  /// False while a memif client has no server: then no burst function may be called.
  [[nodiscard]] bool running() const { return running_; }
  /// A memif client connects when it starts, and only then: it must start again after a failure.
  [[nodiscard]] bool is_client() const { return is_client_; }
  [[nodiscard]] bool link_is_up() const;
  void restart();

 private:
  [[nodiscard]] Result<void> configure(const EthdevConfig& config);
  [[nodiscard]] Result<void> set_up_queues(const EthdevConfig& config,
                                           const rte_eth_dev_info& about);
  void read_mac(const EthdevConfig& config);

  static constexpr std::uint16_t kNone = 0xffff;
  std::uint16_t port_id_;
  bool running_ = false;
  bool is_client_ = false;
  rte_mempool* pool_ = nullptr;
  engine::PortInfo info_;
};

/// Probes a device; answers its ethdev.
[[nodiscard]] Result<std::uint16_t> probe_device(const EthdevConfig& config);

using RingOwner = std::unique_ptr<rte_ring, decltype(&::rte_ring_free)>;

/// Wraps a started device. rings: what a ring pair keeps alive with it; else empty.
[[nodiscard]] std::unique_ptr<engine::PacketIo> make_ethdev_port(
    EthdevDevice device, Sharing sharing, std::shared_ptr<std::array<RingOwner, 2>> rings);

}  // namespace roce::port::dpdk
