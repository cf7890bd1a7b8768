// DPDK ports that need no rights and no hugepages: ring, null, pcap.
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <thread>

#include "port/dpdk/eal.hpp"
#include "port/frames.hpp"
#include "port/open.hpp"

using namespace roce::test;
using Catch::Matchers::Contains;
using roce::Instant;
using roce::engine::Frame;
using roce::engine::kBurst;
using roce::engine::PacketIo;
using roce::port::OpenPort;
using roce::port::PortOptions;

namespace {

constexpr Instant kNow{};

PortOptions options_for(const std::string& spec) {
  PortOptions options;
  options.spec = roce::port::parse_port_spec(spec).value();
  return options;
}

OpenPort opened(const PortOptions& options) {
  auto port = roce::port::open_port(options);
  INFO((port ? std::string{} : port.error().to_string()));
  REQUIRE(port);
  return std::move(*port);
}

}  // namespace

TEST_CASE("a ring pair carries frames of all sizes both ways", "[port][dpdk]") {
  const OpenPort port = opened(options_for("ring"));
  REQUIRE(port.peer() != nullptr);
  CHECK(port.io().info().mac != port.peer()->info().mac);
  CHECK(port.io().info().mtu == 4200);
  CHECK_FALSE(port.io().info().kernel_has_address);
  for (const bool there : {true, false}) {
    PacketIo& from = there ? port.io() : *port.peer();
    PacketIo& to = there ? *port.peer() : port.io();
    std::uint64_t bytes = 0;
    for (std::uint32_t psn = 0; psn < 200; ++psn) {
      const FrameSpec spec{.psn = psn, .payload = psn * 20};
      send(from, kNow, {&spec, 1});
      CHECK(receive(to, kNow) == std::vector<Arrival>{{psn, true}});
      bytes += std::max<std::size_t>(60, 14 + 20 + 8 + 12 + (psn * 20 + 3) / 4 * 4 + 4);
    }
    CHECK(from.counters().opackets == 200);
    CHECK(from.counters().obytes == bytes);
    CHECK(to.counters().ipackets == 200);
    CHECK(to.counters().ibytes == bytes);
  }
}

TEST_CASE("a full ring refuses frames, which stay with the sender", "[port][dpdk]") {
  const OpenPort port = opened(options_for("ring"));
  std::uint32_t sent = 0;
  for (;;) {
    std::array<Frame, kBurst> slots;
    REQUIRE(port.io().tx_reserve(slots) == kBurst);
    for (std::uint32_t i = 0; i < kBurst; ++i) build_frame(slots[i], {.psn = sent + i});
    const std::size_t taken = port.io().tx_burst(kNow, slots);
    sent += static_cast<std::uint32_t>(taken);
    port.io().tx_release(std::span(slots).subspan(taken));
    if (taken < kBurst) break;
    REQUIRE(sent < 10'000);
  }
  const auto arrived = received_psns(*port.peer(), kNow);
  REQUIRE(arrived.size() == sent);
  for (std::uint32_t psn = 0; psn < sent; ++psn) CHECK(arrived[psn] == psn);
}

TEST_CASE("buffers of a DPDK port come back, from any thread", "[port][dpdk]") {
  const OpenPort port = opened(options_for("ring"));
  // More frames than there are buffers, received on another thread than they were sent.
  std::thread receiver([&] {
    std::size_t got = 0;
    while (got < 20'000) got += receive(*port.peer(), kNow).size();
  });
  std::uint32_t psn = 0;
  while (psn < 20'000) {
    std::array<Frame, 1> slot;
    if (port.io().tx_reserve(slot) == 0) continue;
    build_frame(slot[0], {.psn = psn});
    if (port.io().tx_burst(kNow, slot) == 1)
      ++psn;
    else
      port.io().tx_release(slot);
  }
  receiver.join();
  CHECK(port.peer()->counters().ipackets == 20'000);
}

TEST_CASE("a slot holds the longest frame, and running out of them is no error", "[port][dpdk]") {
  const OpenPort port = opened(options_for("null"));
  std::vector<Frame> all;
  std::array<Frame, kBurst> slots;
  while (const std::size_t n = port.io().tx_reserve(slots)) {
    for (std::size_t i = 0; i < n; ++i) CHECK(slots[i].capacity >= roce::wire::kMaxFrameBytes);
    all.insert(all.end(), &slots[0], &slots[n]);
    REQUIRE(all.size() < 100'000);
  }
  CHECK(all.size() > 2000);
  port.io().tx_release(all);
  CHECK(port.io().tx_reserve(slots) == kBurst);
  port.io().tx_release(slots);
}

TEST_CASE("null takes all frames and yields none", "[port][dpdk]") {
  const OpenPort port = opened(options_for("null"));
  CHECK(port.peer() == nullptr);
  send(port.io(), kNow, psns(0, 100));
  CHECK(port.io().counters().opackets == 100);
  CHECK(receive(port.io(), kNow).empty());
}

TEST_CASE("a frame longer than the MTU is counted and lost, and its neighbours go",
          "[port][dpdk]") {
  PortOptions options = options_for("ring");
  options.mtu = 1500;
  const OpenPort port = opened(options);
  CHECK(port.io().info().mtu == 1500);
  std::array<Frame, 3> slots;
  REQUIRE(port.io().tx_reserve(slots) == 3);
  for (std::uint32_t i = 0; i < 3; ++i)
    build_frame(slots[i], {.psn = i, .payload = i == 1 ? 2048u : 1024u});
  CHECK(port.io().tx_burst(kNow, slots) == 2);
  CHECK(port.io().tx_burst(kNow, std::span(slots).last(1)) == 1);
  CHECK(received_psns(*port.peer(), kNow) == std::vector<std::uint32_t>{0, 2});
  CHECK(port.io().counters().oerrors == 1);
}

TEST_CASE("pcap writes what is sent, and reads it back", "[port][dpdk]") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("roce_pcap_" + std::to_string(::getpid())))
          .string();
  {
    const OpenPort out = opened(options_for("pcap:," + file));
    const FrameSpec specs[] = {{.psn = 1, .payload = 64}, {.psn = 2, .payload = 4096}};
    send(out.io(), kNow, specs);
  }
  {
    const OpenPort in = opened(options_for("pcap:" + file + ","));
    CHECK(receive(in.io(), kNow) == std::vector<Arrival>{{1, true}, {2, true}});
  }
  std::filesystem::remove(file);
}

TEST_CASE("a stack has faults outside the capture", "[port][dpdk]") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("roce_stack_" + std::to_string(::getpid())))
          .string();
  PortOptions options = options_for("wire");
  options.capture_file = file;
  options.faults = {roce::port::parse_fault_rule("drop:psn=1").value()};
  {
    const OpenPort port = opened(options);
    send(port.io(), kNow, psns(0, 3));
    CHECK(received_psns(*port.peer(), kNow) == std::vector<std::uint32_t>{0, 2});
    CHECK(port.capture()->writer().frames() == 2);
    CHECK(port.faults()->counts(0).picked == 1);
  }
  CHECK(std::filesystem::file_size(file) > 2 * 256);
  std::filesystem::remove(file);
}

