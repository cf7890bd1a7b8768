// ARP, neighbour discovery and echo. The frames from hex were made with scapy.
#include "wire/neighbour.hpp"
#include "frames.hpp"
#include "wire/checksum.hpp"
#include "wire/print.hpp"

using namespace roce;
using namespace roce::wire;
using namespace roce::test;

namespace {

NeighbourSelf self_of(const char* ip, std::optional<std::uint16_t> vlan = std::nullopt) {
  return {{{2, 0, 0, 0, 0, 1}}, *IpAddress::from_string(ip), vlan};
}
constexpr MacAddress kPeer{{2, 0, 0, 0, 0, 2}};

template <class Build>
Bytes built(Build build) {
  Bytes slot(2048, std::byte{0xcc});
  slot.resize(build(std::span{slot}));
  return slot;
}

/// Recomputes the ICMPv6 checksum of an untagged frame whose IPv6 payload is one ICMPv6 message.
void mend_icmpv6(Bytes& frame) {
  const auto& ip = *view_as<Ipv6Header>(frame.data() + 14);
  IpAddress source, destination;
  std::copy_n(ip.source, 16, source.bytes.begin());
  std::copy_n(ip.destination, 16, destination.bytes.begin());
  const std::size_t length = ip.payload_length.get();
  auto& checksum = *view_as<Be16>(frame.data() + 56);
  checksum.set(0);
  checksum.set(internet_checksum(
      std::span{frame}.subspan(54, length),
      ipv6_pseudo_header_sum(source, destination, static_cast<std::uint32_t>(length), 58)));
}

}  // namespace

TEST_CASE("Neighbour frames equal those of another implementation", "[wire][neighbour]") {
  const auto same = [](Bytes ours, const Bytes& theirs) {
    // Theirs is not padded to the Ethernet minimum.
    REQUIRE(ours.size() >= theirs.size());
    CHECK(to_hex(std::span{ours}.first(theirs.size())) == to_hex(theirs));
  };
  same(built([&](auto slot) {
         return build_solicitation(slot, self_of("198.18.0.1"),
                                   *IpAddress::from_string("198.18.0.2"));
       }),
       from_hex(
           "ffffffffffff02000000000108060001080006040001020000000001c6120001000000000000c6120002"));
  const Bytes solicitation = from_hex(
      "3333ff00000202000000000186dd6000000000203afffd000000000000000000000000000001ff020000"
      "0000000000000001ff00000287007d9700000000fd000000000000000000000000000002010102000000"
      "0001");
  same(built([&](auto slot) {
         return build_solicitation(slot, self_of("fd00::1"), *IpAddress::from_string("fd00::2"));
       }),
       solicitation);
  same(built([&](auto slot) {
         const NeighbourSelf self{kPeer, *IpAddress::from_string("fd00::2"), std::nullopt};
         return build_advertisement(slot, self, parse_neighbour(solicitation).value());
       }),
       from_hex(
           "02000000000102000000000286dd6000000000203afffd000000000000000000000000000002fd000000"
           "00000000000000000000000188001c9a60000000fd000000000000000000000000000002020102000000"
           "0002"));
}

TEST_CASE("An ARP exchange tells both sides what they need", "[wire][neighbour]") {
  for (const auto vlan : {std::optional<std::uint16_t>{}, std::optional<std::uint16_t>{0x2064}}) {
    const auto asker = self_of("198.18.0.1", vlan);
    const auto target = *IpAddress::from_string("198.18.0.2");
    const Bytes ask = built([&](auto slot) { return build_solicitation(slot, asker, target); });
    CHECK(ask.size() == 60);
    CHECK(verdict_of(ask) == Verdict::ARP);
    const auto question = parse_neighbour(ask);
    REQUIRE(question);
    CHECK(question->kind == NeighbourKind::SOLICITATION);
    CHECK(question->sender == asker.address);
    CHECK(question->sender_mac == asker.mac);
    CHECK(question->target == target);
    CHECK(question->vlan_tci == vlan);
    CHECK(question->teaches());

    const NeighbourSelf answerer{kPeer, target, vlan};
    const Bytes tell =
        built([&](auto slot) { return build_advertisement(slot, answerer, *question); });
    CHECK(view_as<EthernetHeader>(tell.data())->destination == asker.mac);
    const auto answer = parse_neighbour(tell);
    REQUIRE(answer);
    CHECK(answer->kind == NeighbourKind::ADVERTISEMENT);
    CHECK(answer->sender == target);
    CHECK(answer->sender_mac == kPeer);
    CHECK(answer->target == asker.address);
    CHECK(answer->vlan_tci == vlan);
  }
}

TEST_CASE("A neighbour discovery exchange tells both sides what they need", "[wire][neighbour]") {
  for (const auto vlan : {std::optional<std::uint16_t>{}, std::optional<std::uint16_t>{0x2064}}) {
    const auto asker = self_of("fd00::1", vlan);
    const auto target = *IpAddress::from_string("fd00::12:3456");
    const Bytes ask = built([&](auto slot) { return build_solicitation(slot, asker, target); });
    CHECK(verdict_of(ask) == Verdict::ICMPV6);
    CHECK(view_as<EthernetHeader>(ask.data())->destination.to_string() == "33:33:ff:12:34:56");
    const auto question = parse_neighbour(ask);
    REQUIRE(question);
    CHECK(question->sender == asker.address);
    CHECK(question->sender_mac == asker.mac);
    CHECK(question->target == target);
    const NeighbourSelf answerer{kPeer, target, vlan};
    const Bytes tell =
        built([&](auto slot) { return build_advertisement(slot, answerer, *question); });
    const auto answer = parse_neighbour(tell);
    REQUIRE(answer);
    CHECK(answer->kind == NeighbourKind::ADVERTISEMENT);
    CHECK(answer->sender == target);
    CHECK(answer->sender_mac == kPeer);
    CHECK(answer->target == asker.address);
    CHECK(answer->vlan_tci == vlan);
    CHECK(answer->teaches());
  }
}

