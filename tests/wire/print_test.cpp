#include "wire/print.hpp"
#include "frames.hpp"
#include "wire/neighbour.hpp"
#include "wire/pfc.hpp"
#include "wire/syndrome.hpp"

using namespace roce;
using namespace roce::wire;
using namespace roce::test;

namespace {

template <class Fill>
std::string text_of(const BthFields& bth, std::size_t payload, Fill fill) {
  const Bytes frame = build_frame(sample_path(), bth, payload, fill);
  Packet packet;
  REQUIRE(parse(frame, IcrcCheck::VERIFY, packet) == Verdict::ROCE);
  return to_string(packet);
}
BthFields fields(Opcode opcode) {
  BthFields bth;
  bth.opcode = opcode;
  bth.dest_qpn = Qpn{0x12};
  bth.psn = Psn{123};
  return bth;
}
const auto kNothing = [](FrameBuilder&) {};

}  // namespace

TEST_CASE("A packet prints on one line with its headers' fields", "[wire][print]") {
  auto bth = fields(Opcode::RC_RDMA_WRITE_ONLY);
  bth.ack_request = true;
  CHECK(text_of(bth, 33,
                [](FrameBuilder& b) {
                  b.reth().va.set(0x7f0000001000);
                  b.reth().rkey.set(0x1234);
                  b.reth().dma_length.set(33);
                }) ==
        "RC_RDMA_WRITE_ONLY dqpn=0x000012 psn=123 ack_req va=0x7f0000001000 rkey=0x1234 "
        "dma_len=33 payload=33 pad=3");
  bth = fields(Opcode::RC_SEND_ONLY_WITH_IMMEDIATE);
  bth.solicited = bth.becn = true;
  bth.pkey = 0x7fff;
  CHECK(text_of(bth, 4,
                [](FrameBuilder& b) {
                  b.immediate() = {{0, 1, 2, 0xff}};
                }) ==
        "RC_SEND_ONLY_WITH_IMMEDIATE dqpn=0x000012 psn=123 se becn pkey=0x7fff imm=000102ff "
        "payload=4");
  CHECK(text_of(fields(Opcode::RC_SEND_ONLY_WITH_INVALIDATE), 0, [](FrameBuilder& b) {
          b.ieth().rkey.set(0x77);
        }) == "RC_SEND_ONLY_WITH_INVALIDATE dqpn=0x000012 psn=123 inv_rkey=0x77 payload=0");
  CHECK(text_of(fields(Opcode::UD_SEND_ONLY), 8, [](FrameBuilder& b) {
          b.deth().qkey.set(0x80010000);
          b.deth().source_qpn_field.set(1);
        }) == "UD_SEND_ONLY dqpn=0x000012 psn=123 qkey=0x80010000 sqpn=0x000001 payload=8");
  CHECK(text_of(fields(Opcode::RC_COMPARE_SWAP), 0, [](FrameBuilder& b) {
          b.atomic_eth().va.set(0x40);
          b.atomic_eth().rkey.set(5);
          b.atomic_eth().swap_or_add.set(6);
          b.atomic_eth().compare.set(7);
        }) == "RC_COMPARE_SWAP dqpn=0x000012 psn=123 va=0x40 rkey=0x5 swap=0x6 compare=0x7");
  CHECK(text_of(fields(Opcode::RC_FETCH_ADD), 0, [](FrameBuilder& b) {
          b.atomic_eth().swap_or_add.set(6);
        }) == "RC_FETCH_ADD dqpn=0x000012 psn=123 va=0x0 rkey=0x0 add=0x6");
  CHECK(text_of(fields(Opcode::RC_ATOMIC_ACKNOWLEDGE), 0, [](FrameBuilder& b) {
          b.aeth().syndrome = ack_syndrome();
          b.aeth().msn.set(9);
          b.atomic_ack().original.set(0xabc);
        }) == "RC_ATOMIC_ACKNOWLEDGE dqpn=0x000012 psn=123 ACK msn=9 original=0xabc");
}

TEST_CASE("Syndromes print with what they carry", "[wire][print]") {
  const auto ack = [](std::uint8_t syndrome) {
    return text_of(fields(Opcode::RC_ACKNOWLEDGE), 0,
                   [&](FrameBuilder& b) { b.aeth().syndrome = syndrome; });
  };
  const std::string start = "RC_ACKNOWLEDGE dqpn=0x000012 psn=123 ";
  CHECK(ack(0x1f) == start + "ACK msn=0");
  CHECK(ack(0x06) == start + "ACK credits=8 msn=0");
  CHECK(ack(0x2c) == start + "RNR_NAK timer=640us msn=0");
  CHECK(ack(0x60) == start + "NAK_PSN_SEQUENCE_ERROR syndrome=0x60 msn=0");
  CHECK(ack(0x41) == start + "RESERVED syndrome=0x41 msn=0");
}

TEST_CASE("Congestion marks are printed", "[wire][print]") {
  auto path = sample_path(true);
  path.traffic_class = 3;
  const Bytes frame = build_frame(path, fields(Opcode::RC_SEND_MIDDLE), 256);
  CHECK(describe_frame(frame) ==
        "2001:db8::1 > 2001:db8::2 RC_SEND_MIDDLE dqpn=0x000012 psn=123 ce payload=256");
}

TEST_CASE("Frames of other kinds are described too", "[wire][print]") {
  Bytes slot(128);
  FlowControl control;
  control.class_enable = 0x18;
  control.quanta[3] = 65535;
  slot.resize(build_flow_control(slot, control));
  CHECK(describe_frame(slot) == "pfc 3:65535 4:0");
  control.kind = FlowControlKind::PAUSE;
  control.quanta[0] = 7;
  slot.resize(build_flow_control(slot, control));
  CHECK(describe_frame(slot) == "pause quanta=7");
  slot.resize(128);
  const NeighbourSelf self{{{2, 0, 0, 0, 0, 1}}, *IpAddress::from_string("198.18.0.1"), {}};
  slot.resize(build_solicitation(slot, self, *IpAddress::from_string("198.18.0.2")));
  CHECK(describe_frame(slot) ==
        "solicitation: 198.18.0.1 at 02:00:00:00:00:01 asks for 198.18.0.2");
  Bytes frame = build_frame(sample_path(), fields(Opcode::RC_SEND_ONLY), 16, kNothing);
  frame.back() ^= std::byte{1};
  CHECK(describe_frame(frame) == "icrc (74 bytes)");
  CHECK(describe_frame({}) == "frame_too_short (0 bytes)");
}
