// Ports on kernel interfaces: AF_PACKET, AF_XDP and TAP, in a network namespace of this process.
#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "port/kernel_interface.hpp"
#include "port/open.hpp"
#include "port/preflight.hpp"
#include "support/skip.hpp"
#include "wire/checksum.hpp"
#include "wire/headers.hpp"

using Catch::Matchers::Contains;
using namespace roce::wire;
using roce::Instant;
using roce::IpAddress;
using roce::MacAddress;
using roce::engine::Frame;
using roce::engine::kBurst;
using roce::engine::PacketIo;
using roce::port::OpenPort;
using roce::port::PortOptions;
using roce::test::skip;

/// Read by LeakSanitizer: DPDK's AF_XDP driver never frees libxdp's umem.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:xsk_umem__create";
}

namespace {

using Bytes = std::vector<std::byte>;
constexpr Instant kNow{};
constexpr std::uint16_t kTestEtherType = 0x88b5;  // IEEE 802: local experiments

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

/// Moves this process into a namespace with a veth pair, once. False without the rights.
bool in_namespace() {
  static const bool inside =
      ::unshare(CLONE_NEWNET) == 0 && run("ip link set lo up") &&
      run("ip link add veth-a type veth peer name veth-b") &&
      run("sysctl -w net.ipv6.conf.veth-a.accept_dad=0 net.ipv6.conf.veth-b.disable_ipv6=1") &&
      run("ip link set veth-a mtu 4300 up") && run("ip link set veth-b mtu 4300 up") &&
      run("ip addr add 198.18.0.1/24 dev veth-a") && run("ip addr add fd00::1/64 dev veth-a");
  return inside;
}

PortOptions options_for(const std::string& spec) {
  PortOptions options;
  options.spec = roce::port::parse_port_spec(spec).value();
  return options;
}

OpenPort opened(const std::string& spec) {
  auto port = roce::port::open_port(options_for(spec));
  INFO((port ? std::string{} : port.error().to_string()));
  REQUIRE(port);
  return std::move(*port);
}

void send(PacketIo& io, const Bytes& bytes) {
  std::array<Frame, 1> slot;
  REQUIRE(io.tx_reserve(slot) == 1);
  REQUIRE(bytes.size() <= slot[0].capacity);
  std::memcpy(slot[0].data, bytes.data(), bytes.size());
  slot[0].length = static_cast<std::uint32_t>(bytes.size());
  REQUIRE(io.tx_burst(kNow, slot) == 1);
}

/// The first frame within the time that is wanted.
std::optional<Bytes> await(PacketIo& io, const std::function<bool(const Bytes&)>& wanted,
                           int milliseconds = 2000) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  std::optional<Bytes> found;
  while (!found && std::chrono::steady_clock::now() < end) {
    std::array<Frame, kBurst> frames;
    const std::size_t n = io.rx_burst(kNow, frames);
    for (std::size_t i = 0; i < n; ++i) {
      Bytes bytes(frames[i].data, frames[i].data + frames[i].length);
      if (!found && wanted(bytes)) found = std::move(bytes);
    }
    io.rx_release(std::span(frames).first(n));
    if (n == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return found;
}

/// A frame of our test type; tci adds a VLAN tag.
Bytes test_frame(const MacAddress& to, const MacAddress& from, std::size_t length,
                 std::optional<std::uint16_t> tci = {}) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i * 7 + length);
  auto* header = view_as<EthernetHeader>(bytes.data());
  header->destination = to;
  header->source = from;
  header->ether_type.set(tci ? std::uint16_t{kEtherVlan} : kTestEtherType);
  if (tci) {
    auto* tag = view_as<VlanTag>(bytes.data() + sizeof(EthernetHeader));
    tag->tci.set(*tci);
    tag->ether_type.set(kTestEtherType);
  }
  return bytes;
}

auto equals(const Bytes& expected) {
  return [&expected](const Bytes& bytes) { return bytes == expected; };
}

void expect_both_ways(PacketIo& a, PacketIo& b, std::size_t longest) {
  for (std::size_t length = 60; length <= longest; length += 92) {
    INFO(length << " bytes");
    const Bytes there = test_frame(b.info().mac, a.info().mac, length);
    send(a, there);
    CHECK(await(b, equals(there)));
    const Bytes back = test_frame(a.info().mac, b.info().mac, length);
    send(b, back);
    CHECK(await(a, equals(back)));
  }
}

