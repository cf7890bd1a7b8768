// Building is the inverse of parsing, and writes nothing but the frame.
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include "frames.hpp"
#include "wire/checksum.hpp"

using namespace roce;
using namespace roce::wire;
using namespace roce::test;

namespace {

IpAddress any_address(bool v6) {
  auto ip = v6 ? *IpAddress::from_string("fd00::") : IpAddress::v4(198, 18, 0, 0);
  for (std::size_t i = v6 ? 8 : 14; i < 16; ++i) ip.bytes[i] = *rc::gen::arbitrary<std::uint8_t>();
  return ip;
}

PathAttributes any_path() {
  const bool v6 = *rc::gen::arbitrary<bool>();
  PathAttributes path;
  for (auto& byte : path.source_mac.bytes) byte = *rc::gen::arbitrary<std::uint8_t>();
  for (auto& byte : path.destination_mac.bytes) byte = *rc::gen::arbitrary<std::uint8_t>();
  if (*rc::gen::arbitrary<bool>()) path.vlan_tci = *rc::gen::arbitrary<std::uint16_t>();
  path.source = any_address(v6);
  path.destination = any_address(v6);
  path.traffic_class = *rc::gen::arbitrary<std::uint8_t>();
  path.hop_limit = *rc::gen::arbitrary<std::uint8_t>();
  path.udp_source_port = *rc::gen::arbitrary<std::uint16_t>();
  path.flow_label = *rc::gen::inRange(0u, 1u << 20);
  return path;
}

BthFields any_bth() {
  std::vector<Opcode> opcodes;
  for (unsigned i = 0; i < 256; ++i)
    if (kOpcodes[i].known()) opcodes.push_back(static_cast<Opcode>(i));
  BthFields bth;
  bth.opcode = *rc::gen::elementOf(opcodes);
  bth.dest_qpn = Qpn{*rc::gen::arbitrary<std::uint32_t>()};
  bth.psn = Psn{*rc::gen::arbitrary<std::uint32_t>()};
  bth.ack_request = *rc::gen::arbitrary<bool>();
  bth.solicited = *rc::gen::arbitrary<bool>();
  bth.mig_req = *rc::gen::arbitrary<bool>();
  bth.becn = *rc::gen::arbitrary<bool>();
  bth.pkey = *rc::gen::arbitrary<std::uint16_t>();
  return bth;
}

}  // namespace

TEST_CASE("What is built parses to what was asked for", "[wire][build][property]") {
  rc::prop("build, then parse", [] {
    const PathAttributes path = any_path();
    const BthFields bth = any_bth();
    const bool none = info_of(bth.opcode).payload == PayloadRule::NONE;
    const std::size_t payload = none ? 0 : *rc::gen::inRange<std::size_t>(0, 4097);
    const Bytes frame = build_frame(path, bth, payload);
    Packet packet;
    RC_ASSERT(parse(frame, IcrcCheck::VERIFY, packet) == Verdict::ROCE);
    RC_ASSERT(packet.opcode == bth.opcode);
    RC_ASSERT(packet.dest_qpn() == bth.dest_qpn);
    RC_ASSERT(packet.psn() == bth.psn);
    RC_ASSERT(packet.bth->ack_request() == bth.ack_request);
    RC_ASSERT(packet.bth->solicited() == bth.solicited);
    RC_ASSERT(packet.bth->mig_req() == bth.mig_req);
    RC_ASSERT(packet.bth->becn() == bth.becn);
    RC_ASSERT(packet.bth->pkey.get() == bth.pkey);
    RC_ASSERT(packet.bth->transport_version() == 0);
    RC_ASSERT(packet.bth->pad_count() == ((0 - payload) & 3));
    RC_ASSERT(packet.payload.size() == payload);
    RC_ASSERT(packet.source_ip() == path.source);
    RC_ASSERT(packet.destination_ip() == path.destination);
    RC_ASSERT(packet.traffic_class == path.traffic_class);
    RC_ASSERT(packet.vlan_tci == path.vlan_tci.value_or(0));
    RC_ASSERT(packet.source_mac() == path.source_mac);
    RC_ASSERT(packet.udp().source_port.get() == path.udp_source_port);
    RC_ASSERT(packet.udp().checksum.get() == 0);
    for (std::size_t i = 0; i < payload; ++i)
      RC_ASSERT(packet.payload[i] == static_cast<std::byte>(i * 7));
    RC_ASSERT(rebuild(packet) == frame);
  });
}