TEST_CASE("A reachability probe goes to one MAC", "[wire][neighbour]") {
  const auto target = *IpAddress::from_string("fd00::2");
  const Bytes v6 =
      built([&](auto slot) { return build_solicitation(slot, self_of("fd00::1"), target, kPeer); });
  CHECK(view_as<EthernetHeader>(v6.data())->destination == kPeer);
  REQUIRE(parse_neighbour(v6));
  const Bytes v4 = built([&](auto slot) {
    return build_solicitation(slot, self_of("198.18.0.1"), *IpAddress::from_string("198.18.0.2"),
                              kPeer);
  });
  CHECK(view_as<EthernetHeader>(v4.data())->destination == kPeer);
  REQUIRE(parse_neighbour(v4));
}

TEST_CASE("Probes for a taken address are answered and teach nothing", "[wire][neighbour]") {
  // ARP probe (RFC 5227): sender address 0.0.0.0.
  const auto target4 = *IpAddress::from_string("198.18.0.2");
  const Bytes probe4 =
      built([&](auto slot) { return build_solicitation(slot, self_of("0.0.0.0"), target4); });
  const auto question4 = parse_neighbour(probe4);
  REQUIRE(question4);
  CHECK_FALSE(question4->teaches());
  // Duplicate address detection (RFC 4862): from ::, without an option.
  Bytes dad = built([&](auto slot) {
    return build_solicitation(slot, self_of("::"), *IpAddress::from_string("fd00::2"));
  });
  CHECK_FALSE(parse_neighbour(dad));  // from :: an option is forbidden
  dad.resize(14 + 40 + 24);
  view_as<Ipv6Header>(dad.data() + 14)->payload_length.set(24);
  mend_icmpv6(dad);
  const auto question6 = parse_neighbour(dad);
  REQUIRE(question6);
  CHECK_FALSE(question6->teaches());
  const Bytes tell =
      built([&](auto slot) { return build_advertisement(slot, self_of("fd00::2"), *question6); });
  CHECK(view_as<EthernetHeader>(tell.data())->destination.to_string() == "33:33:00:00:00:01");
  const auto answer = parse_neighbour(tell);
  REQUIRE(answer);
  CHECK(answer->target.to_string() == "ff02::1");
}

TEST_CASE("Malformed neighbour messages are refused", "[wire][neighbour]") {
  const Bytes nd = built([&](auto slot) {
    return build_solicitation(slot, self_of("fd00::1"), *IpAddress::from_string("fd00::2"));
  });
  const auto refused = [&](std::size_t at, unsigned value) {
    Bytes changed = nd;
    changed[at] = static_cast<std::byte>(value);
    mend_icmpv6(changed);
    return !parse_neighbour(changed).has_value();
  };
  CHECK_FALSE(refused(0, 0x33));  // nothing wrong
  CHECK(refused(14 + 7, 254));    // hop limit: it was routed
  CHECK(refused(14 + 6, 17));     // UDP
  CHECK(refused(54, 134));        // router advertisement
  CHECK(refused(55, 1));          // code
  CHECK(refused(54 + 8, 0xff));   // multicast target
  CHECK(refused(54 + 25, 0));     // option of length 0
  CHECK(refused(54 + 25, 2));     // option longer than the message
  Bytes wrong_sum = nd;
  wrong_sum[57] ^= std::byte{1};
  CHECK_FALSE(parse_neighbour(wrong_sum));
  for (std::size_t length = 0; length < nd.size(); ++length)
    CHECK_FALSE(parse_neighbour(std::span{nd}.first(length)));

  const Bytes arp = built([&](auto slot) {
    return build_solicitation(slot, self_of("198.18.0.1"), *IpAddress::from_string("198.18.0.2"));
  });
  for (const std::size_t at : {14u, 15u, 16u, 17u, 18u, 19u, 20u}) {
    Bytes changed = arp;
    changed[at] ^= std::byte{0x80};
    CHECK_FALSE(parse_neighbour(changed));
  }
  for (std::size_t length = 0; length < 42; ++length)
    CHECK_FALSE(parse_neighbour(std::span{arp}.first(length)));
}

TEST_CASE("Unusable senders teach nothing", "[wire][neighbour]") {
  NeighbourMessage message;
  message.sender = *IpAddress::from_string("198.18.0.1");
  message.sender_mac = kPeer;
  CHECK(message.teaches());
  message.sender_mac = MacAddress::broadcast();
  CHECK_FALSE(message.teaches());
  message.sender_mac = MacAddress{};
  CHECK_FALSE(message.teaches());
  message.sender_mac.reset();
  CHECK_FALSE(message.teaches());
  message.sender_mac = kPeer;
  message.sender = *IpAddress::from_string("ff02::1");
  CHECK_FALSE(message.teaches());
}

TEST_CASE("Multicast addresses map to Ethernet as the RFCs say", "[wire][neighbour]") {
  CHECK(multicast_mac(*IpAddress::from_string("224.128.1.2")).to_string() == "01:00:5e:00:01:02");
  CHECK(multicast_mac(*IpAddress::from_string("ff02::1:ff12:3456")).to_string() ==
        "33:33:ff:12:34:56");
  CHECK(solicited_node(*IpAddress::from_string("fd00::ab:cdef:123")).to_string() ==
        "ff02::1:ffef:123");
}
