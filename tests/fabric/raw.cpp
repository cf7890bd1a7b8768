#include "fabric/raw.hpp"

#include <array>
#include <cstring>

#include "wire/checksum.hpp"
#include "wire/headers.hpp"
#include "wire/link_layer.hpp"

namespace roce::test {

using fabric::Network;
using namespace roce::wire;

std::vector<std::byte> make_frame(fabric::HostId from, fabric::HostId to, const RawFrame& raw) {
  std::vector<std::byte> frame(raw.length);
  std::optional<std::uint16_t> tci;
  if (raw.pcp < 8) tci = static_cast<std::uint16_t>(raw.pcp << 13 | 100);
  std::byte* at =
      write_link_layer(frame, Network::host_mac(to), Network::host_mac(from), tci, kEtherIpv4);
  const auto rest = static_cast<std::size_t>(frame.data() + frame.size() - at);
  auto& ip = *view_as<Ipv4Header>(at);
  ip.version_ihl = 0x45;
  ip.tos = raw.traffic_class;
  ip.total_length.set(static_cast<std::uint16_t>(rest));
  ip.ttl = 64;
  ip.protocol = kIpUdp;
  std::memcpy(ip.source, &Network::host_address(from).address.bytes[12], 4);
  std::memcpy(ip.destination, &Network::host_address(to).address.bytes[12], 4);
  ip.checksum.set(internet_checksum({at, sizeof(Ipv4Header)}));
  auto& udp = *view_as<UdpHeader>(at + sizeof(Ipv4Header));
  udp.source_port.set(raw.source_port);
  udp.destination_port.set(9);  // discard: no RoCE
  udp.length.set(static_cast<std::uint16_t>(rest - sizeof(Ipv4Header)));
  view_as<Be32>(at + sizeof(Ipv4Header) + sizeof(UdpHeader))->set(raw.sequence);
  return frame;
}

std::uint32_t sequence_of(std::span<const std::byte> frame) {
  const auto link = read_link_layer(frame);
  return view_as<Be32>(link->payload.data() + sizeof(Ipv4Header) + sizeof(UdpHeader))->get();
}

std::size_t send(Network& network, fabric::HostId from,
                 const std::vector<std::vector<std::byte>>& frames) {
  engine::PacketIo& port = network.host_port(from);
  std::size_t sent = 0;
  for (const auto& bytes : frames) {
    std::array<engine::Frame, 1> slot;
    if (port.tx_reserve(slot) != 1) break;
    std::memcpy(slot[0].data, bytes.data(), bytes.size());
    slot[0].length = static_cast<std::uint32_t>(bytes.size());
    sent += port.tx_burst(network.now().instant(), slot);
  }
  return sent;
}

std::vector<std::vector<std::byte>> receive(Network& network, fabric::HostId at) {
  engine::PacketIo& port = network.host_port(at);
  std::vector<std::vector<std::byte>> all;
  std::array<engine::Frame, engine::kBurst> burst;
  while (const std::size_t n = port.rx_burst(network.now().instant(), burst)) {
    for (const engine::Frame& frame : std::span(burst).first(n))
      all.emplace_back(frame.data, frame.data + frame.length);
    port.rx_release({burst.data(), n});
  }
  return all;
}

void Digest::on_frame(fabric::SimTime time, fabric::PortId port, fabric::TapDirection direction,
                      std::span<const std::byte> frame) {
  const auto mix = [&](std::uint64_t word) { value = (value ^ word) * 0x100000001b3; };
  mix(static_cast<std::uint64_t>(time.ps));
  mix(std::uint64_t{port} << 1 | static_cast<std::uint64_t>(direction));
  for (const std::byte b : frame) mix(std::to_integer<std::uint64_t>(b));
}

}  // namespace roce::test
