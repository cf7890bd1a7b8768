#include "wire/pfc.hpp"
#include "frames.hpp"

using namespace roce;
using namespace roce::wire;
using namespace roce::test;

namespace {
constexpr MacAddress kSource{{2, 0, 0, 0, 0, 1}};

FlowControl sample_pfc() {
  FlowControl control;
  control.source = kSource;
  control.class_enable = 0x0a;
  control.quanta = {1, 0xffff, 3, 0x1234, 5, 6, 7, 8};
  return control;
}
}  // namespace

TEST_CASE("A PFC frame stands on the wire as 802.1Qbb has it", "[wire][pfc]") {
  Bytes slot(64, std::byte{0xcc});
  REQUIRE(build_flow_control(slot, sample_pfc()) == 60);
  CHECK(to_hex(std::span{slot}.first(34)) ==
        "0180c200000102000000000188080101000a"
        "0000ffff000012340000000000000000");
  for (std::size_t i = 34; i < 60; ++i) CHECK(slot[i] == std::byte{0});
  slot.resize(60);
  CHECK(verdict_of(slot) == Verdict::FLOW_CONTROL);
  const auto back = parse_flow_control(slot);
  REQUIRE(back);
  CHECK(back->kind == FlowControlKind::PFC);
  CHECK(back->source == kSource);
  CHECK(back->class_enable == 0x0a);
  CHECK(back->quanta == std::array<std::uint16_t, 8>{0, 0xffff, 0, 0x1234, 0, 0, 0, 0});
}

TEST_CASE("A PAUSE frame stands on the wire as 802.3 has it", "[wire][pfc]") {
  Bytes slot(60);
  FlowControl control;
  control.kind = FlowControlKind::PAUSE;
  control.source = kSource;
  control.quanta[0] = 0xabcd;
  REQUIRE(build_flow_control(slot, control) == 60);
  CHECK(to_hex(std::span{slot}.first(18)) == "0180c200000102000000000188080001abcd");
  const auto back = parse_flow_control(slot);
  REQUIRE(back);
  CHECK(back->kind == FlowControlKind::PAUSE);
  CHECK(back->quanta[0] == 0xabcd);
}

TEST_CASE("Flow-control frames that are cut or of another opcode are refused", "[wire][pfc]") {
  Bytes slot(60);
  REQUIRE(build_flow_control(slot, sample_pfc()) == 60);
  for (std::size_t length = 0; length < 34; ++length)
    CHECK_FALSE(parse_flow_control(std::span{slot}.first(length)));
  CHECK(parse_flow_control(std::span{slot}.first(34)));
  slot[15] = std::byte{0x02};
  CHECK_FALSE(parse_flow_control(slot));
  slot[15] = std::byte{0x01};
  slot[13] = std::byte{0x09};
  CHECK_FALSE(parse_flow_control(slot));
}
