#include "port/spec.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "port/arguments.hpp"

using Catch::Matchers::Contains;
using roce::port::device_args;
using roce::port::MemifRole;
using roce::port::parse_port_spec;
using roce::port::PortKind;
using roce::port::PortSpec;

namespace {

PortSpec good(const std::string& text) {
  const auto spec = parse_port_spec(text);
  INFO(text);
  INFO((spec ? std::string{} : spec.error().to_string()));
  REQUIRE(spec);
  CHECK(spec->text == text);
  return *spec;
}

}  // namespace

TEST_CASE("each form of port spec is understood", "[port][spec]") {
  CHECK(good("0000:81:00.0").kind == PortKind::PCI);
  CHECK(good("0000:81:00.0").target == "0000:81:00.0");
  CHECK(good("81:00.1").target == "0000:81:00.1");
  CHECK(good("0001:AF:1f.7").target == "0001:af:1f.7");
  CHECK(good("10000:e1:00.0").target == "10000:e1:00.0");
  CHECK(good("net_null0").kind == PortKind::VDEV);
  CHECK(good("net_af_packet0,iface=eth0").interface == "eth0");
  CHECK(good("net_tap0,iface=eth0").interface.empty());
  CHECK(good("afpacket:eth0").kind == PortKind::AFPACKET);
  CHECK(good("afpacket:eth0.100").interface == "eth0.100");
  CHECK(good("afxdp:eth0").kind == PortKind::AFXDP);
  CHECK(good("tap:roce0").kind == PortKind::TAP);
  CHECK(good("tap:roce0").interface.empty());
  CHECK(good("memif:/run/m.sock").memif_role == MemifRole::CLIENT);
  CHECK(good("memif:/run/m.sock,role=server,id=7").memif_role == MemifRole::SERVER);
  CHECK(good("memif:/run/m.sock,role=server,id=7").memif_id == 7);
  CHECK(good("pcap:in.pcap,out.pcap").pcap_out == "out.pcap");
  CHECK(good("pcap:in.pcap,").pcap_out.empty());
  CHECK(good("pcap:,out.pcap").pcap_in.empty());
  CHECK(good("ring").kind == PortKind::RING);
  CHECK(good("null").kind == PortKind::NULL_DEVICE);
  CHECK(good("wire").kind == PortKind::WIRE);
  CHECK_FALSE(good("wire").needs_eal());
  CHECK(good("null").needs_eal());
}

TEST_CASE("a bad port spec is named, with its reason and the fix", "[port][spec]") {
  struct Row {
    const char* text;
    const char* reason;
    const char* fix;
  };
  const Row rows[] = {
      {"", "empty", "afpacket:eth0"},
      {"eth0", "no kind of port", "afpacket:eth0"},
      {"Afpacket:eth0", "no kind of port", "afpacket:"},
      {"af_packet:eth0", "no kind of port", "afxdp:"},
      {"dpdk:0", "no kind of port", "PCI address"},
      {"afpacket", "needs an argument", "afpacket:IFACE"},
      {"afpacket:", "interface name is missing", "ip link"},
      {"afpacket:abcdefghijklmnop", "longer than 15", "ip link"},
      {"afpacket:a/b", "holds '/'", "ip link"},
      {"afpacket:a b", "holds ' '", "ip link"},
      {"afpacket:eth0,foo=1", "holds ','", "ip link"},
      {"afpacket:..", "not an interface name", "ip link"},
      {"afxdp", "needs an argument", "afxdp:IFACE"},
      {"afxdp:", "interface name is missing", "afxdp:IFACE"},
      {"tap", "needs an argument", "tap:NAME"},
      {"tap:", "interface name is missing", "tap:NAME"},
      {"tap:much-too-long-a-name", "longer than 15", "tap:NAME"},
      {"memif", "needs an argument", "memif:SOCKET"},
      {"memif:", "socket path is missing", "role=server"},
      {"memif:,role=server", "socket path is missing", "role=server"},
      {"memif:/m,role=master", "role \"master\" is unknown", "role=server"},
      {"memif:/m,role=", "role \"\" is unknown", "role=client"},
      {"memif:/m,id=x", "not a number", "id=N"},
      {"memif:/m,id=-1", "not a number", "id=N"},
      {"memif:/m,id=4294967295", "not a number", "id=N"},
      {"memif:/m,bsize=9000", "no key \"bsize\"", "role=server|client and id=N"},
      {"memif:/m,", "no key \"\"", "role=server|client"},
      {"pcap", "needs an argument", "pcap:IN,OUT"},
      {"pcap:", "input and an output", "pcap:IN,"},
      {"pcap:,", "input and an output", "pcap:IN,"},
      {"pcap:in.pcap", "input and an output", "pcap:,OUT"},
      {"pcap:a,b,c", "more than two", "pcap:IN,OUT"},
      {"pcap:a,a", "same file", "another output"},
      {"ring:2", "takes no argument", "--port ring"},
      {"null:", "takes no argument", "--port null"},
      {"wire:a", "takes no argument", "--port wire"},
      {"rings", "no kind of port", "ring, null, wire"},
      {"81:00", "no kind of port", "PCI address"},
      {"0000:81:00.8", "not a PCI address", "lspci -D"},
      {"0000:81:20.0", "not a PCI address", "lspci -D"},
      {"0000:181:00.0", "not a PCI address", "lspci -D"},
      {"0:0:81:00.0", "not a PCI address", "lspci -D"},
      {"0000:81:00.", "not a PCI address", "lspci -D"},
      {"net_", "not the name of a DPDK device", "net_af_packet0"},
      {"net_TAP0", "not the name of a DPDK device", "net_af_packet0"},
      {"net_tap0,", "not KEY=VALUE", "single commas"},
      {"net_tap0,iface", "not KEY=VALUE", "single commas"},
      {"net_tap0,=x", "not KEY=VALUE", "single commas"},
  };
  for (const Row& row : rows) {
    INFO("spec \"" << row.text << "\"");
    const auto spec = parse_port_spec(row.text);
    REQUIRE_FALSE(spec);
    CHECK_THAT(spec.error().place, Contains("--port"));
    CHECK_THAT(spec.error().place, Contains(row.text));
    CHECK_THAT(spec.error().reason, Contains(row.reason));
    CHECK_THAT(spec.error().fix, Contains(row.fix));
  }
}

