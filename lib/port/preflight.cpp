#include "port/preflight.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "port/arguments.hpp"
#include "port/kernel_interface.hpp"
#include "port/preflight_system.hpp"
#include "wire/headers.hpp"

namespace roce::port {
namespace {

namespace fs = std::filesystem;
using Findings = std::vector<Finding>;

constexpr std::uint32_t kFullMtu = 4200;  // carries a path MTU of 4096
/// What an AF_XDP page leaves beside the kernel's and DPDK's headers and Ethernet's.
constexpr std::uint32_t kXdpMtu = 3438;
constexpr unsigned kCapNetAdmin = 12, kCapNetRaw = 13;  // <linux/capability.h>

void add(Findings& findings, Severity severity, std::string what, std::string why,
         std::string command = {}) {
  findings.push_back({severity, std::move(what), std::move(why), std::move(command)});
}

void check_capability(Findings& findings, const System& system, unsigned bit, const char* name,
                      const char* purpose) {
  if (system.has_capability(bit)) return;
  add(findings, Severity::ERROR, fmt::format("this user lacks {}", name), purpose,
      "run it by sudo, or: sudo setcap cap_net_raw,cap_net_admin,cap_ipc_lock+ep PROGRAM");
}

void check_mtu(Findings& findings, const KernelInterface& interface,
               std::optional<std::uint16_t> mtu) {
  if (mtu && *mtu > interface.mtu)
    add(findings, Severity::ERROR,
        fmt::format("interface {} has an MTU of {}", interface.name, interface.mtu),
        fmt::format("--mtu {} does not fit", *mtu),
        fmt::format("ip link set dev {} mtu {}", interface.name, *mtu));
  const std::uint32_t used = std::min<std::uint32_t>(interface.mtu, mtu.value_or(0xffff));
  const auto path = path_mtu_for(used);
  if (!path)
    add(findings, Severity::ERROR, fmt::format("an MTU of {}", used),
        "it holds no RoCE packet of 256 bytes",
        fmt::format("ip link set dev {} mtu {}", interface.name, kFullMtu));
  else
    add(findings, Severity::INFO,
        fmt::format("an MTU of {} gives a path MTU of {}", used, verbs::bytes_of(*path)),
        *path == verbs::Mtu::MTU_4096 ? "the largest there is" : "larger ones need fewer packets",
        *path == verbs::Mtu::MTU_4096
            ? std::string{}
            : fmt::format("ip link set dev {} mtu {}", interface.name, kFullMtu));
}

void check_rdma(Findings& findings, const System& system, const std::string& interface) {
  for (const RdmaDevice& device : system.rdma_devices(interface)) {
    const bool soft = device.driver.empty();
    add(findings, soft ? Severity::WARNING : Severity::ERROR,
        fmt::format("RDMA device {} runs on {}", device.name, interface),
        soft ? "the kernel's Soft-RoCE or siw sees the same packets and may answer them"
             : "the NIC takes RoCE packets before a packet socket sees them",
        soft ? fmt::format("rdma link delete {}", device.name)
             : "use the NIC's PCI address as the port, or: devlink dev param set pci/ADDRESS name "
               "enable_roce value false cmode driverinit");
  }
}

void check_interface(Findings& findings, const System& system, const PortSpec& spec,
                     std::optional<std::uint16_t> mtu) {
  check_capability(findings, system, kCapNetRaw, "cap_net_raw", "a raw socket needs it");
  const auto found = kernel_interface(spec.interface);
  if (!found) {
    add(findings, Severity::ERROR, fmt::format("there is no interface {}", spec.interface),
        "the port needs it, in this network namespace", "ip link");
    return;
  }
  if (!found->up)
    add(findings, Severity::ERROR, fmt::format("interface {} is down", found->name),
        "nothing is sent or received", fmt::format("ip link set dev {} up", found->name));
  else if (!found->carrier)
    add(findings, Severity::WARNING, fmt::format("interface {} has no carrier", found->name),
        "its peer is down or no cable is in",
        fmt::format("ip -details link show dev {}", found->name));
  if (found->addresses.empty())
    add(findings, Severity::WARNING, fmt::format("interface {} has no IP address", found->name),
        "give one here, or by --ip", fmt::format("ip addr add 198.18.0.1/24 dev {}", found->name));
  check_mtu(findings, *found, mtu);
  check_rdma(findings, system, found->name);
  if (system.udp_port_bound(wire::kRoceUdpPort))
    add(findings, Severity::WARNING, "UDP port 4791 is bound",
        "another RoCE program or Soft-RoCE works in this network namespace",
        "ss -lunp sport = :4791; rdma link");
}

void check_xdp(Findings& findings, const System& system, const PortSpec& spec) {
  if (!system.supports_xdp_sockets())
    add(findings, Severity::ERROR, "the kernel knows no AF_XDP sockets", "afxdp needs them",
        fmt::format("use --port afpacket:{}", spec.interface));
  check_capability(findings, system, kCapNetAdmin, "cap_net_admin",
                   "loading an XDP program needs it");
  const auto found = kernel_interface(spec.interface);
  if (found && found->mtu > kXdpMtu)
    add(findings, Severity::ERROR,
        fmt::format("interface {} has an MTU of {}", found->name, found->mtu),
        fmt::format("AF_XDP holds a frame in one page, which allows up to {} (path MTU 2048)",
                    kXdpMtu),
        fmt::format("ip link set dev {} mtu {}   # at its peer as well, or use afpacket:{}",
                    found->name, kXdpMtu, found->name));
  add(findings, Severity::INFO, "AF_XDP takes all frames of the interface's queue 0",
      "the kernel answers neither ARP nor TCP there; we answer ARP, ND and ping",
      fmt::format("use afpacket:{} when a TCP exchange must run on it too", spec.interface));
}

void check_hugepages(Findings& findings, const PortSpec& spec) {
  if (!spec.needs_eal() || free_hugepage_bytes() >= kUsefulHugepageBytes) return;
  add(findings, spec.kind == PortKind::PCI ? Severity::WARNING : Severity::INFO,
      "no free hugepages",
      spec.kind == PortKind::PCI
          ? "DPDK runs on small pages: slower, and only with an IOMMU or a bifurcated driver"
          : "DPDK runs on small pages, a little slower",
      "echo 512 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
}

void check_pci_driver(Findings& findings, const PciDevice& device, const std::string& address) {
  constexpr std::string_view kUserSpace[] = {"vfio-pci", "igb_uio", "uio_pci_generic"};
  constexpr std::string_view kBifurcated[] = {"mlx5_core", "mlx4_core", "mana"};
  const auto is = [&](std::string_view name) { return name == device.driver; };
  const std::string bind =
      fmt::format("sudo modprobe vfio-pci && sudo dpdk-devbind.py -b vfio-pci {}", address);
  if (std::any_of(std::begin(kBifurcated), std::end(kBifurcated), is)) return;
  if (device.driver.empty())
    add(findings, Severity::ERROR, fmt::format("PCI device {} has no driver", address),
        "DPDK reaches it through vfio-pci", bind);
  else if (std::none_of(std::begin(kUserSpace), std::end(kUserSpace), is))
    add(findings, Severity::ERROR,
        fmt::format("PCI device {} is bound to {}", address, device.driver),
        "the kernel has it; its interface disappears once it is bound to vfio-pci", bind);
  else if (device.driver == "vfio-pci" && device.iommu_group.empty())
    add(findings, Severity::ERROR, fmt::format("PCI device {} has no IOMMU group", address),
        "vfio-pci needs an IOMMU",
        "boot with intel_iommu=on or amd_iommu=on, or: echo 1 | sudo tee "
        "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
  else if (device.driver == "vfio-pci" && !device.group_accessible)
    add(findings, Severity::ERROR,
        fmt::format("/dev/vfio/{} is not accessible", device.iommu_group), "vfio-pci needs it",
        fmt::format("sudo chown $USER /dev/vfio/{}", device.iommu_group));
}

void check_pci(Findings& findings, const System& system, const PortSpec& spec) {
  const auto device = system.pci_device(spec.target);
  if (!device) {
    add(findings, Severity::ERROR, fmt::format("there is no PCI device {}", spec.target),
        "the port needs it", "lspci -D -d ::0200");
    return;
  }
  if (device->device_class >> 16 != 0x02)
    add(findings, Severity::ERROR, fmt::format("PCI device {} is no network device", spec.target),
        fmt::format("its class is {:06x}", device->device_class), "lspci -D -d ::0200");
  check_pci_driver(findings, *device, spec.target);
  if (device->numa_node >= 0 && !system.runs_on_node(device->numa_node))
    add(findings, Severity::WARNING,
        fmt::format("PCI device {} is on NUMA node {}", spec.target, device->numa_node),
        "this process runs on another node, so that each frame crosses between them",
        fmt::format("numactl --cpunodebind={0} --membind={0} PROGRAM", device->numa_node));
  rlimit limit{};
  if (::geteuid() != 0 && device->driver == "vfio-pci" &&
      ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur < (std::uint64_t{512} << 20))
    add(findings, Severity::ERROR,
        fmt::format("at most {} KiB of memory may be locked", limit.rlim_cur / 1024),
        "vfio locks all of DPDK's memory", "ulimit -l unlimited");
}

void check_tap(Findings& findings, const System& system, const PortSpec& spec) {
  check_capability(findings, system, kCapNetAdmin, "cap_net_admin", "making a TAP needs it");
  if (!system.has_device("net/tun"))
    add(findings, Severity::ERROR, "there is no /dev/net/tun", "TAP interfaces are made there",
        "sudo modprobe tun");
  if (kernel_interface(spec.target))
    add(findings, Severity::WARNING, fmt::format("interface {} exists already", spec.target),
        "a TAP of that name is taken over, and anything else is an error",
        fmt::format("ip link delete dev {}", spec.target));
}

void check_memif(Findings& findings, const PortSpec& spec) {
  const fs::path socket(spec.target);
  const fs::path folder = socket.has_parent_path() ? socket.parent_path() : fs::path(".");
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    add(findings, Severity::ERROR, fmt::format("there is no folder {}", folder.string()),
        "the socket goes there", fmt::format("mkdir -p {}", folder.string()));
  else if (::access(folder.c_str(), W_OK) != 0)
    add(findings, Severity::ERROR, fmt::format("folder {} is not writable", folder.string()),
        "the socket goes there", fmt::format("sudo chown $USER {}", folder.string()));
  if (spec.memif_role == MemifRole::SERVER && fs::exists(socket, ignored))
    add(findings, Severity::WARNING, fmt::format("there is a socket {} already", spec.target),
        "another server has it, or a dead one left it behind and it will be replaced",
        fmt::format("ss -xlp | grep {}", spec.target));
  if (spec.memif_role == MemifRole::CLIENT && !fs::exists(socket, ignored))
    add(findings, Severity::INFO, fmt::format("there is no socket {} yet", spec.target),
        "the link comes up when the server starts",
        fmt::format("start the other side with --port memif:{},role=server", spec.target));
}

void check_pcap(Findings& findings, const PortSpec& spec) {
  if (!spec.pcap_in.empty() && ::access(spec.pcap_in.c_str(), R_OK) != 0)
    add(findings, Severity::ERROR, fmt::format("{} cannot be read", spec.pcap_in),
        "it is the port's input", fmt::format("ls -l {}", spec.pcap_in));
  if (spec.pcap_out.empty()) return;
  const fs::path out(spec.pcap_out);
  const fs::path folder = out.has_parent_path() ? out.parent_path() : fs::path(".");
  if (::access(folder.c_str(), W_OK) != 0)
    add(findings, Severity::ERROR, fmt::format("folder {} is not writable", folder.string()),
        "the port's output goes there", fmt::format("mkdir -p {}", folder.string()));
}

void check_memory(Findings& findings, const System& system) {
  constexpr std::uint64_t kEnough = std::uint64_t{256} << 20;
  const auto available = system.available_memory();
  if (available && *available < kEnough)
    add(findings, Severity::WARNING,
        fmt::format("{} MiB of memory are available", *available >> 20),
        "a port's buffers and DPDK take about 100", "free -m");
}

}  // namespace

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::INFO:
      return "info";
    case Severity::WARNING:
      return "warning";
    case Severity::ERROR:
      return "error";
  }
  return "";
}

std::string Finding::to_string() const {
  std::string text = fmt::format("{}: {}: {}", severity_name(severity), what, why);
  if (!command.empty()) text += "\n    " + command;
  return text;
}

std::vector<Finding> check(const PortSpec& spec, std::optional<std::uint16_t> mtu,
                           const PreflightRoots& roots) {
  Findings findings;
  const System system(roots);
  check_hugepages(findings, spec);
  check_memory(findings, system);
  if (!spec.interface.empty()) check_interface(findings, system, spec, mtu);
  if (spec.kind == PortKind::AFXDP) check_xdp(findings, system, spec);
  if (spec.kind == PortKind::PCI) check_pci(findings, system, spec);
  if (spec.kind == PortKind::TAP) check_tap(findings, system, spec);
  if (spec.kind == PortKind::MEMIF) check_memif(findings, spec);
  if (spec.kind == PortKind::PCAP) check_pcap(findings, spec);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

std::optional<verbs::Mtu> path_mtu_for(std::uint32_t interface_mtu) {
  constexpr std::uint32_t kHeaders = 80;
  std::optional<verbs::Mtu> best;
  for (const auto mtu : {verbs::Mtu::MTU_256, verbs::Mtu::MTU_512, verbs::Mtu::MTU_1024,
                         verbs::Mtu::MTU_2048, verbs::Mtu::MTU_4096})
    if (verbs::bytes_of(mtu) + kHeaders <= interface_mtu) best = mtu;
  return best;
}

}  // namespace roce::port
