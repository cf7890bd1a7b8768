#include "port/preflight.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

using Catch::Matchers::Contains;
using roce::port::check;
using roce::port::Finding;
using roce::port::path_mtu_for;
using roce::port::PreflightRoots;
using roce::port::Severity;
using roce::verbs::Mtu;

namespace {

namespace fs = std::filesystem;

/// A machine made of files.
struct Machine {
  Machine() : root(fs::temp_directory_path() / ("roce_machine_" + std::to_string(::getpid()))) {
    fs::remove_all(root);
    roots = {(root / "sys").string(), (root / "proc").string(), (root / "dev").string()};
    file("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
    file("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    8000000 kB\n");
  }
  ~Machine() { fs::remove_all(root); }
  void file(const std::string& name, const std::string& text) const {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  }
  void link(const std::string& name, const std::string& target) const {
    fs::create_directories((root / name).parent_path());
    fs::create_symlink(target, root / name);
  }
  void pci(const std::string& driver, const std::string& group = "17") const {
    const std::string at = "sys/bus/pci/devices/0000:81:00.0/";
    file(at + "class", "0x020000\n");
    file(at + "numa_node", "-1\n");
    if (!driver.empty()) link(at + "driver", "../../drivers/" + driver);
    if (!group.empty()) link(at + "iommu_group", "../../kernel/iommu_groups/" + group);
    file("dev/vfio/17", "");
  }
  [[nodiscard]] std::vector<Finding> look(const std::string& spec) const {
    return check(roce::port::parse_port_spec(spec).value(), {}, roots);
  }
  fs::path root;
  PreflightRoots roots;
};

/// The finding that says so; fails the test when there is none.
Finding finding(const std::vector<Finding>& findings, const std::string& what) {
  std::string all;
  for (const Finding& f : findings) {
    if (f.what.find(what) != std::string::npos) return f;
    all += f.to_string() + "\n";
  }
  FAIL("no finding \"" << what << "\" among\n" << all);
  return {};
}

bool has_errors(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.severity == Severity::ERROR; });
}

}  // namespace

TEST_CASE("the path MTU is the largest that leaves 80 bytes for headers", "[port][preflight]") {
  CHECK_FALSE(path_mtu_for(335));
  CHECK(path_mtu_for(336) == Mtu::MTU_256);
  CHECK(path_mtu_for(1500) == Mtu::MTU_1024);
  CHECK(path_mtu_for(2127) == Mtu::MTU_1024);
  CHECK(path_mtu_for(2128) == Mtu::MTU_2048);
  CHECK(path_mtu_for(4175) == Mtu::MTU_2048);
  CHECK(path_mtu_for(4176) == Mtu::MTU_4096);
  CHECK(path_mtu_for(9000) == Mtu::MTU_4096);
}

TEST_CASE("a PCI device is judged by its driver", "[port][preflight]") {
  SECTION("absent") {
    const Machine machine;
    const Finding f = finding(machine.look("0000:81:00.0"), "there is no PCI device 0000:81:00.0");
    CHECK(f.severity == Severity::ERROR);
    CHECK_THAT(f.command, Contains("lspci"));
  }
  SECTION("held by the kernel") {
    const Machine machine;
    machine.pci("ixgbe");
    const Finding f = finding(machine.look("0000:81:00.0"), "is bound to ixgbe");
    CHECK(f.severity == Severity::ERROR);
    CHECK_THAT(f.command, Contains("dpdk-devbind.py -b vfio-pci 0000:81:00.0"));
  }
  SECTION("unbound") {
    const Machine machine;
    machine.pci("");
    CHECK(finding(machine.look("0000:81:00.0"), "has no driver").severity == Severity::ERROR);
  }
  SECTION("ready") {
    const Machine machine;
    machine.pci("vfio-pci");
    CHECK_FALSE(has_errors(machine.look("0000:81:00.0")));
  }
  SECTION("bifurcated") {
    const Machine machine;
    machine.pci("mlx5_core", "");
    CHECK_FALSE(has_errors(machine.look("0000:81:00.0")));
  }
  SECTION("without an IOMMU") {
    const Machine machine;
    machine.pci("vfio-pci", "");
    CHECK_THAT(finding(machine.look("0000:81:00.0"), "has no IOMMU group").command,
               Contains("iommu=on"));
  }
  SECTION("not a NIC") {
    const Machine machine;
    machine.pci("vfio-pci");
    machine.file("sys/bus/pci/devices/0000:81:00.0/class", "0x030000\n");
    CHECK(finding(machine.look("0000:81:00.0"), "no network device").severity == Severity::ERROR);
  }
  SECTION("on another NUMA node") {
    const Machine machine;
    machine.pci("vfio-pci");
    machine.file("sys/bus/pci/devices/0000:81:00.0/numa_node", "1\n");
    machine.file("sys/devices/system/node/node1/cpu999", "");
    const Finding f = finding(machine.look("0000:81:00.0"), "is on NUMA node 1");
    CHECK(f.severity == Severity::WARNING);
    CHECK_THAT(f.command, Contains("--cpunodebind=1"));
  }
}