TEST_CASE("Finishing with a payload from elsewhere gives the same frame", "[wire][build]") {
  Bytes payload(4096);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 7);
  auto path = sample_path();
  for (const bool v6 : {false, true}) {
    if (v6) path = sample_path(true);
    for (std::size_t length = 0; length <= 4096; length += length < 600 ? 1 : 173) {
      BthFields bth;
      bth.opcode = Opcode::RC_RDMA_WRITE_ONLY;
      Bytes slot(kMaxFrameBytes, std::byte{0xcc});
      FrameBuilder builder(slot, make_path_headers(path), bth, length);
      slot.resize(builder.finish_copying(std::span{payload}.first(length)));
      if (slot != build_frame(path, bth, length)) FAIL_CHECK("payload " << length);
    }
  }
}

TEST_CASE("A frame is written into a slot of exactly its length", "[wire][build]") {
  for (const std::size_t payload : {0u, 1u, 2u, 3u, 4u, 64u, 1023u, 4096u}) {
    BthFields bth;
    bth.opcode = Opcode::RC_SEND_ONLY;
    const auto headers = make_path_headers(sample_path());
    const std::size_t length =
        std::max<std::size_t>(60, headers.size() + 12 + payload + ((0 - payload) & 3) + 4);
    Bytes slot(length + 16, std::byte{0x5a});
    FrameBuilder builder(std::span{slot}.first(length), headers, bth, payload);
    std::fill(builder.payload().begin(), builder.payload().end(), std::byte{0xff});
    CHECK(builder.finish() == length);
    for (std::size_t i = length; i < slot.size(); ++i) CHECK(slot[i] == std::byte{0x5a});
    CHECK(verdict_of(std::span{slot}.first(length)) == Verdict::ROCE);
  }
}

TEST_CASE("Pad and Ethernet padding are zeros whatever the slot held", "[wire][build]") {
  BthFields bth;
  bth.opcode = Opcode::RC_SEND_ONLY;
  const Bytes frame = build_frame(sample_path(), bth, 0);
  REQUIRE(frame.size() == 60);
  CHECK(frame[58] == std::byte{0});
  CHECK(frame[59] == std::byte{0});
  const Bytes one = build_frame(sample_path(), bth, 1);
  Packet packet;
  REQUIRE(parse(one, IcrcCheck::VERIFY, packet) == Verdict::ROCE);
  for (std::size_t i = 0; i < 3; ++i) CHECK(packet.payload.data()[1 + i] == std::byte{0});
}

TEST_CASE("The longest frame fits kMaxFrameBytes", "[wire][build]") {
  auto path = sample_path(true);
  path.vlan_tci = 1;
  BthFields bth;
  for (unsigned i = 0; i < 256; ++i) {
    const OpcodeInfo& info = kOpcodes[i];
    if (!info.known()) continue;
    bth.opcode = static_cast<Opcode>(i);
    CHECK(build_frame(path, bth, info.payload == PayloadRule::NONE ? 0 : 4096).size() <=
          kMaxFrameBytes);
  }
}

TEST_CASE("The IPv4 identification is set and covered by header checksum and ICRC",
          "[wire][build]") {
  Bytes frame(kMaxFrameBytes);
  BthFields bth;
  bth.opcode = Opcode::RC_SEND_ONLY;
  for (const unsigned id : {0u, 1u, 0x8000u, 0xffffu}) {
    FrameBuilder builder(frame, make_path_headers(sample_path()), bth, 0);
    const std::size_t length = builder.finish(static_cast<std::uint16_t>(id));
    Packet packet;
    REQUIRE(parse(std::span{frame}.first(length), IcrcCheck::VERIFY, packet) == Verdict::ROCE);
    CHECK(view_as<Ipv4Header>(packet.l3)->identification.get() == id);
  }
}

TEST_CASE("The Internet checksum is that of RFC 1071", "[wire][checksum]") {
  // The example of RFC 1071, 3: the sum of these words is ddf2.
  CHECK(internet_checksum(from_hex("0001f203f4f5f6f7")) == static_cast<std::uint16_t>(~0xddf2));
  CHECK(internet_checksum({}) == 0xffff);
  CHECK(internet_checksum(from_hex("ff")) == 0x00ff);  // odd length: padded with zero
  rc::prop("storing it makes the sum come out as 0", [](std::vector<std::uint8_t> bytes) {
    bytes.insert(bytes.begin(), {0, 0});
    const std::uint16_t sum = internet_checksum(std::as_bytes(std::span{bytes}));
    bytes[0] = static_cast<std::uint8_t>(sum >> 8);
    bytes[1] = static_cast<std::uint8_t>(sum);
    RC_ASSERT(internet_checksum(std::as_bytes(std::span{bytes})) == 0);
  });
}
