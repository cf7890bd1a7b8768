// Packet: a validated view onto a received RoCEv2 frame, and parse(), which makes one.
//
// parse() validates opcode, pad and every length before it touches what they describe. A Packet
// owns nothing: it lives as long as the frame it points into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "wire/headers.hpp"
#include "wire/opcode.hpp"

namespace roce::wire {

/// What parse() says of a frame. Each value from FRAME_TOO_SHORT on is a reject with its own
/// counter.
enum class Verdict : std::uint8_t {
  ROCE,          ///< a RoCEv2 packet; the Packet is filled in
  ARP,           ///< Packet::l2, l3 are set
  ICMP,          ///< likewise
  ICMPV6,        ///< likewise
  FLOW_CONTROL,  ///< an 802.3x/802.1Qbb frame; Packet::l2, l3 are set
  OTHER,         ///< something else; not ours to judge
  FRAME_TOO_SHORT,
  IP_VERSION,
  IPV4_OPTIONS,  ///< IHL is not 5; IP_OPTIONS and IP_CHECKSUM are macros of <netinet/in.h>
  IP_FRAGMENT,
  IP_LENGTH,  ///< total or payload length runs past the frame or is too small
  IPV4_CHECKSUM,
  UDP_LENGTH,  ///< does not agree with the IP length
  BTH_TOO_SHORT,
  UNKNOWN_OPCODE,
  TRANSPORT_VERSION,
  PACKET_LENGTH,  ///< too short for its extension headers, pad and ICRC, or not a multiple of four
  PAYLOAD_NOT_ALLOWED,  ///< payload behind an opcode that carries none
  ICRC,
};
inline constexpr std::size_t kVerdicts = static_cast<std::size_t>(Verdict::ICRC) + 1;
inline constexpr Verdict kFirstReject = Verdict::FRAME_TOO_SHORT;

/// Lower-case counter name, such as "icrc" or "unknown_opcode".
[[nodiscard]] std::string_view verdict_name(Verdict verdict);

/// Whether parse() computes and compares the ICRC.
enum class IcrcCheck : std::uint8_t { VERIFY, SKIP };

struct Packet {
  const std::byte* l2 = nullptr;  ///< Ethernet header
  const std::byte* l3 = nullptr;  ///< IP header (or ARP, flow control body)
  const Bth* bth = nullptr;
  const std::byte* extensions = nullptr;  ///< first byte behind the BTH
  std::span<const std::byte> payload;     ///< without pad and ICRC
  std::uint32_t l3_bytes = 0;             ///< IP header to ICRC inclusive, by the IP length
  Opcode opcode{};
  std::uint8_t traffic_class = 0;  ///< DSCP 6 bits, ECN 2
  std::uint16_t vlan_tci = 0;      ///< 0 when untagged
  bool is_v6 = false;

  [[nodiscard]] const OpcodeInfo& info() const { return info_of(opcode); }
  [[nodiscard]] Psn psn() const { return bth->psn(); }
  [[nodiscard]] Qpn dest_qpn() const { return bth->dest_qpn(); }
  /// The ECN field says Congestion Experienced (RFC 3168).
  [[nodiscard]] bool congestion_experienced() const { return (traffic_class & 3) == 3; }
  /// Something that congestion control has to look at: a mark, or word of marks elsewhere.
  [[nodiscard]] bool signals_congestion() const {
    return congestion_experienced() || bth->becn() || opcode == Opcode::CNP;
  }

  [[nodiscard]] IpAddress source_ip() const;
  [[nodiscard]] IpAddress destination_ip() const;
  [[nodiscard]] const MacAddress& source_mac() const { return view_as<EthernetHeader>(l2)->source; }
  [[nodiscard]] const UdpHeader& udp() const {
    return *view_as<UdpHeader>(reinterpret_cast<const std::byte*>(bth) - sizeof(UdpHeader));
  }

  // Each accessor below asks for a header that the opcode carries (info().has(...)).
  [[nodiscard]] const Reth& reth() const { return extension<Reth>(kReth); }
  [[nodiscard]] const AtomicEth& atomic_eth() const { return extension<AtomicEth>(kAtomicEth); }
  [[nodiscard]] const Aeth& aeth() const { return extension<Aeth>(kAeth); }
  [[nodiscard]] const AtomicAckEth& atomic_ack() const {
    return extension<AtomicAckEth>(kAtomicAckEth);
  }
  [[nodiscard]] const ImmDt& immediate() const { return extension<ImmDt>(kImmDt); }
  [[nodiscard]] const Ieth& ieth() const { return extension<Ieth>(kIeth); }
  [[nodiscard]] const Deth& deth() const { return extension<Deth>(kDeth); }

 private:
  template <class T>
  [[nodiscard]] const T& extension(ExtensionBits bit) const {
    return *view_as<T>(extensions + info().offset_of(bit));
  }
};

/// Classifies a frame and, when the verdict is ROCE, fills packet. Never reads beyond frame.
/// frame: from the Ethernet header, without FCS; trailing padding is allowed and ignored.
[[nodiscard]] Verdict parse(std::span<const std::byte> frame, IcrcCheck icrc, Packet& packet);

/// The same from the IP header on, for captures without Ethernet. packet.l2 and vlan_tci are left
/// as they are.
[[nodiscard]] Verdict parse_ip(std::span<const std::byte> ip, IcrcCheck icrc, Packet& packet);

}  // namespace roce::wire
