#include "port/fault_rule.hpp"

#include <catch2/catch.hpp>

#include "wire/opcode.hpp"

using Catch::Matchers::Contains;
using roce::Duration;
using roce::Qpn;
using roce::port::FaultAction;
using roce::port::FaultDirection;
using roce::port::FaultRule;
using roce::port::parse_fault_rule;
using roce::port::PsnOrigin;

namespace {

FaultRule good(const std::string& text) {
  const auto rule = parse_fault_rule(text);
  INFO(text);
  INFO((rule ? std::string{} : rule.error().to_string()));
  REQUIRE(rule);
  return *rule;
}

}  // namespace

TEST_CASE("fault rules are understood", "[port][fault]") {
  CHECK(good("drop").action == FaultAction::DROP);
  CHECK(good("drop").direction == FaultDirection::TX);
  CHECK(good("drop").nth == 0);
  CHECK(good("drop:psn=100").psn == 100);
  CHECK(good("drop:psn=100").nth == 1);
  CHECK(good("drop:psn=100,nth=2").nth == 2);
  CHECK(good("drop:nth=2,psn=100").nth == 2);
  CHECK(good("drop:psn=100,nth=all").nth == 0);
  CHECK(good("drop:psn=100,rate=0.5").nth == 0);
  CHECK(good("drop:psn=0xffffff").psn == 0xffffff);
  CHECK(good("drop:psn=+3").psn_origin == PsnOrigin::FIRST_SEEN);
  CHECK(good("drop:rate=0.01").rate == 0.01);
  CHECK(good("corrupt:rate=1").action == FaultAction::CORRUPT);
  CHECK(good("duplicate:psn=5,qpn=0x12").qpn == Qpn{0x12});
  CHECK(good("delay:rate=0.01,by=50us").by_time == Duration::microseconds(50));
  CHECK(good("delay:by=7ns").by_time == Duration::nanoseconds(7));
  CHECK(good("delay:by=2ms").by_time == Duration::milliseconds(2));
  CHECK(good("delay:by=1s").by_time == Duration::seconds(1));
  CHECK(good("reorder:rate=0.01").by_frames == 3);
  CHECK(good("reorder:by=8").by_frames == 8);
  CHECK(good("drop:dir=rx").direction == FaultDirection::RX);
  CHECK(good("drop:seed=99").seed == 99);
  CHECK(good("drop:max=4").max == 4);
  CHECK(good("mark:psn=5").action == FaultAction::MARK);
  CHECK(good("drop:src=198.18.0.1").source == roce::IpAddress::v4(198, 18, 0, 1));
  CHECK(good("drop:dst=fd00::1").destination == roce::IpAddress::from_string("fd00::1").value());
}

TEST_CASE("an opcode is named in full or by how it starts", "[port][fault]") {
  using roce::wire::Opcode;
  const auto matches = [](const FaultRule& rule, Opcode opcode) {
    return rule.opcodes.test(static_cast<std::size_t>(opcode));
  };
  const FaultRule ack = good("drop:opcode=RC_ACKNOWLEDGE");
  CHECK(ack.opcodes.count() == 1);
  CHECK(matches(ack, Opcode::RC_ACKNOWLEDGE));
  const FaultRule reads = good("drop:opcode=rc_rdma_read_response");
  CHECK(reads.opcodes.count() == 4);
  CHECK(matches(reads, Opcode::RC_RDMA_READ_RESPONSE_MIDDLE));
  CHECK_FALSE(matches(reads, Opcode::RC_RDMA_READ_REQUEST));
  CHECK(good("drop").opcodes.all());
}

TEST_CASE("a bad fault rule names the key and the valid ones", "[port][fault]") {
  struct Row {
    const char* text;
    const char* reason;
    const char* fix;
  };
  const Row rows[] = {
      {"", "no action \"\"", "drop, corrupt, duplicate, delay, reorder"},
      {"lose:psn=1", "no action \"lose\"", "drop, corrupt"},
      {"Drop", "no action \"Drop\"", "drop"},
      {"drop:", "is not KEY=VALUE", "psn, qpn, opcode"},
      {"drop:psn", "\"psn\" is not KEY=VALUE", "psn, qpn, opcode"},
      {"drop:=1", "is not KEY=VALUE", "psn, qpn"},
      {"drop:psn=1,", "is not KEY=VALUE", "psn, qpn"},
      {"drop:pns=1", "no key \"pns\"", "psn, qpn, opcode, dir, rate, nth, max, seed"},
      {"drop:psn=", "psn= is not valid", "0 to 0xffffff"},
      {"drop:psn=x", "psn=x is not valid", "0 to 0xffffff"},
      {"drop:psn=16777216", "psn=16777216", "0 to 0xffffff"},
      {"drop:psn=-1", "psn=-1", "+N"},
      {"drop:psn=+", "psn=+", "+N"},
      {"drop:psn=1,psn=2", "psn is given twice", "another --fault"},
      {"drop:qpn=0x1000000", "qpn=0x1000000", "QP number"},
      {"drop:opcode=ACK", "opcode=ACK", "RC_ACKNOWLEDGE"},
      {"drop:opcode=", "opcode=", "RC_SEND_FIRST"},
      {"drop:dst=198.18.0", "dst=198.18.0 is not valid", "IPv4 or IPv6"},
      {"drop:dir=both", "dir=both", "tx or rx"},
      {"drop:rate=0", "rate=0", "above 0"},
      {"drop:rate=1.5", "rate=1.5", "up to 1"},
      {"drop:rate=1%", "rate=1%", "such as 0.01"},
      {"drop:rate=nan", "rate=nan", "probability"},
      {"drop:nth=0", "nth=0", "from 1, or all"},
      {"drop:nth=first", "nth=first", "from 1, or all"},
      {"drop:max=0", "max=0", "from 1"},
      {"drop:seed=abc", "seed=abc", "whole number"},
      {"drop:by=3", "drop has no key by", "delay and reorder"},
      {"delay:by=50", "by=50", "50us"},
      {"delay:by=0us", "by=0us", "50us"},
      {"delay:by=1.5us", "by=1.5us", "50us"},
      {"reorder:by=50us", "by=50us", "count of frames"},
      {"reorder:by=0", "by=0", "1 to 10000"},
  };
  for (const Row& row : rows) {
    INFO("rule \"" << row.text << "\"");
    const auto rule = parse_fault_rule(row.text);
    REQUIRE_FALSE(rule);
    CHECK_THAT(rule.error().place, Contains("--fault"));
    CHECK_THAT(rule.error().reason, Contains(row.reason));
    CHECK_THAT(rule.error().fix, Contains(row.fix));
  }
}
