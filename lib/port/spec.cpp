#include "port/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <vector>

namespace roce::port {
namespace {

constexpr std::size_t kMaxInterfaceName = 15;  // IFNAMSIZ - 1
constexpr std::size_t kMaxSocketPath = 103;    // sun_path without the final zero and ".new"

constexpr std::string_view kHelp =
    "  0000:81:00.0                  a PCI device bound to a DPDK driver\n"
    "  net_NAME0,KEY=VALUE,...       any DPDK virtual device\n"
    "  afpacket:IFACE                a kernel interface, over AF_PACKET\n"
    "  afxdp:IFACE                   a kernel interface, over AF_XDP\n"
    "  tap:NAME                      a new TAP interface\n"
    "  memif:SOCKET[,role=server]    shared memory with another process\n"
    "  pcap:IN,OUT                   frames from a capture file and into one\n"
    "  ring, wire                    two ports in this process (with DPDK, without)\n"
    "  null                          sends into nothing\n";

std::string place(std::string_view text) {
  return fmt::format("--port {}", text.empty() ? "\"\"" : text);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// value of all of text in the given base, when it is that and at most limit.
std::optional<std::uint32_t> number(std::string_view text, int base, std::uint32_t limit) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || value > limit) return {};
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// Domain:bus:device.function with the domain optional. Nothing when it does not look like one.
std::optional<std::string> pci_address(std::string_view text) {
  auto parts = split(text, ':');
  if (parts.size() == 2) parts.insert(parts.begin(), "0");
  if (parts.size() != 3) return {};
  const auto device_function = split(parts[2], '.');
  if (device_function.size() != 2) return {};
  const auto domain = number(parts[0], 16, 0xffff'ffff);
  const auto bus = number(parts[1], 16, 0xff);
  const auto device = number(device_function[0], 16, 0x1f);
  const auto function = number(device_function[1], 16, 7);
  if (!domain || !bus || !device || !function) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", *domain, *bus, *device, *function);
}

/// Whether text was meant as a PCI address: digits and separators only, with a colon first.
bool resembles_pci(std::string_view text) {
  return text.find(':') != std::string_view::npos && text.find('.') != std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' ||
                  c == '.';
         });
}

/// What is wrong with an interface name; empty when nothing is.
std::string interface_name_fault(std::string_view name) {
  if (name.empty()) return "the interface name is missing";
  if (name.size() > kMaxInterfaceName)
    return fmt::format("interface name \"{}\" is longer than {} characters", name,
                       kMaxInterfaceName);
  if (name == "." || name == "..") return fmt::format("\"{}\" is not an interface name", name);
  for (const char c : name)
    if (c == '/' || c == ',' || c == ':' || c == '=' || static_cast<unsigned char>(c) <= ' ')
      return fmt::format("interface name \"{}\" holds '{}', which no interface name may", name, c);
  return {};
}

Result<PortSpec> parse_interface(PortSpec spec, std::string_view name, std::string_view word) {
  const std::string fault = interface_name_fault(name);
  if (!fault.empty())
    return failure(place(spec.text), fault,
                   spec.kind == PortKind::TAP
                       ? std::string("write tap:NAME with a name for the new interface")
                       : fmt::format("write {}:IFACE with a name that \"ip link\" lists", word));
  spec.target = std::string(name);
  if (spec.kind != PortKind::TAP) spec.interface = spec.target;
  return spec;
}

Result<PortSpec> parse_memif(PortSpec spec, std::string_view rest) {
  const auto parts = split(rest, ',');
  const std::string where = place(spec.text);
  if (parts[0].empty())
    return failure(where, "the socket path is missing", "write memif:/run/name.sock[,role=server]");
  if (parts[0].size() > kMaxSocketPath)
    return failure(where, fmt::format("the socket path is longer than {} bytes", kMaxSocketPath),
                   "use a shorter path");
  spec.target = std::string(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = std::min(parts[i].find('='), parts[i].size());
    const std::string_view key = parts[i].substr(0, equals);
    const std::string_view value = parts[i].substr(std::min(equals + 1, parts[i].size()));
    if (key == "role" && (value == "server" || value == "client")) {
      spec.memif_role = value == "server" ? MemifRole::SERVER : MemifRole::CLIENT;
    } else if (key == "role") {
      return failure(where, fmt::format("role \"{}\" is unknown", value),
                     "write role=server on one side and role=client on the other");
    } else if (key == "id") {
      const auto id = number(value, 10, 0xffff'fffe);
      if (!id)
        return failure(where, fmt::format("id \"{}\" is not a number", value),
                       "write id=N, N >= 0");
      spec.memif_id = *id;
    } else {
      return failure(where, fmt::format("memif has no key \"{}\"", key),
                     "its keys are role=server|client and id=N");
    }
  }
  return spec;
}

Result<PortSpec> parse_pcap(PortSpec spec, std::string_view rest) {
  const auto parts = split(rest, ',');
  if (parts.size() != 2 || (parts[0].empty() && parts[1].empty()))
    return failure(place(spec.text),
                   parts.size() > 2 ? "there are more than two file names"
                                    : "an input and an output file are expected",
                   "write pcap:IN,OUT, or pcap:IN, to read only, or pcap:,OUT to write only");
  if (parts[0] == parts[1])
    return failure(place(spec.text), "input and output are the same file",
                   "name another output file");
  spec.pcap_in = std::string(parts[0]);
  spec.pcap_out = std::string(parts[1]);
  return spec;
}

Result<PortSpec> parse_vdev(PortSpec spec) {
  const auto parts = split(spec.text, ',');
  const std::string_view name = parts[0];
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || c == '_';
  });
  if (!good || name.size() <= 4)
    return failure(place(spec.text), fmt::format("\"{}\" is not the name of a DPDK device", name),
                   "write net_DRIVERN, such as net_af_packet0");
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].find('=') == std::string_view::npos || parts[i].front() == '=')
      return failure(place(spec.text),
                     fmt::format("device argument \"{}\" is not KEY=VALUE", parts[i]),
                     "separate arguments by single commas and write each as KEY=VALUE");
    if (parts[i].starts_with("iface=") &&
        (name.starts_with("net_af_packet") || name.starts_with("net_af_xdp")))
      spec.interface = std::string(parts[i].substr(6));
  }
  spec.target = spec.text;
  return spec;
}

