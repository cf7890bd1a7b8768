#include "port/open.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "port/arguments.hpp"
#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_port.hpp"
#include "port/dpdk/memif_socket.hpp"
#include "port/kernel_interface.hpp"
#include "port/memory/memory_wire.hpp"

namespace roce::port {

constexpr std::uint16_t kMinMtu = 576, kMaxMtu = 9216, kVirtualMtu = 4200;

// Members end in the reverse order: decorators before what they decorate.
struct OpenPort::Stack {
  std::unique_ptr<MemoryWire> wire;
  std::optional<UdpPortHolder> holder;
  std::optional<dpdk::MemifServerSocket> memif_socket;
  std::unique_ptr<engine::PacketIo> base, other;
  std::unique_ptr<CapturePort> capture;
  std::unique_ptr<FaultPort> fault;
  engine::PacketIo* io = nullptr;
  engine::PacketIo* peer = nullptr;
  std::vector<IpPrefix> addresses;
  std::string interface;  ///< borrowed; registered in borrowed()

  ~Stack() { borrowed().erase(interface); }
  [[nodiscard]] static std::set<std::string>& borrowed() {
    static std::set<std::string> names;
    return names;
  }

  [[nodiscard]] Result<void> open_base(const PortOptions& options);
  [[nodiscard]] Result<void> open_wire(const PortOptions& options);
  [[nodiscard]] Result<void> open_ring(const PortOptions& options);
  [[nodiscard]] Result<void> open_device(const PortOptions& options);
  [[nodiscard]] Result<void> borrow(const PortOptions& options, dpdk::EthdevConfig& config);
  [[nodiscard]] Result<void> decorate(const PortOptions& options);
};

namespace {

std::string place(const PortOptions& options) {
  return "--port " + options.spec.text;
}

Result<void> check_mtu(const PortOptions& options) {
  const std::uint16_t most = options.spec.kind == PortKind::WIRE ? kMemoryWireMaxMtu : kMaxMtu;
  if (options.mtu && (*options.mtu < kMinMtu || *options.mtu > most))
    return failure(fmt::format("--mtu {}", *options.mtu), "this MTU is out of range",
                   fmt::format("give {} to {}; 4200 carries a path MTU of 4096", kMinMtu, most));
  return {};
}

dpdk::EalOptions eal_options(const PortOptions& options) {
  dpdk::EalOptions eal;
  eal.extra = split_arguments(options.eal);
  eal.log = options.dpdk_log == DpdkLog::SHOWN ? dpdk::EalLog::SHOWN : dpdk::EalLog::QUIET;
  if (options.spec.kind == PortKind::PCI) eal.pci_addresses.push_back(options.spec.target);
  return eal;
}

}  // namespace

Result<void> OpenPort::Stack::open_base(const PortOptions& options) {
  if (options.spec.kind == PortKind::WIRE) return open_wire(options);
  if (auto started = dpdk::start_eal(eal_options(options)); !started) return started;
  return options.spec.kind == PortKind::RING ? open_ring(options) : open_device(options);
}

Result<void> OpenPort::Stack::open_wire(const PortOptions& options) {
  MemoryWireConfig config;
  config.name = options.spec.text;
  config.mtu = options.mtu.value_or(config.mtu);
  wire = std::make_unique<MemoryWire>(config);
  io = &wire->first();
  peer = &wire->second();
  return {};
}

Result<void> OpenPort::Stack::open_ring(const PortOptions& options) {
  auto pair = dpdk::open_ring_pair(options.spec.text, options.mtu.value_or(kVirtualMtu));
  if (!pair) return tl::make_unexpected(pair.error());
  base = std::move(pair->first);
  other = std::move(pair->second);
  io = base.get();
  peer = other.get();
  return {};
}

Result<void> OpenPort::Stack::open_device(const PortOptions& options) {
  static std::atomic<unsigned> next_index{0};
  dpdk::EthdevConfig config;
  config.name = options.spec.text;
  config.kind = options.spec.kind;
  config.mtu = options.mtu;
  if (!options.spec.interface.empty())
    if (auto borrowed = borrow(options, config); !borrowed) return borrowed;
  PortSpec spec = options.spec;
  if (spec.kind == PortKind::MEMIF && spec.memif_role == MemifRole::SERVER) {
    auto prepared = dpdk::MemifServerSocket::prepare(spec.target);
    if (!prepared) return tl::make_unexpected(prepared.error());
    memif_socket.emplace(std::move(*prepared));
    spec.target = memif_socket->temporary_path();
  }
  config.device = device_args(spec, next_index++, config.mtu.value_or(kVirtualMtu));
  auto opened = dpdk::open_ethdev(config);
  if (!opened) return tl::make_unexpected(opened.error());
  base = std::move(*opened);
  if (memif_socket)
    if (auto published = memif_socket->publish(); !published) return published;
  io = base.get();
  return {};
}

/// Takes MAC, MTU and addresses from a kernel interface and quiets the kernel on it.
Result<void> OpenPort::Stack::borrow(const PortOptions& options, dpdk::EthdevConfig& config) {
  const auto found = kernel_interface(options.spec.interface);
  if (!found)
    return failure(place(options), fmt::format("there is no interface {}", options.spec.interface),
                   found.error().fix);
  if (!found->up)
    return failure(place(options), fmt::format("interface {} is down", found->name),
                   fmt::format("ip link set dev {} up", found->name));
  // DPDK's AF_PACKET driver joins all sockets of a process on an interface into one fanout group,
  // and each port would receive a part of the frames.
  if (borrowed().contains(found->name))
    return failure(place(options),
                   fmt::format("interface {} has a port in this process already", found->name),
                   "give the port once; it carries many addresses");
  // The interface is the administrator's: we use less than its MTU, but never raise it.
  if (options.mtu && *options.mtu > found->mtu)
    return failure(place(options),
                   fmt::format("interface {} has an MTU of {}, less than --mtu {}", found->name,
                               found->mtu, *options.mtu),
                   fmt::format("ip link set dev {} mtu {}", found->name, *options.mtu));
  // AF_XDP's program takes all frames of the queue off the kernel: there we answer ARP ourselves.
  config.sharing =
      options.spec.kind == PortKind::AFXDP || options.spec.target.starts_with("net_af_xdp")
          ? dpdk::Sharing::ALONE
          : dpdk::Sharing::KERNEL;
  config.mac = found->mac;
  config.mtu = options.mtu.value_or(
      static_cast<std::uint16_t>(std::min<std::uint32_t>(found->mtu, kMaxMtu)));
  addresses = found->addresses;
  auto held = UdpPortHolder::hold(found->name);
  if (!held) return tl::make_unexpected(held.error());
  holder = std::move(*held);
  interface = *borrowed().insert(found->name).first;
  return {};
}

Result<void> OpenPort::Stack::decorate(const PortOptions& options) {
  if (!options.capture_file.empty()) {
    auto writer = PcapngWriter::create(
        {options.capture_file, options.spec.text, options.capture_snap_length});
    if (!writer) return tl::make_unexpected(writer.error());
    capture = std::make_unique<CapturePort>(*io, std::move(*writer));
    io = capture.get();
  }
  if (!options.faults.empty()) {
    fault = std::make_unique<FaultPort>(*io, options.faults, options.fault_seed);
    io = fault.get();
  }
  return {};
}

OpenPort::OpenPort(std::unique_ptr<Stack> stack) : stack_(std::move(stack)) {}
OpenPort::OpenPort(OpenPort&&) noexcept = default;
OpenPort& OpenPort::operator=(OpenPort&&) noexcept = default;
OpenPort::~OpenPort() = default;

engine::PacketIo& OpenPort::io() const {
  return *stack_->io;
}
engine::PacketIo* OpenPort::peer() const {
  return stack_->peer;
}
const std::vector<IpPrefix>& OpenPort::kernel_addresses() const {
  return stack_->addresses;
}
const FaultPort* OpenPort::faults() const {
  return stack_->fault.get();
}
CapturePort* OpenPort::capture() const {
  return stack_->capture.get();
}

Result<OpenPort> open_port(const PortOptions& options) {
  if (auto good = check_mtu(options); !good) return tl::make_unexpected(good.error());
  auto stack = std::make_unique<OpenPort::Stack>();
  if (auto opened = stack->open_base(options); !opened) return tl::make_unexpected(opened.error());
  if (auto decorated = stack->decorate(options); !decorated)
    return tl::make_unexpected(decorated.error());
  return OpenPort(std::move(stack));
}

Result<std::vector<OpenPort>> open_ports(const std::vector<PortOptions>& options) {
  const auto first = std::find_if(options.begin(), options.end(),
                                  [](const PortOptions& o) { return o.spec.needs_eal(); });
  if (first != options.end()) {
    dpdk::EalOptions eal = eal_options(*first);
    eal.pci_addresses.clear();
    for (const PortOptions& o : options)
      if (o.spec.kind == PortKind::PCI) eal.pci_addresses.push_back(o.spec.target);
    if (auto started = dpdk::start_eal(eal); !started) return tl::make_unexpected(started.error());
  }
  std::vector<OpenPort> ports;
  for (const PortOptions& o : options) {
    auto port = open_port(o);
    if (!port) return tl::make_unexpected(port.error());
    ports.push_back(std::move(*port));
  }
  return ports;
}

}  // namespace roce::port