/// A UDP datagram from 198.18.0.2 or fd00::2 to the address of veth-a.
Bytes udp_frame(const PacketIo& to, const PacketIo& from, std::uint16_t port) {
  Bytes bytes(60);
  auto* ethernet = view_as<EthernetHeader>(bytes.data());
  ethernet->destination = to.info().mac;
  ethernet->source = from.info().mac;
  ethernet->ether_type.set(kEtherIpv4);
  auto* ip = view_as<Ipv4Header>(bytes.data() + 14);
  ip->version_ihl = 0x45;
  ip->total_length.set(46);
  ip->ttl = 64;
  ip->protocol = kIpUdp;
  const std::uint8_t source[] = {198, 18, 0, 2}, destination[] = {198, 18, 0, 1};
  std::memcpy(ip->source, source, 4);
  std::memcpy(ip->destination, destination, 4);
  ip->checksum.set(internet_checksum({bytes.data() + 14, sizeof(Ipv4Header)}));
  auto* udp = view_as<UdpHeader>(bytes.data() + 34);
  udp->source_port.set(0xc000);
  udp->destination_port.set(port);
  udp->length.set(26);
  return bytes;
}

bool is_icmp_unreachable(const Bytes& bytes) {
  return bytes.size() > 34 && bytes[12] == std::byte{0x08} && bytes[13] == std::byte{0x00} &&
         bytes[23] == std::byte{kIpIcmp} && bytes[34] == std::byte{3};
}

}  // namespace

TEST_CASE("what the kernel knows of an interface is read", "[port][netns]") {
  if (!in_namespace()) return skip("needs root, to make a network namespace");
  const auto a = roce::port::kernel_interface("veth-a");
  REQUIRE(a);
  CHECK(a->mtu == 4300);
  CHECK(a->up);
  CHECK(a->mac != MacAddress{});
  REQUIRE(a->addresses.size() == 3);
  CHECK(a->addresses[0].address == IpAddress::v4(198, 18, 0, 1));
  CHECK(a->addresses[0].length == 24);
  CHECK(a->addresses[1].address.to_string() == "fd00::1");
  CHECK(a->addresses[1].length == 64);
  CHECK_THAT(a->addresses[2].address.to_string(), Contains("fe80::"));  // link-local comes last
  CHECK_FALSE(roce::port::kernel_interface("veth-c"));
}

TEST_CASE("AF_PACKET carries frames of 60 to 4200 bytes both ways", "[port][netns]") {
  if (!in_namespace()) return skip("needs root, to make a network namespace");
  const OpenPort a = opened("afpacket:veth-a");
  const OpenPort b = opened("afpacket:veth-b");
  CHECK(a.io().info().mtu == 4300);
  CHECK(a.io().info().kernel_has_address);
  CHECK(a.io().info().mac == roce::port::kernel_interface("veth-a")->mac);
  REQUIRE(a.kernel_addresses().size() == 3);
  CHECK(a.kernel_addresses()[0].address == IpAddress::v4(198, 18, 0, 1));
  CHECK(b.kernel_addresses().empty());
  expect_both_ways(a.io(), b.io(), 4314);  // 60 + 92 k: the last is 4292
  CHECK(a.io().counters().oerrors == 0);
}

TEST_CASE("a VLAN tag arrives where it was sent", "[port][netns]") {
  if (!in_namespace()) return skip("needs root, to make a network namespace");
  const OpenPort a = opened("afpacket:veth-a");
  const OpenPort b = opened("afpacket:veth-b");
  for (const std::size_t length : {std::size_t{64}, std::size_t{1518}, std::size_t{4318}}) {
    INFO(length << " bytes");
    const Bytes tagged = test_frame(b.io().info().mac, a.io().info().mac, length, 0x6123);
    send(a.io(), tagged);
    const auto got = await(b.io(), [](const Bytes& bytes) {
      return bytes.size() >= 18 && bytes[12] == std::byte{0x81};
    });
    REQUIRE(got);
    CHECK(*got == tagged);
  }
}

TEST_CASE("the kernel does not answer port 4791, but does others", "[port][netns]") {
  if (!in_namespace()) return skip("needs root, to make a network namespace");
  const OpenPort b = opened("afpacket:veth-b");
  {
    const OpenPort a = opened("afpacket:veth-a");
    // Only now: starting a device sets its MAC, upon which the kernel forgets its neighbours.
    REQUIRE(run("ip neigh replace 198.18.0.2 lladdr " + b.io().info().mac.to_string() +
                " dev veth-a nud permanent"));
    // The control: without a socket there is an answer, so silence below means something.
    send(b.io(), udp_frame(a.io(), b.io(), 4792));
    REQUIRE(await(b.io(), is_icmp_unreachable));
    for (int i = 0; i < 50; ++i) send(b.io(), udp_frame(a.io(), b.io(), kRoceUdpPort));
    CHECK_FALSE(await(b.io(), is_icmp_unreachable, 300));
    // And it is received all the same.
    CHECK(await(a.io(), [](const Bytes& bytes) {
      return bytes.size() == 60 && bytes[36] == std::byte{0x12};
    }));
    REQUIRE(run("sleep 1.1"));  // the kernel limits the rate of its answers
  }
  REQUIRE(run("ip neigh replace 198.18.0.2 lladdr " + b.io().info().mac.to_string() +
              " dev veth-a nud permanent"));
  const auto mac = roce::port::kernel_interface("veth-a");
  Bytes frame = udp_frame(b.io(), b.io(), kRoceUdpPort);
  view_as<EthernetHeader>(frame.data())->destination = mac->mac;
  send(b.io(), frame);
  CHECK(await(b.io(), is_icmp_unreachable));  // the port is let go with the OpenPort
}