Result<PortSpec> parse_bare_word(PortSpec spec, std::string_view word) {
  struct Row {
    std::string_view word;
    PortKind kind;
  };
  constexpr Row rows[] = {
      {"ring", PortKind::RING}, {"null", PortKind::NULL_DEVICE}, {"wire", PortKind::WIRE}};
  for (const Row& row : rows) {
    if (word == row.word) {
      spec.kind = row.kind;
      return spec;
    }
  }
  for (const std::string_view needs : {"afpacket", "afxdp", "tap", "memif", "pcap"})
    if (word == needs)
      return failure(place(spec.text), fmt::format("\"{}\" needs an argument", word),
                     fmt::format("write {0}:{1}", word,
                                 word == "memif"  ? "SOCKET[,role=server]"
                                 : word == "pcap" ? "IN,OUT"
                                 : word == "tap"  ? "NAME"
                                                  : "IFACE"));
  return failure(
      place(spec.text), fmt::format("\"{}\" is no kind of port", word),
      fmt::format("for the kernel interface of that name write afpacket:{}; other kinds "
                  "are a PCI address, net_*, afxdp:, tap:, memif:, pcap:, ring, null, wire",
                  word.empty() ? "IFACE" : word));
}

/// The geometry of an AF_PACKET ring. The driver maps blocks back to back and finds frames by
/// multiples of framesz, so that a block must be whole pages and whole frames, and framecnt whole
/// blocks.
struct AfPacketRing {
  std::uint32_t frame, block, frames;
};
AfPacketRing af_packet_ring(std::uint16_t mtu) {
  constexpr std::uint32_t kKernelHeader = 80;  // TPACKET2_HDRLEN and alignment, <linux/if_packet.h>
  constexpr std::uint32_t kEthernet = 14 + 4, kPage = 4096, kFrames = 1024;
  // Not a power of two, which would double the driver's buffers at 4096 + headers.
  const std::uint32_t frame = (mtu + kEthernet + kKernelHeader + 511) / 512 * 512;
  const std::uint32_t block = std::lcm(frame, kPage);
  const std::uint32_t per_block = block / frame;
  return {frame, block, kFrames / per_block * per_block};
}

}  // namespace

