// The opcode table against the tables of IBTA vol. 1, 9.2.1 and 9.3, written down a second way.
#include "frames.hpp"

using namespace roce;
using namespace roce::wire;

namespace {

/// Bytes of extension headers by the low five bits of RC opcodes; -1: reserved.
constexpr std::array<int, 32> kRcExtensionBytes = {
    0,  0,  0,  4,  0,  4,  16, 0,  // SEND first..only+imm, WRITE first, middle
    0,  4,  16, 20, 16, 4,  0,  4,  // WRITE last..only+imm, READ request, responses
    4,  4,  12, 28, 28, -1, 4,  4,  // READ response only, ACK, atomics, invalidates
    -1, -1, -1, -1, -1, -1, -1, -1};

}  // namespace

TEST_CASE("Each opcode carries the extension headers that IBTA gives it", "[wire][opcode]") {
  for (unsigned value = 0; value < 256; ++value) {
    const OpcodeInfo& info = kOpcodes[value];
    const unsigned transport = value >> 5;
    const unsigned low = value & 0x1f;
    int expected = -1;
    if (transport == 0) expected = kRcExtensionBytes[low];
    if (transport == 1 && low <= 0x0b) expected = kRcExtensionBytes[low];
    if (value == 0x64) expected = 8;
    if (value == 0x65) expected = 12;
    if (value == 0x81) expected = 16;
    INFO("opcode " << value << " " << info.name);
    CHECK(info.known() == (expected >= 0));
    if (expected >= 0) CHECK(info.extension_bytes == expected);
  }
}

TEST_CASE("Extension headers stand in the order of IBTA 9.1", "[wire][opcode]") {
  CHECK(info_of(Opcode::RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE).offset_of(kReth) == 0);
  CHECK(info_of(Opcode::RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE).offset_of(kImmDt) == 16);
  CHECK(info_of(Opcode::RC_ATOMIC_ACKNOWLEDGE).offset_of(kAeth) == 0);
  CHECK(info_of(Opcode::RC_ATOMIC_ACKNOWLEDGE).offset_of(kAtomicAckEth) == 4);
  CHECK(info_of(Opcode::UD_SEND_ONLY_WITH_IMMEDIATE).offset_of(kDeth) == 0);
  CHECK(info_of(Opcode::UD_SEND_ONLY_WITH_IMMEDIATE).offset_of(kImmDt) == 8);
}

TEST_CASE("Names, positions and payload rules agree with each other", "[wire][opcode]") {
  for (const OpcodeInfo& info : kOpcodes) {
    if (!info.known()) continue;
    INFO(info.name);
    const auto says = [&](std::string_view word) {
      return info.name.find(word) != std::string_view::npos;
    };
    CHECK(says("_FIRST") == (info.position == Position::FIRST));
    CHECK(says("_MIDDLE") == (info.position == Position::MIDDLE));
    CHECK(says("_LAST") == (info.position == Position::LAST));
    CHECK(says("_IMMEDIATE") == info.has(kImmDt));
    CHECK(says("_INVALIDATE") == info.has(kIeth));
    CHECK(info.starts_message() ==
          (info.position == Position::FIRST || info.position == Position::ONLY));
    CHECK(info.is_response() == (says("RESPONSE") || says("ACKNOWLEDGE")));
    if (info.position == Position::FIRST || info.position == Position::MIDDLE)
      CHECK(info.payload == PayloadRule::FULL_MTU);
    if (info.position == Position::LAST) CHECK(info.payload == PayloadRule::ONE_TO_MTU);
  }
}