TEST_CASE("what does not open says why, and how to mend it", "[port][dpdk]") {
  struct Row {
    const char* spec;
    const char* reason;
    const char* fix;
  };
  const Row rows[] = {
      {"afpacket:roce-none0", "no interface roce-none0", "ip link"},
      {"net_nonesuch0", "no driver librte_net_nonesuch.so", "librte-net-nonesuch23"},
      {"0000:ff:1f.7", "does not open", "dpdk-devbind.py"},
      {"pcap:/nonexistent/in.pcap,", "does not open", "capture file"},
      {"net_null0,nonesuch=1", "does not open", "device arguments"},
  };
  for (const Row& row : rows) {
    INFO(row.spec);
    const auto port = roce::port::open_port(options_for(row.spec));
    REQUIRE_FALSE(port);
    CHECK_THAT(port.error().place, Contains(row.spec));
    CHECK_THAT(port.error().reason, Contains(row.reason));
    CHECK_THAT(port.error().fix, Contains(row.fix));
  }
  PortOptions huge = options_for("null");
  huge.mtu = 65000;
  const auto port = roce::port::open_port(huge);
  REQUIRE_FALSE(port);
  CHECK_THAT(port.error().fix, Contains("576 to 9216"));
}

TEST_CASE("EAL is told only what the user has not said", "[port][dpdk]") {
  using roce::port::dpdk::eal_arguments;
  using roce::port::dpdk::EalOptions;
  const auto joined = [](const EalOptions& options) {
    std::string text;
    for (const std::string& argument : eal_arguments(options)) text += argument + " ";
    return text;
  };
  const std::string plain = joined({});
  CHECK_THAT(plain, Contains("--no-pci") && Contains("--file-prefix=roce-") &&
                        Contains("--lcores=0@(") && Contains("--no-telemetry"));
  // On 22.11 the two exclude each other.
  CHECK((plain.find("--no-huge") == std::string::npos) !=
        (plain.find("--in-memory") == std::string::npos));
  EalOptions pci;
  pci.pci_addresses = {"0000:81:00.0", "0000:81:00.1"};
  CHECK_THAT(joined(pci), Contains("-a0000:81:00.0 -a0000:81:00.1") && !Contains("--no-pci"));
  EalOptions own;
  own.extra = {"--no-huge", "-m", "64", "--file-prefix=x", "-l", "0", "--log-level=*:debug"};
  const std::string text = joined(own);
  CHECK_THAT(text, !Contains("roce-") && !Contains("--lcores") && !Contains("-m512") &&
                       !Contains("--in-memory") && !Contains("warning"));
  CHECK_THAT(text, Contains("--no-huge -m 64 --file-prefix=x -l 0 --log-level=*:debug"));
}
