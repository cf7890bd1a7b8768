// ICMP and ICMPv6 echo. The frames from hex were made with scapy.
#include "frames.hpp"
#include "wire/neighbour.hpp"

using namespace roce;
using namespace roce::wire;
using namespace roce::test;

namespace {

constexpr MacAddress kOwn{{2, 0, 0, 0, 0, 2}};

const Bytes kRequest4 = from_hex(
    "020000000002020000000001080045000025000140004001aeafc6120001c61200020800ce1512340007"
    "726f63696e616e7465");
const Bytes kReply4 = from_hex(
    "020000000001020000000002080045000025000040004001aeb0c6120002c61200010000d61512340007"
    "726f63696e616e7465");
const Bytes kRequest6 = from_hex(
    "0200000000020200000000018100606486dd6200000000113a40fd000000000000000000000000000001"
    "fd00000000000000000000000000000280005bc512340007726f63696e616e7465");
const Bytes kReply6 = from_hex(
    "0200000000010200000000028100606486dd6200000000113a40fd000000000000000000000000000002"
    "fd00000000000000000000000000000181005ac512340007726f63696e616e7465");

}  // namespace

TEST_CASE("Echo requests are answered as another implementation does", "[wire][echo]") {
  const auto request4 = parse_echo_request(kRequest4);
  REQUIRE(request4);
  CHECK(request4->source.to_string() == "198.18.0.1");
  CHECK(request4->destination.to_string() == "198.18.0.2");
  CHECK(request4->message.size() == 17);
  Bytes slot(256, std::byte{0xcc});
  CHECK(build_echo_reply(slot, kOwn, *request4) == 60);
  CHECK(to_hex(std::span{slot}.first(kReply4.size())) == to_hex(kReply4));
  for (std::size_t i = kReply4.size(); i < 60; ++i) CHECK(slot[i] == std::byte{0});

  const auto request6 = parse_echo_request(kRequest6);
  REQUIRE(request6);
  CHECK(request6->vlan_tci == 0x6064);
  const std::size_t length = build_echo_reply(slot, kOwn, *request6);
  CHECK(to_hex(std::span{slot}.first(length)) == to_hex(kReply6));
}

TEST_CASE("An echo reply needs a slot that holds it", "[wire][echo]") {
  const auto request = parse_echo_request(kRequest6);
  REQUIRE(request);
  Bytes slot(kReply6.size());
  CHECK(build_echo_reply(slot, kOwn, *request) == slot.size());
  CHECK(build_echo_reply(std::span{slot}.first(slot.size() - 1), kOwn, *request) == 0);
  CHECK(build_echo_reply({}, kOwn, *request) == 0);
}

TEST_CASE("Echo requests that are cut, changed or something else are refused", "[wire][echo]") {
  for (const bool v6 : {false, true}) {
    const Bytes& good = v6 ? kRequest6 : kRequest4;
    for (std::size_t length = 0; length < good.size(); ++length)
      CHECK_FALSE(parse_echo_request(std::span{good}.first(length)));
    const std::size_t ip_at = v6 ? 18 : 14;
    for (std::size_t at = ip_at; at < good.size(); ++at) {
      Bytes changed = good;
      changed[at] ^= std::byte{0x01};
      const auto request = parse_echo_request(changed);
      // IPv6 has no header checksum; its traffic class, flow label and hop limit are free.
      if (request) CHECK((v6 && (at - ip_at < 4 || at - ip_at == 7)));
    }
    CHECK_FALSE(parse_echo_request(v6 ? kReply6 : kReply4));
  }
}