TEST_CASE("the state of a kernel interface is found", "[port][preflight]") {
  Machine machine;
  SECTION("an absent one is an error") {
    CHECK(finding(machine.look("afpacket:roce-none0"), "there is no interface").severity ==
          Severity::ERROR);
  }
  SECTION("missing rights are an error") {
    machine.file("proc/self/status", "CapEff:\t0000000000000000\n");
    const Finding f = finding(machine.look("afpacket:lo"), "lacks cap_net_raw");
    CHECK(f.severity == Severity::ERROR);
    CHECK_THAT(f.command, Contains("setcap"));
    CHECK(finding(machine.look("tap:x"), "lacks cap_net_admin").severity == Severity::ERROR);
  }
  SECTION("Soft-RoCE on it is a warning with the command that removes it") {
    machine.file("sys/class/infiniband/rxe0/parent", "lo\n");
    const Finding f = finding(machine.look("afpacket:lo"), "RDMA device rxe0 runs on lo");
    CHECK(f.severity == Severity::WARNING);
    CHECK(f.command == "rdma link delete rxe0");
  }
  SECTION("a NIC's own RoCE is an error, since it takes the packets") {
    machine.file("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "lo\n");
    machine.link("sys/class/infiniband/mlx5_0/device/driver", "../../drivers/mlx5_core");
    CHECK(finding(machine.look("afpacket:lo"), "RDMA device mlx5_0").severity == Severity::ERROR);
  }
  SECTION("RDMA on another interface is no matter") {
    machine.file("sys/class/infiniband/rxe0/parent", "eth7\n");
    for (const Finding& f : machine.look("afpacket:lo"))
      CHECK_THAT(f.what, !Contains("RDMA device"));
  }
  SECTION("a bound port 4791 is a warning") {
    machine.file("proc/net/udp6",
                 "  sl  local_address rem_address st\n"
                 "  12: 00000000000000000000000000000000:12B7 0000:0000 07\n");
    CHECK(finding(machine.look("afpacket:lo"), "UDP port 4791 is bound").severity ==
          Severity::WARNING);
  }
  SECTION("another bound port is no matter") {
    machine.file("proc/net/udp", "  sl  local\n  12: 00000000:12B8 00000000:12B7 07\n");
    for (const Finding& f : machine.look("afpacket:lo")) CHECK_THAT(f.what, !Contains("4791"));
  }
}

TEST_CASE("the MTU of an interface is judged with its path MTU", "[port][preflight]") {
  const Machine machine;  // lo has 65536
  CHECK_THAT(finding(machine.look("afpacket:lo"), "path MTU").what, Contains("path MTU of 4096"));
  const auto spec = roce::port::parse_port_spec("afpacket:lo").value();
  CHECK_THAT(finding(check(spec, 1500, machine.roots), "path MTU").what,
             Contains("path MTU of 1024"));
  const auto xdp = machine.look("afxdp:lo");
  CHECK(finding(xdp, "has an MTU of 65536").severity == Severity::ERROR);
  CHECK(finding(xdp, "AF_XDP takes all frames").severity == Severity::INFO);
  CHECK(xdp.front().severity == Severity::ERROR);  // errors come first
}

TEST_CASE("files and sockets that a port needs are looked for", "[port][preflight]") {
  const Machine machine;
  CHECK(finding(machine.look("tap:roce-none0"), "/dev/net/tun").severity == Severity::ERROR);
  CHECK(finding(machine.look("pcap:/nonexistent/a,"), "cannot be read").severity ==
        Severity::ERROR);
  CHECK(finding(machine.look("pcap:,/nonexistent/a"), "not writable").severity == Severity::ERROR);
  CHECK(finding(machine.look("memif:/nonexistent/a"), "there is no folder").severity ==
        Severity::ERROR);
  CHECK_THAT(finding(machine.look("memif:" + (machine.root / "s").string()), "no socket").command,
             Contains("role=server"));
  machine.file("s", "");
  CHECK(finding(machine.look("memif:" + (machine.root / "s").string() + ",role=server"), "socket")
            .severity == Severity::WARNING);
}

TEST_CASE("little memory is a warning, and the wire asks for nothing", "[port][preflight]") {
  const Machine machine;
  CHECK(machine.look("wire").empty());
  machine.file("proc/meminfo", "MemAvailable:    80000 kB\n");
  CHECK(finding(machine.look("wire"), "78 MiB").severity == Severity::WARNING);
}

TEST_CASE("a finding reads as severity, fact, reason and command", "[port][preflight]") {
  const Finding f{Severity::WARNING, "interface x is down", "nothing is sent", "ip link set x up"};
  CHECK(f.to_string() == "warning: interface x is down: nothing is sent\n    ip link set x up");
}
