#include "wire/build.hpp"

#include <cstring>

#include "wire/checksum.hpp"
#include "wire/icrc.hpp"

namespace roce::wire {
namespace {

void write_ipv4(Ipv4Header& ip, const PathAttributes& path) {
  ip = {};
  ip.version_ihl = 0x45;
  ip.tos = path.traffic_class;
  ip.flags_fragment.set(Ipv4Header::kDontFragment);
  ip.ttl = path.hop_limit;
  ip.protocol = kIpUdp;
  std::memcpy(ip.source, &path.source.bytes[12], 4);
  std::memcpy(ip.destination, &path.destination.bytes[12], 4);
}

void write_ipv6(Ipv6Header& ip, const PathAttributes& path) {
  ip.version_class_flow.set(6u << 28 | static_cast<std::uint32_t>(path.traffic_class) << 20 |
                            (path.flow_label & 0xfffff));
  ip.payload_length.set(0);
  ip.next_header = kIpUdp;
  ip.hop_limit = path.hop_limit;
  std::memcpy(ip.source, path.source.bytes.data(), 16);
  std::memcpy(ip.destination, path.destination.bytes.data(), 16);
}

}  // namespace

PathHeaders make_path_headers(const PathAttributes& path) {
  ROCE_CHECK(path.source.is_v4() == path.destination.is_v4());
  PathHeaders headers;
  const bool v4 = path.source.is_v4();
  std::byte* at = headers.bytes.data();
  auto* ethernet = view_as<EthernetHeader>(at);
  ethernet->destination = path.destination_mac;
  ethernet->source = path.source_mac;
  const std::uint16_t ether_type = v4 ? kEtherIpv4 : kEtherIpv6;
  at += sizeof(EthernetHeader);
  if (path.vlan_tci) {
    ethernet->ether_type.set(kEtherVlan);
    auto* tag = view_as<VlanTag>(at);
    tag->tci.set(*path.vlan_tci);
    tag->ether_type.set(ether_type);
    at += sizeof(VlanTag);
  } else {
    ethernet->ether_type.set(ether_type);
  }
  headers.l2_bytes = static_cast<std::uint8_t>(at - headers.bytes.data());
  headers.l3_bytes = v4 ? sizeof(Ipv4Header) : sizeof(Ipv6Header);
  if (v4) {
    write_ipv4(*view_as<Ipv4Header>(at), path);
    headers.ipv4_sum = static_cast<std::uint16_t>(~internet_checksum({at, sizeof(Ipv4Header)}));
  } else {
    write_ipv6(*view_as<Ipv6Header>(at), path);
  }
  auto* udp = view_as<UdpHeader>(at + headers.l3_bytes);
  udp->source_port.set(path.udp_source_port);
  udp->destination_port.set(kRoceUdpPort);
  udp->length.set(0);
  udp->checksum.set(0);
  return headers;
}

std::uint16_t udp_source_port(std::uint32_t flow_label, Qpn local, Qpn remote) {
  std::uint64_t label = flow_label & 0xfffff;
  if (label == 0) {
    label = std::uint64_t{local.value()} * remote.value();
    label ^= label >> 20;
    label ^= label >> 40;
    label &= 0xfffff;
  }
  return static_cast<std::uint16_t>(((label & 0x3fff) ^ ((label & 0xfc000) >> 14)) | 0xc000);
}

FrameBuilder::FrameBuilder(std::span<std::byte> slot, const PathHeaders& path, const BthFields& bth,
                           std::size_t payload_bytes)
    : slot_(slot), payload_bytes_(payload_bytes), opcode_(bth.opcode), is_v6_(path.is_v6()) {
  const OpcodeInfo& info = info_of(bth.opcode);
  const std::size_t pad = (0 - payload_bytes) & 3;
  const std::size_t transport =
      sizeof(Bth) + info.extension_bytes + payload_bytes + pad + kIcrcBytes;
  end_ = path.size() + transport - kIcrcBytes;
  ROCE_CHECK(slot.size() >= end_ + kIcrcBytes && slot.size() >= kMinFrameBytes);

  std::memcpy(slot.data(), path.bytes.data(), path.size());
  l3_ = slot.data() + path.l2_bytes;
  const std::size_t udp_length = sizeof(UdpHeader) + transport;
  if (is_v6_) {
    view_as<Ipv6Header>(l3_)->payload_length.set(static_cast<std::uint16_t>(udp_length));
  } else {
    const auto total = static_cast<std::uint16_t>(sizeof(Ipv4Header) + udp_length);
    view_as<Ipv4Header>(l3_)->total_length.set(total);
    ipv4_sum_ = std::uint32_t{path.ipv4_sum} + total;
  }
  std::byte* at = l3_ + path.l3_bytes;
  view_as<UdpHeader>(at)->length.set(static_cast<std::uint16_t>(udp_length));

  auto* header = view_as<Bth>(at + sizeof(UdpHeader));
  header->opcode = static_cast<std::uint8_t>(bth.opcode);
  header->flags = static_cast<std::uint8_t>((bth.solicited ? Bth::kSolicited : 0) |
                                            (bth.mig_req ? Bth::kMigReq : 0) | pad << 4);
  header->pkey.set(bth.pkey);
  header->congestion = bth.becn ? Bth::kBecn : 0;
  header->dest_qpn_field.set(bth.dest_qpn.value());
  header->ack_request_field = bth.ack_request ? Bth::kAckReq : 0;
  header->psn_field.set(bth.psn.value());

  extensions_ = at + sizeof(UdpHeader) + sizeof(Bth);
  std::memset(extensions_, 0, info.extension_bytes);
  payload_ = extensions_ + info.extension_bytes;
  std::memset(payload_ + payload_bytes, 0, pad);
}

std::size_t FrameBuilder::finish(std::uint16_t ip_identification) {
  finish_ip(ip_identification);
  return finish_frame(icrc(covered()));
}

std::size_t FrameBuilder::finish_copying(std::span<const std::byte> source,
                                         std::uint16_t ip_identification) {
  ROCE_CHECK(source.size() == payload_bytes_);
  if (source.empty() || source.data() == payload_) return finish(ip_identification);
  if (payload_bytes_ % 4 != 0) {
    std::memcpy(payload_, source.data(), payload_bytes_);
    return finish(ip_identification);
  }
  finish_ip(ip_identification);
  return finish_frame(icrc_copying(covered(), source));
}

void FrameBuilder::finish_ip(std::uint16_t identification) {
  if (is_v6_) return;
  auto* ip = view_as<Ipv4Header>(l3_);
  ip->identification.set(identification);
  // Not read back from the frame: loads that straddle stores still on their way wait for them.
  ip->checksum.set(internet_checksum({}, ipv4_sum_ + identification));
}

std::size_t FrameBuilder::finish_frame(std::uint32_t icrc) {
  store_icrc(slot_.data() + end_, icrc);
  const std::size_t length = end_ + kIcrcBytes;
  if (length >= kMinFrameBytes) return length;
  std::memset(slot_.data() + length, 0, kMinFrameBytes - length);
  return kMinFrameBytes;
}

}  // namespace roce::wire
