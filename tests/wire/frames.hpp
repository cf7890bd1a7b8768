// Frames for the wire tests: from hex, by FrameBuilder, and rebuilt from a parsed Packet.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "wire/build.hpp"
#include "wire/packet.hpp"

namespace roce::test {

using Bytes = std::vector<std::byte>;

inline Bytes from_hex(std::string_view text) {
  Bytes bytes;
  const auto digit = [](char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  };
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(digit(text[i]) << 4 | digit(text[i + 1])));
  return bytes;
}

inline std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<std::size_t>(b) >> 4];
    text += kDigits[std::to_integer<std::size_t>(b) & 15];
  }
  return text;
}

/// 192.0.2.1 -> 192.0.2.2 or 2001:db8::1 -> 2001:db8::2, as the golden vectors have it.
inline wire::PathAttributes sample_path(bool v6 = false) {
  wire::PathAttributes path;
  path.source_mac = {{2, 0, 0, 0, 0, 1}};
  path.destination_mac = {{2, 0, 0, 0, 0, 2}};
  path.source = *IpAddress::from_string(v6 ? "2001:db8::1" : "192.0.2.1");
  path.destination = *IpAddress::from_string(v6 ? "2001:db8::2" : "192.0.2.2");
  path.udp_source_port = 0xc123;
  return path;
}

/// Builds a frame; fill gets the builder before it is finished.
template <class Fill>
Bytes build_frame(const wire::PathAttributes& path, const wire::BthFields& bth, std::size_t payload,
                  Fill fill) {
  Bytes frame(wire::kMaxFrameBytes, std::byte{0xcc});
  wire::FrameBuilder builder(frame, wire::make_path_headers(path), bth, payload);
  fill(builder);
  frame.resize(builder.finish());
  return frame;
}
inline Bytes build_frame(const wire::PathAttributes& path, const wire::BthFields& bth,
                         std::size_t payload) {
  return build_frame(path, bth, payload, [&](wire::FrameBuilder& builder) {
    for (std::size_t i = 0; i < payload; ++i) builder.payload()[i] = static_cast<std::byte>(i * 7);
  });
}

/// IP header to ICRC of a frame that parses.
inline std::span<const std::byte> ip_packet(const wire::Packet& packet) {
  return {packet.l3, packet.l3_bytes};
}

/// The frame that path and fields of a parsed packet describe, built anew.
inline Bytes rebuild(const wire::Packet& p) {
  const auto& ethernet = *wire::view_as<wire::EthernetHeader>(p.l2);
  wire::PathAttributes path;
  path.source_mac = ethernet.source;
  path.destination_mac = ethernet.destination;
  if (p.l3 - p.l2 > 14) path.vlan_tci = p.vlan_tci;
  path.source = p.source_ip();
  path.destination = p.destination_ip();
  path.traffic_class = p.traffic_class;
  path.udp_source_port = p.udp().source_port.get();
  std::uint16_t identification = 0;
  if (p.is_v6) {
    const auto& ip = *wire::view_as<wire::Ipv6Header>(p.l3);
    path.hop_limit = ip.hop_limit;
    path.flow_label = ip.flow_label();
  } else {
    const auto& ip = *wire::view_as<wire::Ipv4Header>(p.l3);
    path.hop_limit = ip.ttl;
    identification = ip.identification.get();
  }
  wire::BthFields bth;
  bth.opcode = p.opcode;
  bth.dest_qpn = p.dest_qpn();
  bth.psn = p.psn();
  bth.ack_request = p.bth->ack_request();
  bth.solicited = p.bth->solicited();
  bth.mig_req = p.bth->mig_req();
  bth.becn = p.bth->becn();
  bth.pkey = p.bth->pkey.get();

  Bytes frame(wire::kMaxFrameBytes + 8192);
  wire::FrameBuilder builder(frame, wire::make_path_headers(path), bth, p.payload.size());
  const auto& info = p.info();
  if (info.has(wire::kReth)) builder.reth() = p.reth();
  if (info.has(wire::kAtomicEth)) builder.atomic_eth() = p.atomic_eth();
  if (info.has(wire::kAeth)) builder.aeth() = p.aeth();
  if (info.has(wire::kAtomicAckEth)) builder.atomic_ack() = p.atomic_ack();
  if (info.has(wire::kImmDt)) builder.immediate() = p.immediate();
  if (info.has(wire::kIeth)) builder.ieth() = p.ieth();
  if (info.has(wire::kDeth)) builder.deth() = p.deth();
  if (!p.payload.empty()) std::memcpy(builder.payload().data(), p.payload.data(), p.payload.size());
  frame.resize(builder.finish(identification));
  return frame;
}

inline wire::Verdict verdict_of(std::span<const std::byte> frame,
                                wire::IcrcCheck check = wire::IcrcCheck::VERIFY) {
  wire::Packet packet;
  return wire::parse(frame, check, packet);
}

}  // namespace roce::test

namespace Catch {
template <>
struct StringMaker<roce::wire::Verdict> {
  static std::string convert(roce::wire::Verdict v) {
    return std::string{roce::wire::verdict_name(v)};
  }
};
}  // namespace Catch
