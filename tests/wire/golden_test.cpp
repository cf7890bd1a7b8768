// Packets whose ICRC two other implementations agree on: scapy's RoCE layer and zlib's crc32 by the
// recipe of IBTA annex A17. IP header to ICRC.
#include "frames.hpp"
#include "wire/icrc.hpp"
#include "wire/syndrome.hpp"

using namespace roce;
using namespace roce::wire;
using namespace roce::test;

namespace {

const std::string kPayload33 = [] {
  std::string text;
  for (int i = 0; i < 33; ++i) text += to_hex(Bytes{static_cast<std::byte>(i)});
  return text;
}();

const std::string kAck =
    "45000030000040004011b6b9c0000201c0000202c12312b7001c00001140ffff0000001200000abc1f000005"
    "07ba7dd5";
const std::string kWriteOnly33 =
    "45000060000040004011b689c0000201c0000202c12312b7004c00000a70ffff0000001180000abc"
    "00007f00000010000000123400000021" +
    kPayload33 + "0000000df9fff5";
const std::string kReadRequest =
    "4500003c000040004011b6adc0000201c0000202c12312b7002800000c40ffff0000001180fffffe"
    "00007f0000001000000012340000100003406349";
const std::string kNakV6 =
    "60000000001c114020010db800000000000000000000000120010db8000000000000000000000002"
    "c12312b7001c00001140ffff0000001200000abc600000053905160b";
const std::string kSendV6 =
    "600000000020114020010db800000000000000000000000120010db8000000000000000000000002"
    "c12312b7002000000470ffff000000118000000168656c6c6f0000004f5a3641";
const std::string kCnp =
    "45c2003c000040004011b5ebc0000201c0000202000012b7002800008100ffff400000120000000000000000"
    "0000000000000000000000000c476b9a";

BthFields fields(Opcode opcode, std::uint32_t dest_qpn, std::uint32_t psn) {
  BthFields bth;
  bth.opcode = opcode;
  bth.dest_qpn = Qpn{dest_qpn};
  bth.psn = Psn{psn};
  return bth;
}

void set_reth(FrameBuilder& builder, std::uint32_t dma_length) {
  builder.reth().va.set(0x7f0000001000);
  builder.reth().rkey.set(0x1234);
  builder.reth().dma_length.set(dma_length);
}

/// What a frame holds from its IP header to the ICRC, as hex.
std::string ip_hex(const Bytes& frame) {
  Packet packet;
  REQUIRE(parse(frame, IcrcCheck::VERIFY, packet) == Verdict::ROCE);
  return to_hex(ip_packet(packet));
}

/// The ICRC of an IP packet whose last four bytes are its place, as it stands on the wire.
std::string icrc_hex(const Bytes& ip) {
  std::byte stored[4];
  store_icrc(stored, icrc(std::span{ip}.first(ip.size() - 4)));
  return to_hex(stored);
}

}  // namespace

