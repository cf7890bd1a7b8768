#include "port/dpdk/ethdev_device.hpp"

#include <fmt/format.h>
#include <link.h>
#include <rte_dev.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <thread>

#include "port/dpdk/eal.hpp"
#include "wire/build.hpp"

namespace roce::port::dpdk {
namespace {

constexpr std::uint16_t kDescriptors = 1024;
/// Beyond what the two queues hold: bursts in work, frames that fault rules hold, caches.
constexpr unsigned kSpareBuffers = 2048;
constexpr unsigned kPoolCache = 256;
constexpr std::uint16_t kVirtualMtu = 4200;  ///< where no device sets a limit: path MTU 4096
/// What an AF_XDP buffer of 4096 bytes holds beside mempool header and padding, mbuf and headroom.
/// The kernel takes another 256 bytes of it for received frames.
constexpr std::uint32_t kXdpRoom = 4096 - 128 - 128 - RTE_PKTMBUF_HEADROOM;
constexpr std::uint16_t kTapMtu = 1500;  ///< the driver refuses frames beyond 1522 bytes
constexpr std::uint32_t kXdpKernelBytes = 256;
constexpr std::uint32_t kL2Bytes = sizeof(wire::EthernetHeader) + sizeof(wire::VlanTag);

std::string place(const EthdevConfig& config) {
  return "--port " + config.name;
}

/// A reason with what DPDK logged of it.
std::string with_log(std::string reason, int error) {
  if (error != 0) reason += fmt::format(" ({})", ::rte_strerror(error < 0 ? -error : error));
  const std::string line = take_logged_lines().first;
  if (!line.empty()) reason += "; DPDK says \"" + line + "\"";
  return reason;
}

/// The file stem of the driver behind a device name: net_af_packet0 -> librte_net_af_packet.
std::string driver_library(const std::string& device) {
  std::string name = device.substr(0, device.find(','));
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.pop_back();
  return "librte_" + name + ".so";
}

bool library_is_loaded(const std::string& name) {
  struct Search {
    const std::string& name;
    bool found;
  } search{name, false};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        s.found = s.found || std::strstr(info->dlpi_name, s.name.c_str()) != nullptr;
        return 0;
      },
      &search);
  return search.found;
}

std::string debian_package(std::string library) {
  library = library.substr(3, library.size() - 6);  // without "lib" and ".so"
  std::replace(library.begin(), library.end(), '_', '-');
  return "lib" + library + "23";
}

std::string fix_for(const EthdevConfig& config) {
  switch (config.kind) {
    case PortKind::PCI:
      return fmt::format("bind it to a DPDK driver: dpdk-devbind.py -b vfio-pci {}", config.device);
    case PortKind::AFPACKET:
      return "run as root (it needs cap_net_raw); does \"ip link\" list the interface?";
    case PortKind::AFXDP:
      return "run as root; the kernel and its driver must support AF_XDP, else use afpacket:";
    case PortKind::TAP:
      return "run as root (it needs cap_net_admin) with /dev/net/tun present";
    case PortKind::MEMIF:
      return "is the folder of the socket writable?";
    case PortKind::PCAP:
      return "is the input a capture file, and the output's folder writable?";
    default:
      return "look at the device arguments; --eal \"--log-level=*:debug\" tells more";
  }
}

/// Value of a numeric device argument, or none.
std::uint32_t device_argument(const std::string& device, std::string_view key, std::uint32_t none) {
  const std::size_t at = device.find(fmt::format(",{}=", key));
  if (at == std::string::npos) return none;
  std::uint32_t value = none;
  std::from_chars(device.data() + at + key.size() + 2, device.data() + device.size(), value);
  return value;
}

/// Data room of an mbuf, headroom included.
std::uint16_t buffer_bytes(const EthdevConfig& config, std::uint16_t mtu) {
  std::uint32_t room =
      std::max<std::uint32_t>(mtu + kL2Bytes, wire::kMaxFrameBytes + sizeof(wire::VlanTag));
  // AF_PACKET's driver wants room for its whole frame slot.
  room = std::max(room, device_argument(config.device, "framesz", 0));
  // AF_XDP's kernel side takes chunks of one page at most: header, headroom and data share it.
  if (config.kind == PortKind::AFXDP) room = kXdpRoom;
  return static_cast<std::uint16_t>(
      RTE_ALIGN_CEIL(room + RTE_PKTMBUF_HEADROOM, RTE_CACHE_LINE_SIZE));
}

bool is_zero(const MacAddress& mac) {
  return mac == MacAddress{};
}

