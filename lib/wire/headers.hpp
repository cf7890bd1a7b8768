// Byte-exact headers. Each struct is an alignment-1 view onto wire bytes; bit positions occur only
// in these accessors. Layouts: IBTA vol. 1 chapter 9 and annex A17, RFC 791, 8200, 768, IEEE
// 802.1Q.
#pragma once

#include <cstdint>

#include "base/address.hpp"
#include "base/types.hpp"
#include "wire/endian.hpp"

namespace roce::wire {

inline constexpr std::uint16_t kRoceUdpPort = 4791;
inline constexpr std::size_t kIcrcBytes = 4;
inline constexpr std::size_t kMinFrameBytes = 60;  ///< Ethernet minimum without FCS

enum EtherType : std::uint16_t {
  kEtherIpv4 = 0x0800,
  kEtherArp = 0x0806,
  kEtherVlan = 0x8100,
  kEtherIpv6 = 0x86dd,
  kEtherFlowControl = 0x8808,
  kEtherRoceV1 = 0x8915,
};

enum IpProtocol : std::uint8_t { kIpIcmp = 1, kIpTcp = 6, kIpUdp = 17, kIpIcmpv6 = 58 };

struct EthernetHeader {
  MacAddress destination;
  MacAddress source;
  Be16 ether_type;
};

struct VlanTag {
  Be16 tci;  ///< PCP 3 bits, DEI 1, VID 12
  Be16 ether_type;
  [[nodiscard]] std::uint16_t vid() const { return tci.get() & 0xfff; }
  [[nodiscard]] std::uint8_t pcp() const { return static_cast<std::uint8_t>(tci.get() >> 13); }
};

struct Ipv4Header {
  std::uint8_t version_ihl;
  std::uint8_t tos;  ///< DSCP 6 bits, ECN 2
  Be16 total_length;
  Be16 identification;
  Be16 flags_fragment;
  std::uint8_t ttl;
  std::uint8_t protocol;
  Be16 checksum;
  std::uint8_t source[4];
  std::uint8_t destination[4];

  static constexpr std::uint16_t kDontFragment = 0x4000;
  [[nodiscard]] bool is_fragment() const { return (flags_fragment.get() & 0x3fff) != 0; }
};

struct Ipv6Header {
  Be32 version_class_flow;  ///< version 4 bits, traffic class 8, flow label 20
  Be16 payload_length;
  std::uint8_t next_header;
  std::uint8_t hop_limit;
  std::uint8_t source[16];
  std::uint8_t destination[16];

  [[nodiscard]] std::uint8_t traffic_class() const {
    return static_cast<std::uint8_t>(version_class_flow.get() >> 20);
  }
  [[nodiscard]] std::uint32_t flow_label() const { return version_class_flow.get() & 0xfffff; }
};

struct UdpHeader {
  Be16 source_port;
  Be16 destination_port;
  Be16 length;
  Be16 checksum;
};

/// Base transport header (IBTA 9.2).
struct Bth {
  std::uint8_t opcode;
  std::uint8_t flags;  ///< SE 0x80, MigReq 0x40, PadCnt 0x30, TVer 0x0f
  Be16 pkey;
  std::uint8_t congestion;  ///< FECN 0x80, BECN 0x40, reserved; masked in the ICRC
  Be24 dest_qpn_field;
  std::uint8_t ack_request_field;  ///< AckReq 0x80, reserved
  Be24 psn_field;

  static constexpr std::uint8_t kSolicited = 0x80, kMigReq = 0x40, kFecn = 0x80, kBecn = 0x40,
                                kAckReq = 0x80;
  [[nodiscard]] bool solicited() const { return (flags & kSolicited) != 0; }
  [[nodiscard]] bool mig_req() const { return (flags & kMigReq) != 0; }
  [[nodiscard]] std::uint8_t pad_count() const { return (flags >> 4) & 3; }
  [[nodiscard]] std::uint8_t transport_version() const { return flags & 0x0f; }
  [[nodiscard]] bool becn() const { return (congestion & kBecn) != 0; }
  [[nodiscard]] bool fecn() const { return (congestion & kFecn) != 0; }
  [[nodiscard]] bool ack_request() const { return (ack_request_field & kAckReq) != 0; }
  [[nodiscard]] Qpn dest_qpn() const { return Qpn{dest_qpn_field.get()}; }
  [[nodiscard]] Psn psn() const { return Psn{psn_field.get()}; }
};

/// RDMA extended transport header.
struct Reth {
  Be64 va;
  Be32 rkey;
  Be32 dma_length;
};

struct AtomicEth {
  Be64 va;
  Be32 rkey;
  Be64 swap_or_add;
  Be64 compare;  ///< ignored by FETCH_ADD
};

/// ACK extended transport header.
struct Aeth {
  std::uint8_t syndrome;
  Be24 msn;
};

struct AtomicAckEth {
  Be64 original;
};

/// Immediate data: four bytes as the application supplied them.
struct ImmDt {
  std::uint8_t bytes[4];
};

struct Ieth {
  Be32 rkey;
};

/// Datagram extended transport header.
struct Deth {
  Be32 qkey;
  std::uint8_t reserved;
  Be24 source_qpn_field;
  [[nodiscard]] Qpn source_qpn() const { return Qpn{source_qpn_field.get()}; }
};

static_assert(sizeof(EthernetHeader) == 14 && sizeof(VlanTag) == 4);
static_assert(sizeof(Ipv4Header) == 20 && sizeof(Ipv6Header) == 40 && sizeof(UdpHeader) == 8);
static_assert(sizeof(Bth) == 12 && sizeof(Reth) == 16 && sizeof(AtomicEth) == 28);
static_assert(sizeof(Aeth) == 4 && sizeof(AtomicAckEth) == 8 && sizeof(ImmDt) == 4);
static_assert(sizeof(Ieth) == 4 && sizeof(Deth) == 8);

}  // namespace roce::wire