TEST_CASE("Frames are built byte for byte as the golden vectors", "[wire][build]") {
  const auto path = sample_path();
  const auto path6 = sample_path(true);

  CHECK(
      ip_hex(build_frame(path, fields(Opcode::RC_ACKNOWLEDGE, 0x12, 0xabc), 0, [](FrameBuilder& b) {
        b.aeth().syndrome = ack_syndrome();
        b.aeth().msn.set(5);
      })) == kAck);

  auto bth = fields(Opcode::RC_RDMA_WRITE_ONLY, 0x11, 0xabc);
  bth.ack_request = true;
  CHECK(ip_hex(build_frame(path, bth, 33, [](FrameBuilder& b) {
          set_reth(b, 33);
          for (std::size_t i = 0; i < 33; ++i) b.payload()[i] = static_cast<std::byte>(i);
        })) == kWriteOnly33);

  bth = fields(Opcode::RC_RDMA_READ_REQUEST, 0x11, 0xfffffe);
  bth.ack_request = true;
  CHECK(ip_hex(build_frame(path, bth, 0, [](FrameBuilder& b) { set_reth(b, 4096); })) ==
        kReadRequest);

  CHECK(ip_hex(
            build_frame(path6, fields(Opcode::RC_ACKNOWLEDGE, 0x12, 0xabc), 0, [](FrameBuilder& b) {
              b.aeth().syndrome = nak_syndrome(NakCode::PSN_SEQUENCE_ERROR);
              b.aeth().msn.set(5);
            })) == kNakV6);

  bth = fields(Opcode::RC_SEND_ONLY, 0x11, 1);
  bth.ack_request = true;
  CHECK(ip_hex(build_frame(path6, bth, 5, [](FrameBuilder& b) {
          std::memcpy(b.payload().data(), "hello", 5);
        })) == kSendV6);

  auto cnp_path = path;
  cnp_path.traffic_class = 0xc2;
  cnp_path.udp_source_port = 0;
  bth = fields(Opcode::CNP, 0x12, 0);
  bth.becn = true;
  bth.mig_req = false;
  CHECK(ip_hex(build_frame(cnp_path, bth, 0)) == kCnp);
}

TEST_CASE("The golden vectors parse to their fields", "[wire][parse]") {
  Packet packet;
  const Bytes ack = from_hex(kAck);
  REQUIRE(parse_ip(ack, IcrcCheck::VERIFY, packet) == Verdict::ROCE);
  CHECK(packet.opcode == Opcode::RC_ACKNOWLEDGE);
  CHECK(packet.dest_qpn() == Qpn{0x12});
  CHECK(packet.psn() == Psn{0xabc});
  CHECK(packet.aeth().syndrome == 0x1f);
  CHECK(packet.aeth().msn.get() == 5);
  CHECK(packet.bth->mig_req());
  CHECK_FALSE(packet.bth->ack_request());
  CHECK(packet.source_ip().to_string() == "192.0.2.1");
  CHECK(packet.destination_ip().to_string() == "192.0.2.2");
  CHECK(packet.udp().source_port.get() == 0xc123);

  const Bytes write = from_hex(kWriteOnly33);
  REQUIRE(parse_ip(write, IcrcCheck::VERIFY, packet) == Verdict::ROCE);
  CHECK(packet.reth().va.get() == 0x7f0000001000);
  CHECK(packet.reth().rkey.get() == 0x1234);
  CHECK(packet.reth().dma_length.get() == 33);
  CHECK(packet.bth->pad_count() == 3);
  CHECK(packet.bth->ack_request());
  CHECK(to_hex(packet.payload) == kPayload33);

  const Bytes nak = from_hex(kNakV6);
  REQUIRE(parse_ip(nak, IcrcCheck::VERIFY, packet) == Verdict::ROCE);
  CHECK(packet.is_v6);
  CHECK(syndrome_kind(packet.aeth().syndrome) == SyndromeKind::NAK);
  CHECK(packet.destination_ip().to_string() == "2001:db8::2");

  const Bytes send = from_hex(kSendV6);
  REQUIRE(parse_ip(send, IcrcCheck::VERIFY, packet) == Verdict::ROCE);
  CHECK(to_hex(packet.payload) == "68656c6c6f");

  const Bytes cnp = from_hex(kCnp);
  REQUIRE(parse_ip(cnp, IcrcCheck::VERIFY, packet) == Verdict::ROCE);
  CHECK(packet.opcode == Opcode::CNP);
  CHECK(packet.bth->becn());
  CHECK(packet.payload.empty());
  CHECK(packet.traffic_class == 0xc2);
  CHECK_FALSE(packet.congestion_experienced());
}