Result<PortSpec> parse_port_spec(std::string_view text) {
  PortSpec spec;
  spec.text = std::string(text);
  if (text.empty())
    return failure(place(text), "the port is empty", "write for example --port afpacket:eth0");
  if (const auto address = pci_address(text)) {
    spec.kind = PortKind::PCI;
    spec.target = *address;
    return spec;
  }
  if (text.starts_with("net_") || text.starts_with("eth_")) {
    spec.kind = PortKind::VDEV;
    return parse_vdev(std::move(spec));
  }
  if (resembles_pci(text))
    return failure(place(text), "this is not a PCI address",
                   "write DOMAIN:BUS:DEVICE.FUNCTION in hexadecimal, such as 0000:81:00.0, as "
                   "\"lspci -D\" shows it");
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return parse_bare_word(std::move(spec), text);

  const std::string_view word = text.substr(0, colon);
  const std::string_view rest = text.substr(colon + 1);
  if (word == "afpacket" || word == "afxdp" || word == "tap") {
    spec.kind = word == "afpacket" ? PortKind::AFPACKET
                : word == "afxdp"  ? PortKind::AFXDP
                                   : PortKind::TAP;
    return parse_interface(std::move(spec), rest, word);
  }
  if (word == "memif") {
    spec.kind = PortKind::MEMIF;
    return parse_memif(std::move(spec), rest);
  }
  if (word == "pcap") {
    spec.kind = PortKind::PCAP;
    return parse_pcap(std::move(spec), rest);
  }
  if (word == "ring" || word == "null" || word == "wire")
    return failure(place(text), fmt::format("\"{}\" takes no argument", word),
                   fmt::format("write --port {}", word));
  return parse_bare_word(std::move(spec), word);
}

std::string device_args(const PortSpec& spec, unsigned index, std::uint16_t mtu) {
  switch (spec.kind) {
    case PortKind::PCI:
    case PortKind::VDEV:
      return spec.target;
    case PortKind::AFPACKET: {
      const AfPacketRing ring = af_packet_ring(mtu);
      return fmt::format(
          "net_af_packet{},iface={},blocksz={},framesz={},framecnt={},qdisc_bypass=1", index,
          spec.target, ring.block, ring.frame, ring.frames);
    }
    case PortKind::AFXDP:
      return fmt::format("net_af_xdp{},iface={},start_queue=0,queue_count=1", index, spec.target);
    case PortKind::TAP:
      return fmt::format("net_tap{},iface={}", index, spec.target);
    case PortKind::MEMIF: {
      const unsigned buffer = std::max<unsigned>(2048, (mtu + 18u + 127u) / 128u * 128u);
      return fmt::format("net_memif{},role={},id={},socket={},socket-abstract=no,bsize={},rsize=10",
                         index, spec.memif_role == MemifRole::SERVER ? "server" : "client",
                         spec.memif_id, spec.target, buffer);
    }
    case PortKind::PCAP: {
      std::string args = fmt::format("net_pcap{}", index);
      if (!spec.pcap_in.empty()) args += ",rx_pcap=" + spec.pcap_in;
      if (!spec.pcap_out.empty()) args += ",tx_pcap=" + spec.pcap_out;
      return args;
    }
    case PortKind::NULL_DEVICE:
      return fmt::format("net_null{},no-rx=1", index);
    case PortKind::RING:
    case PortKind::WIRE:
      return {};
  }
  return {};
}

std::string_view port_spec_help() {
  return kHelp;
}

}  // namespace roce::port
