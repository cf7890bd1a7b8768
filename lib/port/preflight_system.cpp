#include "port/preflight_system.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace roce::port {
namespace {

namespace fs = std::filesystem;

/// The first line of a file; empty when there is none.
std::string first_line(const fs::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

/// The last part of what a symbolic link points to; empty when there is none.
std::string link_name(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? std::string{} : target.filename().string();
}

/// Value behind "NAME:" in a file such as /proc/meminfo.
std::optional<std::uint64_t> field(const fs::path& path, std::string_view name, int base) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    const std::size_t at = line.find_first_not_of(" \t", name.size() + 1);
    if (at == std::string::npos) return {};
    std::uint64_t value = 0;
    if (std::from_chars(line.data() + at, line.data() + line.size(), value, base).ec != std::errc{})
      return {};
    return value;
  }
  return {};
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
  return paths;
}

}  // namespace

bool System::has_capability(unsigned bit) const {
  const auto effective = field(fs::path(roots_.proc) / "self/status", "CapEff", 16);
  return effective && (*effective >> bit & 1) != 0;
}

bool System::udp_port_bound(std::uint16_t port) const {
  const std::string suffix = fmt::format(":{:04X}", port);
  for (const char* table : {"net/udp", "net/udp6"}) {
    std::ifstream file(fs::path(roots_.proc) / table);
    std::string line;
    std::getline(file, line);  // headings
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string slot, local;
      words >> slot >> local;
      if (local.ends_with(suffix)) return true;
    }
  }
  return false;
}

std::vector<RdmaDevice> System::rdma_devices(const std::string& interface) const {
  std::vector<RdmaDevice> devices;
  for (const fs::path& device : entries(fs::path(roots_.sys) / "class/infiniband")) {
    const std::string name = device.filename().string();
    const std::string parent = first_line(device / "parent");  // rxe names its interface there
    bool here = parent == interface;
    for (const fs::path& port : entries(device / "ports"))
      here = here || first_line(port / "gid_attrs/ndevs/0") == interface;
    // A software device may hang below the NIC's PCI device, whose driver is not its own.
    const bool soft = !parent.empty() || name.starts_with("rxe") || name.starts_with("siw");
    if (here) devices.push_back({name, soft ? std::string{} : link_name(device / "device/driver")});
  }
  return devices;
}

std::optional<PciDevice> System::pci_device(const std::string& address) const {
  const fs::path folder = fs::path(roots_.sys) / "bus/pci/devices" / address;
  std::error_code error;
  if (!fs::exists(folder, error)) return {};
  PciDevice device;
  const std::string text = first_line(folder / "class");  // "0x020000"
  if (text.starts_with("0x"))
    std::from_chars(text.data() + 2, text.data() + text.size(), device.device_class, 16);
  device.driver = link_name(folder / "driver");
  device.iommu_group = link_name(folder / "iommu_group");
  const fs::path group = fs::path(roots_.dev) / "vfio" / device.iommu_group;
  device.group_accessible =
      !device.iommu_group.empty() && ::access(group.c_str(), R_OK | W_OK) == 0;
  const std::string node = first_line(folder / "numa_node");
  std::from_chars(node.data(), node.data() + node.size(), device.numa_node);
  return device;
}

bool System::runs_on_node(int node) const {
  const fs::path cpus = fs::path(roots_.sys) / fmt::format("devices/system/node/node{}", node);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    std::error_code error;
    if (CPU_ISSET(cpu, &allowed) && fs::exists(cpus / fmt::format("cpu{}", cpu), error))
      return true;
  }
  return false;
}

bool System::has_device(const std::string& name) const {
  std::error_code error;
  return fs::exists(fs::path(roots_.dev) / name, error);
}

std::optional<std::uint64_t> System::available_memory() const {
  const auto kib = field(fs::path(roots_.proc) / "meminfo", "MemAvailable", 10);
  if (!kib) return {};
  return *kib * 1024;
}

bool System::supports_xdp_sockets() const {
  const int fd = ::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd >= 0) ::close(fd);
  return fd >= 0 || errno == EPERM;  // without the right to have one, the kernel still knows it
}

}  // namespace roce::port
