// Building frames: PathHeaders holds what stays the same for every packet of a path, FrameBuilder
// writes one frame into a slot, ICRC included.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/check.hpp"
#include "wire/headers.hpp"
#include "wire/opcode.hpp"

namespace roce::wire {

inline constexpr std::uint16_t kDefaultPkey = 0xffff;

/// Largest frame that a 4096-byte path MTU can need: Ethernet, VLAN, IPv6, UDP, BTH, AtomicETH (the
/// longest extension), payload, pad and ICRC; without FCS.
inline constexpr std::size_t kMaxFrameBytes = 14 + 4 + 40 + 8 + 12 + 28 + 4096 + 3 + 4;

/// What an address handle fixes.
struct PathAttributes {
  MacAddress source_mac;
  MacAddress destination_mac;
  std::optional<std::uint16_t> vlan_tci;  ///< PCP and VID; none sends untagged
  IpAddress source;                       ///< both of the same family
  IpAddress destination;
  std::uint8_t traffic_class = 0;  ///< DSCP 6 bits, ECN 2
  std::uint8_t hop_limit = 64;
  std::uint16_t udp_source_port = 0xc000;
  std::uint32_t flow_label = 0;  ///< IPv6 only, 20 bits
};

/// Ethernet to UDP headers, laid out once per path.
struct PathHeaders {
  std::array<std::byte, 14 + 4 + 40 + 8> bytes{};
  std::uint8_t l2_bytes = 0;
  std::uint8_t l3_bytes = 0;
  std::uint16_t ipv4_sum = 0;  ///< of the IPv4 header's words but length, identification, checksum
  [[nodiscard]] std::size_t size() const { return l2_bytes + l3_bytes + sizeof(UdpHeader); }
  [[nodiscard]] bool is_v6() const { return l3_bytes == sizeof(Ipv6Header); }
};
[[nodiscard]] PathHeaders make_path_headers(const PathAttributes& path);

/// UDP source port as Linux's drivers derive it: from the flow label, or from both QPNs when that
/// is 0; always >= 0xc000 and the same in both directions.
[[nodiscard]] std::uint16_t udp_source_port(std::uint32_t flow_label, Qpn local, Qpn remote);

/// BTH fields that vary by packet. Pad is computed, transport version is 0.
struct BthFields {
  Opcode opcode{};
  Qpn dest_qpn;
  Psn psn;
  bool ack_request = false;
  bool solicited = false;
  bool mig_req = true;  ///< 1 as hardware sends it: some NICs treat 0 as a slow path
  bool becn = false;
  std::uint16_t pkey = kDefaultPkey;
};

/// Writes one frame: construct, fill extensions and payload in any order, finish().
class FrameBuilder {
 public:
  /// slot: at least kMaxFrameBytes, or as long as this frame needs. payload_bytes: without pad.
  /// Writes all headers and the zero pad; extension headers start as zeros.
  FrameBuilder(std::span<std::byte> slot, const PathHeaders& path, const BthFields& bth,
               std::size_t payload_bytes);

  [[nodiscard]] Reth& reth() { return extension<Reth>(kReth); }
  [[nodiscard]] AtomicEth& atomic_eth() { return extension<AtomicEth>(kAtomicEth); }
  [[nodiscard]] Aeth& aeth() { return extension<Aeth>(kAeth); }
  [[nodiscard]] AtomicAckEth& atomic_ack() { return extension<AtomicAckEth>(kAtomicAckEth); }
  [[nodiscard]] ImmDt& immediate() { return extension<ImmDt>(kImmDt); }
  [[nodiscard]] Ieth& ieth() { return extension<Ieth>(kIeth); }
  [[nodiscard]] Deth& deth() { return extension<Deth>(kDeth); }
  [[nodiscard]] std::span<std::byte> payload() { return {payload_, payload_bytes_}; }

  /// Sets the IPv4 identification (ignored for IPv6), the header checksum and the ICRC, pads to the
  /// Ethernet minimum and returns the frame length without FCS.
  [[nodiscard]] std::size_t finish(std::uint16_t ip_identification = 0);

  /// Fills payload() from source, which has its length and may be payload() itself, and finishes:
  /// in one pass instead of two. Extension headers must be filled in before.
  [[nodiscard]] std::size_t finish_copying(std::span<const std::byte> source,
                                           std::uint16_t ip_identification = 0);

 private:
  void finish_ip(std::uint16_t identification);
  [[nodiscard]] std::size_t finish_frame(std::uint32_t icrc);
  /// IP header to pad.
  [[nodiscard]] std::span<std::byte> covered() {
    return {l3_, static_cast<std::size_t>(slot_.data() + end_ - l3_)};
  }
  template <class T>
  [[nodiscard]] T& extension(ExtensionBits bit) {
    const OpcodeInfo& info = info_of(opcode_);
    ROCE_CHECK(info.has(bit));
    return *view_as<T>(extensions_ + info.offset_of(bit));
  }

  std::span<std::byte> slot_;
  std::byte* l3_;
  std::byte* extensions_;
  std::byte* payload_;
  std::size_t payload_bytes_;
  std::size_t end_;             ///< offset of the ICRC in slot_
  std::uint32_t ipv4_sum_ = 0;  ///< PathHeaders::ipv4_sum and the length
  Opcode opcode_;
  bool is_v6_;
};

}  // namespace roce::wire