TEST_CASE("a socket path that no socket address holds is refused", "[port][spec]") {
  CHECK(parse_port_spec("memif:/" + std::string(102, 'a')));
  CHECK_FALSE(parse_port_spec("memif:/" + std::string(103, 'a')));
}

TEST_CASE("specs become the device arguments of DPDK", "[port][spec]") {
  CHECK(device_args(good("0000:81:00.0"), 0, 1500) == "0000:81:00.0");
  CHECK(device_args(good("net_null0,size=64"), 3, 1500) == "net_null0,size=64");
  CHECK(device_args(good("tap:roce0"), 2, 1500) == "net_tap2,iface=roce0");
  CHECK(device_args(good("pcap:a,b"), 1, 1500) == "net_pcap1,rx_pcap=a,tx_pcap=b");
  CHECK(device_args(good("pcap:,b"), 1, 1500) == "net_pcap1,tx_pcap=b");
  CHECK(device_args(good("null"), 0, 1500) == "net_null0,no-rx=1");
  CHECK(device_args(good("ring"), 0, 1500).empty());
  CHECK_THAT(device_args(good("memif:/m,role=server,id=7"), 0, 4200),
             Contains("role=server,id=7,socket=/m") && Contains("bsize=4224"));
}

TEST_CASE("an AF_PACKET ring holds frames of the MTU in whole blocks", "[port][spec]") {
  for (const unsigned mtu : {576u, 1500u, 4200u, 9000u, 9216u}) {
    INFO("MTU " << mtu);
    const std::string args = device_args(good("afpacket:eth0"), 0, static_cast<std::uint16_t>(mtu));
    const auto value = [&](const std::string& key) {
      const std::size_t at = args.find(key + "=");
      REQUIRE(at != std::string::npos);
      return static_cast<unsigned>(std::stoul(args.substr(at + key.size() + 1)));
    };
    const unsigned frame = value("framesz"), block = value("blocksz"), frames = value("framecnt");
    CHECK(frame >= mtu + 18 + 80);
    CHECK(frame % 16 == 0);
    CHECK(block % frame == 0);
    CHECK(block % 4096 == 0);
    CHECK(frames >= 512);
    CHECK(frames % (block / frame) == 0);
  }
}

TEST_CASE("arguments are split like a shell does", "[port]") {
  using roce::port::split_arguments;
  CHECK(split_arguments("").empty());
  CHECK(split_arguments("  -m 64\t--no-huge ") ==
        std::vector<std::string>{"-m", "64", "--no-huge"});
  CHECK(split_arguments("--vdev \"net_tap0,iface=a b\" '' x'y'z") ==
        std::vector<std::string>{"--vdev", "net_tap0,iface=a b", "", "xyz"});
}
