#include "port/kernel_interface.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "wire/headers.hpp"

namespace roce::port {
namespace {

class Socket {
 public:
  Socket(int family, int type) : fd_(::socket(family, type | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::uint8_t prefix_length(const std::uint8_t* mask, std::size_t bytes) {
  int bits = 0;
  for (std::size_t i = 0; i < bytes; ++i) bits += std::popcount(mask[i]);
  return static_cast<std::uint8_t>(bits);
}

/// Reads a sockaddr of either family; false for others.
bool read_prefix(const ifaddrs& entry, IpPrefix& prefix) {
  if (entry.ifa_addr->sa_family == AF_INET) {
    sockaddr_in address{}, mask{};
    std::memcpy(&address, entry.ifa_addr, sizeof address);
    if (entry.ifa_netmask != nullptr) std::memcpy(&mask, entry.ifa_netmask, sizeof mask);
    prefix.address = IpAddress::v4(0, 0, 0, 0);
    std::memcpy(&prefix.address.bytes[12], &address.sin_addr, 4);
    std::uint8_t bits[4];
    std::memcpy(bits, &mask.sin_addr, 4);
    prefix.length = prefix_length(bits, 4);
    return true;
  }
  if (entry.ifa_addr->sa_family == AF_INET6) {
    sockaddr_in6 address{}, mask{};
    std::memcpy(&address, entry.ifa_addr, sizeof address);
    if (entry.ifa_netmask != nullptr) std::memcpy(&mask, entry.ifa_netmask, sizeof mask);
    std::memcpy(prefix.address.bytes.data(), &address.sin6_addr, 16);
    std::uint8_t bits[16];
    std::memcpy(bits, &mask.sin6_addr, 16);
    prefix.length = prefix_length(bits, 16);
    return true;
  }
  return false;
}

bool is_link_local(const IpAddress& address) {
  return address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
}

/// Answers 0, or errno.
int hold_one(int family, const std::string& interface, std::vector<int>& sockets) {
  Socket socket(family, SOCK_DGRAM);
  if (socket.get() < 0) return errno == EAFNOSUPPORT ? 0 : errno;
  const int on = 1, smallest = 1;
  sock_filter drop_all{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog filter{1, &drop_all};
  const auto set = [&](int level, int option, const void* value, std::size_t size) {
    return ::setsockopt(socket.get(), level, option, value, static_cast<socklen_t>(size)) == 0;
  };
  // Two of our processes may share an interface.
  if (!set(SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
      !set(SOL_SOCKET, SO_BINDTODEVICE, interface.data(), interface.size()) ||
      !set(SOL_SOCKET, SO_RCVBUF, &smallest, sizeof smallest) ||
      !set(SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter))
    return errno;
  sockaddr_storage any{};
  socklen_t length = 0;
  if (family == AF_INET) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(wire::kRoceUdpPort);
    std::memcpy(&any, &address, sizeof address);
    length = sizeof address;
  } else {
    if (!set(IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on)) return errno;
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(wire::kRoceUdpPort);
    std::memcpy(&any, &address, sizeof address);
    length = sizeof address;
  }
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), length) != 0) return errno;
  sockets.push_back(socket.release());
  return 0;
}

}  // namespace

std::vector<IpPrefix> kernel_addresses(const std::string& name) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<IpPrefix> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    IpPrefix prefix;
    if (entry->ifa_addr != nullptr && name == entry->ifa_name && read_prefix(*entry, prefix))
      addresses.push_back(prefix);
  }
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const IpPrefix& p) { return !is_link_local(p.address); });
  return addresses;
}

Result<KernelInterface> kernel_interface(const std::string& name) {
  KernelInterface found;
  found.name = name;
  found.index = ::if_nametoindex(name.c_str());
  if (found.index == 0 || name.size() >= IFNAMSIZ)
    return failure(name, "there is no such interface",
                   "\"ip link\" lists those of this network namespace");
  const Socket socket(AF_INET, SOCK_DGRAM);
  const auto ask = [&](unsigned long request, ifreq& answer) {
    answer = {};
    std::memcpy(answer.ifr_name, name.data(), name.size());
    return ::ioctl(socket.get(), request, &answer) == 0;
  };
  ifreq answer;
  if (!ask(SIOCGIFHWADDR, answer))
    return failure(name, fmt::format("its MAC address cannot be read ({})", std::strerror(errno)));
  std::memcpy(found.mac.bytes.data(), answer.ifr_hwaddr.sa_data, 6);
  if (!ask(SIOCGIFMTU, answer))
    return failure(name, fmt::format("its MTU cannot be read ({})", std::strerror(errno)));
  found.mtu = static_cast<std::uint32_t>(answer.ifr_mtu);
  if (!ask(SIOCGIFFLAGS, answer))
    return failure(name, fmt::format("its flags cannot be read ({})", std::strerror(errno)));
  found.up = (answer.ifr_flags & IFF_UP) != 0;
  found.carrier = found.up && (answer.ifr_flags & IFF_RUNNING) != 0;
  found.addresses = kernel_addresses(name);
  return found;
}

Result<UdpPortHolder> UdpPortHolder::hold(const std::string& interface) {
  UdpPortHolder holder;
  for (const int family : {AF_INET, AF_INET6}) {
    const int error = hold_one(family, interface, holder.sockets_);
    if (error == EADDRINUSE)
      holder.in_use_ = true;
    else if (error != 0 && error != EAFNOSUPPORT)
      return failure(
          interface,
          fmt::format("UDP port {} cannot be held ({})", wire::kRoceUdpPort, std::strerror(error)),
          "run as root, or grant cap_net_raw");
  }
  return holder;
}

UdpPortHolder::UdpPortHolder(UdpPortHolder&& other) noexcept
    : sockets_(std::exchange(other.sockets_, {})), in_use_(other.in_use_) {}

UdpPortHolder& UdpPortHolder::operator=(UdpPortHolder&& other) noexcept {
  if (this != &other) {
    close();
    sockets_ = std::exchange(other.sockets_, {});
    in_use_ = other.in_use_;
  }
  return *this;
}

UdpPortHolder::~UdpPortHolder() {
  close();
}

void UdpPortHolder::close() {
  for (const int fd : sockets_) ::close(fd);
  sockets_.clear();
}

}  // namespace roce::port