/// Waits for a NIC's link, which takes seconds after a start. Running on without one is no error.
void await_link(std::uint16_t port_id) {
  rte_eth_link link{};
  for (int i = 0; i < 50; ++i) {
    if (::rte_eth_link_get_nowait(port_id, &link) != 0 || link.link_status == RTE_ETH_LINK_UP)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace

Result<std::uint16_t> probe_device(const EthdevConfig& config) {
  const std::string name = config.device.substr(0, config.device.find(','));
  std::uint16_t port = 0;
  // PCI devices known at start are there already.
  if (::rte_eth_dev_get_port_by_name(name.c_str(), &port) == 0) {
    if (config.kind == PortKind::PCI) return port;
    return failure(place(config), fmt::format("device {} is in use in this process", name),
                   "give the device another number");
  }
  (void)take_logged_lines();
  const int error = ::rte_dev_probe(config.device.c_str());
  if (error == 0 && ::rte_eth_dev_get_port_by_name(name.c_str(), &port) == 0) return port;
  const std::string library = driver_library(config.device);
  if (config.kind != PortKind::PCI && !library_is_loaded(library))
    return failure(
        place(config), fmt::format("this DPDK has no driver {}", library),
        fmt::format("apt install {}, or see --port for other kinds", debian_package(library)));
  return failure(place(config), with_log("the device does not open", error), fix_for(config));
}

EthdevDevice::EthdevDevice(EthdevDevice&& other) noexcept
    : port_id_(std::exchange(other.port_id_, kNone)),
      running_(other.running_),
      is_client_(other.is_client_),
      pool_(std::exchange(other.pool_, nullptr)),
      info_(std::move(other.info_)) {}

EthdevDevice::~EthdevDevice() {
  if (port_id_ == kNone) return;
  ::rte_eth_dev_stop(port_id_);
  ::rte_eth_dev_close(port_id_);
  ::rte_mempool_free(pool_);
}

Result<void> EthdevDevice::start(const EthdevConfig& config) {
  is_client_ =
      config.kind == PortKind::MEMIF && config.device.find("role=client") != std::string::npos;
  info_.name = config.name;
  info_.kernel_has_address = config.sharing == Sharing::KERNEL;
  if (auto configured = configure(config); !configured) return configured;
  const int error = ::rte_eth_dev_start(port_id_);
  running_ = error == 0;
  if (error != 0 && !is_client_)
    return failure(place(config), with_log("the device does not start", error), fix_for(config));
  read_mac(config);
  // Endpoints may use MACs that the device does not know; those that cannot filter say ENOTSUP.
  if (config.sharing == Sharing::ALONE) (void)::rte_eth_promiscuous_enable(port_id_);
  if (config.kind == PortKind::PCI) await_link(port_id_);
  return {};
}

bool EthdevDevice::link_is_up() const {
  rte_eth_link link{};
  return ::rte_eth_link_get_nowait(port_id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

void EthdevDevice::restart() {
  if (running_) (void)::rte_eth_dev_stop(port_id_);
  running_ = ::rte_eth_dev_start(port_id_) == 0;
}

Result<void> EthdevDevice::configure(const EthdevConfig& config) {
  rte_eth_dev_info about{};
  if (const int error = ::rte_eth_dev_info_get(port_id_, &about); error != 0)
    return failure(place(config), with_log("the device does not describe itself", error));
  std::uint16_t device_mtu = RTE_ETHER_MTU;
  (void)::rte_eth_dev_get_mtu(port_id_, &device_mtu);

  rte_eth_conf conf{};
  if (config.kind == PortKind::PCI) {
    // configure() would fall back to 1500; a NIC shared with the kernel has its interface's MTU.
    info_.mtu = config.mtu.value_or(device_mtu);
    conf.rxmode.mtu = info_.mtu;
    if (info_.mtu > about.max_mtu)
      return failure(
          place(config),
          fmt::format("the device allows an MTU of {}, not {}", about.max_mtu, info_.mtu),
          fmt::format("give --mtu {} or less", about.max_mtu));
  } else {
    info_.mtu = config.mtu.value_or(config.kind == PortKind::TAP ? kTapMtu : kVirtualMtu);
    if (config.kind == PortKind::TAP && info_.mtu > kTapMtu)
      return failure(place(config),
                     fmt::format("DPDK's TAP driver sends at most {} bytes", kTapMtu),
                     fmt::format("give --mtu {}, or use afpacket: on a veth pair", kTapMtu));
    if (config.kind == PortKind::AFXDP)
      info_.mtu = std::min<std::uint16_t>(info_.mtu, kXdpRoom - kXdpKernelBytes - kL2Bytes);
  }
  // Each buffer comes from one pool and has one owner.
  if ((about.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0)
    conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  if (const int error = ::rte_eth_dev_configure(port_id_, 1, 1, &conf); error != 0)
    return failure(place(config), with_log("the device refuses its configuration", error),
                   fix_for(config));
  if (config.kind == PortKind::TAP) {
    if (const int error = ::rte_eth_dev_set_mtu(port_id_, info_.mtu); error != 0)
      return failure(place(config),
                     with_log(fmt::format("MTU {} cannot be set", info_.mtu), error));
  }
  return set_up_queues(config, about);
}

Result<void> EthdevDevice::set_up_queues(const EthdevConfig& config,
                                         const rte_eth_dev_info& about) {
  std::uint16_t rx = kDescriptors, tx = kDescriptors;
  (void)::rte_eth_dev_adjust_nb_rx_tx_desc(port_id_, &rx, &tx);
  const std::uint16_t data_room = buffer_bytes(config, info_.mtu);
  const int socket = ::rte_eth_dev_socket_id(port_id_);
  pool_ = ::rte_pktmbuf_pool_create(fmt::format("roce_pool_{}", port_id_).c_str(),
                                    rx + tx + kSpareBuffers, kPoolCache, 0, data_room, socket);
  if (pool_ == nullptr)
    return failure(place(config), with_log("there is no memory for its buffers", rte_errno),
                   "allocate hugepages, or give more memory with --eal \"-m 1024\"");
  rte_eth_rxconf rx_conf = about.default_rxconf;
  rte_eth_txconf tx_conf = about.default_txconf;
  rx_conf.offloads = 0;
  tx_conf.offloads = about.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  const auto queue_socket = static_cast<unsigned>(socket);
  int error = ::rte_eth_rx_queue_setup(port_id_, 0, rx, queue_socket, &rx_conf, pool_);
  if (error == 0) error = ::rte_eth_tx_queue_setup(port_id_, 0, tx, queue_socket, &tx_conf);
  if (error != 0)
    return failure(place(config), with_log("its queues cannot be set up", error), fix_for(config));
  return {};
}

void EthdevDevice::read_mac(const EthdevConfig& config) {
  rte_ether_addr address{};
  (void)::rte_eth_macaddr_get(port_id_, &address);
  std::copy(std::begin(address.addr_bytes), std::end(address.addr_bytes), info_.mac.bytes.begin());
  // Ring devices have none: a locally administered one, distinct in this process.
  if (is_zero(info_.mac)) info_.mac = {{0x02, 0x72, 0x6f, 0x63, 0x65, 0}};
  if (config.kind == PortKind::RING) info_.mac.bytes[5] = static_cast<std::uint8_t>(port_id_ + 1);
  // The address of a TAP device is that of the kernel's end; ours must differ.
  if (config.kind == PortKind::TAP) info_.mac.bytes[5] ^= 1;
  if (config.mac) info_.mac = *config.mac;
}

Result<std::pair<std::unique_ptr<engine::PacketIo>, std::unique_ptr<engine::PacketIo>>>
open_ring_pair(const std::string& name, std::uint16_t mtu) {
  static std::atomic<unsigned> next{0};
  const unsigned index = next++;
  auto rings = std::make_shared<std::array<RingOwner, 2>>(std::array<RingOwner, 2>{
      RingOwner(nullptr, ::rte_ring_free), RingOwner(nullptr, ::rte_ring_free)});
  std::array<rte_ring*, 2> raw{};
  for (unsigned i = 0; i < 2; ++i) {
    raw[i] = ::rte_ring_create(fmt::format("roce_ring_{}_{}", index, i).c_str(), kDescriptors,
                               SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    (*rings)[i].reset(raw[i]);
    if (raw[i] == nullptr)
      return failure("--port " + name, with_log("there is no memory for a ring", rte_errno),
                     "give more memory with --eal \"-m 1024\"");
  }
  std::array<std::unique_ptr<engine::PacketIo>, 2> ends;
  for (unsigned i = 0; i < 2; ++i) {
    EthdevConfig config;
    config.name = fmt::format("{}.{}", name, i);
    config.kind = PortKind::RING;
    config.mtu = mtu;
    config.device = fmt::format("roce_pair{}_{}", index, i);
    const int port = ::rte_eth_from_rings(config.device.c_str(), &raw[i], 1, &raw[1 - i], 1, 0);
    if (port < 0)
      return failure(place(config), with_log("DPDK makes no port from rings", rte_errno));
    EthdevDevice device(static_cast<std::uint16_t>(port));
    if (auto started = device.start(config); !started) return tl::make_unexpected(started.error());
    ends[i] = make_ethdev_port(std::move(device), Sharing::ALONE, rings);
  }
  return std::pair(std::move(ends[0]), std::move(ends[1]));
}

}  // namespace roce::port::dpdk