TEST_CASE("frames that the kernel sends are not taken for received ones", "[port][netns]") {
  if (!in_namespace()) return skip("needs root, to make a network namespace");
  const OpenPort a = opened("afpacket:veth-a");
  const OpenPort b = opened("afpacket:veth-b");
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  to.sin_addr.s_addr = ::inet_addr("198.18.0.77");
  // Makes the kernel ask by ARP.
  REQUIRE(::sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 1);
  ::close(fd);
  const auto is_arp = [](const Bytes& bytes) {
    return bytes[12] == std::byte{0x08} && bytes[13] == std::byte{0x06};
  };
  CHECK(await(b.io(), is_arp));
  CHECK_FALSE(await(a.io(), is_arp, 200));
}

TEST_CASE("an interface that is down or too small is refused with the command", "[port][netns]") {
  if (!in_namespace()) return skip("needs root, to make a network namespace");
  REQUIRE(run("ip link add roce-d0 type veth peer name roce-d1"));
  const auto down = roce::port::open_port(options_for("afpacket:roce-d0"));
  REQUIRE_FALSE(down);
  CHECK(down.error().fix == "ip link set dev roce-d0 up");
  PortOptions large = options_for("afpacket:veth-a");
  large.mtu = 9000;
  const auto small = roce::port::open_port(large);
  REQUIRE_FALSE(small);
  CHECK(small.error().fix == "ip link set dev veth-a mtu 9000");
  const auto findings = roce::port::check(options_for("afpacket:roce-d0").spec);
  REQUIRE_FALSE(findings.empty());
  CHECK_THAT(findings[0].what, Contains("roce-d0 is down"));
  CHECK(findings[0].command == "ip link set dev roce-d0 up");
  REQUIRE(run("ip link del roce-d0"));
}

TEST_CASE("an interface takes one port of a process at a time", "[port][netns]") {
  if (!in_namespace()) return skip("needs root, to make a network namespace");
  {
    const OpenPort one = opened("afpacket:veth-a");
    const auto two = roce::port::open_port(options_for("afpacket:veth-a"));
    REQUIRE_FALSE(two);
    CHECK_THAT(two.error().reason, Contains("has a port in this process already"));
  }
  CHECK(roce::port::open_port(options_for("afpacket:veth-a")));
}

TEST_CASE("a TAP carries frames to and from the kernel", "[port][netns]") {
  if (!in_namespace()) return skip("needs root, to make a network namespace");
  if (::access("/dev/net/tun", R_OK | W_OK) != 0) return skip("there is no /dev/net/tun");
  const OpenPort tap = opened("tap:roce-tap0");
  REQUIRE(run("ip link set roce-tap0 up"));
  const auto kernel = roce::port::kernel_interface("roce-tap0");
  REQUIRE(kernel);
  CHECK(kernel->mtu == 1500);
  CHECK(kernel->mac != tap.io().info().mac);
  const OpenPort other = opened("afpacket:roce-tap0");
  expect_both_ways(tap.io(), other.io(), 1514);
  PortOptions large = options_for("tap:roce-tap1");
  large.mtu = 4200;
  const auto refused = roce::port::open_port(large);
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().fix, Contains("--mtu 1500"));
}

TEST_CASE("AF_XDP carries frames both ways, as far as a page holds them", "[port][netns]") {
  if (!in_namespace()) return skip("needs root, to make a network namespace");
  REQUIRE(run("ip link add roce-x0 type veth peer name roce-x1"));
  REQUIRE(run("ip link set roce-x0 mtu 4200 up && ip link set roce-x1 mtu 4200 up"));
  const auto findings = roce::port::check(options_for("afxdp:roce-x0").spec);
  const auto too_large = std::find_if(findings.begin(), findings.end(), [](const auto& f) {
    return f.what.find("has an MTU of 4200") != std::string::npos;
  });
  REQUIRE(too_large != findings.end());
  CHECK(too_large->severity == roce::port::Severity::ERROR);
  CHECK_THAT(too_large->command, Contains("mtu 3438"));
  REQUIRE(run("ip link set roce-x0 mtu 3438 && ip link set roce-x1 mtu 3438"));
  auto a = roce::port::open_port(options_for("afxdp:roce-x0"));
  auto b = roce::port::open_port(options_for("afxdp:roce-x1"));
  if (a && b) {
    CHECK(a->io().info().mtu == 3438);
    CHECK_FALSE(a->io().info().kernel_has_address);
    expect_both_ways(a->io(), b->io(), 3452);
  } else {
    skip("AF_XDP does not work here: " + (a ? b : a).error().to_string());
  }
  a = tl::make_unexpected(roce::Error{});
  b = tl::make_unexpected(roce::Error{});
  REQUIRE(run("ip link del roce-x0"));
}