TEST_CASE("The ICRC ignores what routers change and covers the rest", "[wire][icrc]") {
  Bytes ip = from_hex(kAck);
  ip[1] = std::byte{0xb8};   // TOS
  ip[8] = std::byte{3};      // TTL
  ip[10] = std::byte{0x12};  // header checksum
  CHECK(icrc_hex(ip) == "07ba7dd5");
  ip[26] = std::byte{0x77};  // UDP checksum
  CHECK(icrc_hex(ip) == "07ba7dd5");
  ip[32] = std::byte{0xc0};  // FECN and BECN
  CHECK(icrc_hex(ip) == "07ba7dd5");
  ip[32] = std::byte{0x3f};  // the six reserved bits beside them
  CHECK(icrc_hex(ip) == "07ba7dd5");
  ip[5] = std::byte{1};  // IP identification
  CHECK(icrc_hex(ip) == "aeb1f49b");

  Bytes v6 = from_hex(kNakV6);
  v6[0] = std::byte{0x6f};
  v6[1] = v6[2] = v6[3] = std::byte{0xa5};  // traffic class and flow label
  v6[7] = std::byte{1};                     // hop limit
  CHECK(icrc_hex(v6) == "3905160b");
  v6[6] = std::byte{58};  // next header
  CHECK(icrc_hex(v6) != "3905160b");
}

TEST_CASE("Each byte of a packet is covered by the ICRC unless a router may change it",
          "[wire][icrc]") {
  const Bytes good = from_hex(kAck);
  std::vector<std::size_t> free;
  for (std::size_t i = 1; i < good.size() - 4; ++i) {
    Bytes changed = good;
    changed[i] ^= std::byte{0x01};
    if (icrc_hex(changed) == icrc_hex(good)) free.push_back(i);
  }
  // TOS, TTL, header checksum, UDP checksum, FECN/BECN byte
  CHECK(free == std::vector<std::size_t>{1, 8, 10, 11, 26, 27, 32});
}

TEST_CASE("The UDP source port follows the flow label or both QPNs", "[wire][build]") {
  CHECK(udp_source_port(0, Qpn{0x24}, Qpn{0x25}) == 50484);
  CHECK(udp_source_port(0, Qpn{0x11}, Qpn{0x12}) == 49458);
  CHECK(udp_source_port(0, Qpn{0x1a2b3}, Qpn{0x4c5d6}) == 64625);
  CHECK(udp_source_port(0x70bbd, Qpn{0x24}, Qpn{0x25}) == 52129);
  for (std::uint32_t q = 1; q < 0x1000000; q = q * 3 + 1) {
    const std::uint16_t there = udp_source_port(0, Qpn{q}, Qpn{q ^ 0x5a5a5a});
    CHECK(there >= 0xc000);
    CHECK(there == udp_source_port(0, Qpn{q ^ 0x5a5a5a}, Qpn{q}));
  }
}

TEST_CASE("Syndromes carry credits, RNR timers and NAK codes", "[wire][syndrome]") {
  CHECK(ack_syndrome() == 0x1f);
  CHECK(rnr_syndrome(12) == 0x2c);
  CHECK(nak_syndrome(NakCode::PSN_SEQUENCE_ERROR) == 0x60);
  CHECK(nak_syndrome(NakCode::INVALID_RD_REQUEST) == 0x64);
  CHECK(rnr_timer(0).us() == 655360.0);
  CHECK(rnr_timer(1).us() == 10.0);
  CHECK(rnr_timer(12).us() == 640.0);
  CHECK(rnr_timer(25).us() == 61440.0);
  CHECK(rnr_timer(31).us() == 491520.0);
  CHECK(kCredits[30] == 32768);
  CHECK(syndrome_name(0x1f) == "ACK");
  CHECK(syndrome_name(0x20) == "RNR_NAK");
  CHECK(syndrome_name(0x40) == "RESERVED");
  CHECK(syndrome_name(0x62) == "NAK_REMOTE_ACCESS_ERROR");
  CHECK(syndrome_name(0x7f) == "NAK_UNKNOWN");
}
