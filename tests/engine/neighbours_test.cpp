// How a worker finds others and lets itself be found, byte for byte. The frames in hex were laid
// out by hand from RFC 826, 4861, 792 and 4443.
#include <catch2/catch.hpp>
#include <string_view>

#include "engine/siege.hpp"
#include "wire/neighbour.hpp"

using namespace roce;
using engine::InterfaceConfig;
using engine::InterfaceId;
using engine::NeighbourDuty;
using test::Bytes;

namespace {

const MacAddress kOurs{{2, 0, 0, 0, 0, 2}};
const MacAddress kTheirs{{2, 0, 0, 0, 0, 1}};
const MacAddress kMoved{{2, 0, 0, 0, 0, 9}};

IpAddress ip(std::string_view text) {
  return IpAddress::from_string(text).value();
}
IpPrefix prefix(std::string_view text) {
  return IpPrefix::from_string(text).value();
}

Bytes hex(std::string_view text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string{text.substr(i, 2)}, nullptr, 16)));
  return bytes;
}

std::vector<Bytes> just(Bytes frame) {
  return {std::move(frame)};
}

/// A frame padded to the Ethernet minimum.
Bytes padded(std::string_view text) {
  Bytes bytes = hex(text);
  bytes.resize(std::max(bytes.size(), wire::kMinFrameBytes));
  return bytes;
}

/// A worker whose wire the test holds by the other end.
struct Station {
  explicit Station(const std::vector<InterfaceConfig>& interfaces,
                   const engine::WorkerConfig& config = {})
      : wire({.transfer = port::Transfer::IN_PLACE}), worker(config, wire.second()) {
    for (const InterfaceConfig& interface : interfaces)
      ids.push_back(worker.add_interface(interface));
  }
  std::vector<Bytes> send(std::span<const Bytes> frames) {
    return test::exchange(wire.first(), worker, now, frames);
  }
  std::vector<Bytes> send(const Bytes& frame) { return send(std::span{&frame, 1}); }
  std::vector<Bytes> listen() { return send(std::span<const Bytes>{}); }
  void pass(Duration time) { now = now + time; }
  std::optional<MacAddress> resolve(std::string_view text, std::size_t interface = 0) {
    return worker.resolve(ids[interface], ip(text), now);
  }
  [[nodiscard]] const engine::WorkerCounters& counters() const { return worker.worker_counters(); }

  port::MemoryWire wire;
  engine::Worker worker;
  std::vector<InterfaceId> ids;
  Instant now = Instant::from_ns(1'000'000);
};

InterfaceConfig plain(NeighbourDuty duty = NeighbourDuty::OURS) {
  return {kOurs, {prefix("198.18.0.2/24"), prefix("fd00::2/64")}, {}, {}, duty};
}

/// An ARP reply of theirs to us.
Bytes reply_from(std::string_view who, const MacAddress& mac = kTheirs,
                 std::string_view to = "198.18.0.2") {
  Bytes frame(wire::kNeighbourFrameBytes);
  const wire::NeighbourSelf self{mac, ip(who), {}};
  const wire::NeighbourMessage question{
      .sender = ip(to), .sender_mac = kOurs, .target = ip(who), .frame_source = kOurs};
  frame.resize(wire::build_advertisement(frame, self, question));
  return frame;
}

/// Where a solicitation goes: Ethernet destination, and the address it asks for (ARP).
MacAddress destination(const Bytes& frame) {
  return wire::view_as<wire::EthernetHeader>(frame.data())->destination;
}
IpAddress asked_for(const Bytes& frame) {
  return wire::parse_neighbour(frame).value().target;
}

constexpr std::string_view kArpRequest =
    "ffffffffffff02000000000108060001080006040001020000000001c6120042000000000000c6120002";
constexpr std::string_view kArpReply =
    "02000000000102000000000208060001080006040002020000000002c6120002020000000001c6120042";
constexpr std::string_view kSolicitation =
    "3333ff00000202000000000186dd6000000000203afffd000000000000000000000000000066"
    "ff0200000000000000000001ff00000287007d3200000000fd000000000000000000000000000002"
    "0101020000000001";
constexpr std::string_view kAdvertisement =
    "02000000000102000000000286dd6000000000203afffd000000000000000000000000000002"
    "fd00000000000000000000000000006688001c3560000000fd000000000000000000000000000002"
    "0201020000000002";
constexpr std::string_view kEcho =
    "02000000000202000000000108004500003c1234400040019c24c6120042c61200020800b1a100070001"
    "6162636465666768616263646566676861626364656667686162636465666768";
constexpr std::string_view kEcho6 =
    "02000000000202000000000186dd6000000000283a40fd000000000000000000000000000066"
    "fd00000000000000000000000000000280003ed500070001"
    "6162636465666768616263646566676861626364656667686162636465666768";
constexpr std::string_view kEcho6Reply =
    "02000000000102000000000286dd6000000000283a40fd000000000000000000000000000002"
    "fd00000000000000000000000000006681003dd500070001"
    "6162636465666768616263646566676861626364656667686162636465666768";

}  // namespace

TEST_CASE("requests for our addresses are answered byte for byte", "[engine][neighbours]") {
  Station station{{plain()}};
  SECTION("ARP") {
    CHECK(station.send(padded(kArpRequest)) == just(padded(kArpReply)));
    CHECK(station.counters().arp_rx == 1);
    CHECK(station.counters().arp_tx == 1);
  }
  SECTION("neighbour discovery") {
    CHECK(station.send(hex(kSolicitation)) == just(hex(kAdvertisement)));
    CHECK(station.counters().nd_rx == 1);
    CHECK(station.counters().nd_tx == 1);
  }
  SECTION("ICMPv6 echo") {
    CHECK(station.send(hex(kEcho6)) == just(hex(kEcho6Reply)));
    CHECK(station.counters().icmp_echo_tx == 1);
  }
  SECTION("ICMP echo, but for the IPv4 identification and what covers it") {
    auto replies = station.send(hex(kEcho));
    REQUIRE(replies.size() == 1);
    Bytes expected =
        hex("02000000000102000000000208004500003c0000000040010000c6120002c61200420000b9a100070001"
            "6162636465666768616263646566676861626364656667686162636465666768");
    for (const std::size_t at : {18u, 19u, 20u, 21u, 24u, 25u}) replies[0][at] = expected[at];
    CHECK(replies[0] == expected);
    CHECK(station.counters().icmp_echo_rx == 1);
    CHECK(station.counters().icmp_echo_tx == 1);
  }
}

TEST_CASE("an interface with a VLAN is found on that VLAN, by its own tag",
          "[engine][neighbours]") {
  Station station{
      {plain(),
       {kOurs, {prefix("198.18.5.2/24")}, {}, std::uint16_t{3u << 13 | 5}, NeighbourDuty::OURS}}};
  const Bytes request = padded(
      "ffffffffffff0200000000018100000508060001080006040001020000000001c6120542000000000000"
      "c6120502");
  CHECK(station.send(request) ==
        just(padded("0200000000010200000000028100600508060001080006040002020000000002"
                    "c6120502020000000001c6120542")));
  Bytes elsewhere = request;
  elsewhere[15] = std::byte{6};
  CHECK(station.send(elsewhere).empty());
  // What is known on one VLAN is not known on another.
  CHECK(station.resolve("198.18.5.66", 1) == kTheirs);
  CHECK_FALSE(station.resolve("198.18.5.66", 0));
}

TEST_CASE("the same address on two VLANs is two hosts", "[engine][neighbours]") {
  const auto on = [](std::uint16_t vid) {
    return InterfaceConfig{kOurs, {prefix("198.18.5.2/24")}, {}, vid, NeighbourDuty::OURS};
  };
  Station station{{on(5), on(6)}};
  Bytes request = padded(
      "ffffffffffff0200000000018100000508060001080006040001020000000001c6120542000000000000"
      "c6120502");
  CHECK(station.send(request).size() == 1);
  request[15] = std::byte{6};
  request[31] = std::byte{9};  // ARP's sender MAC becomes 02:00:00:00:00:09
  CHECK(station.send(request).size() == 1);
  CHECK(station.resolve("198.18.5.66", 0) == kTheirs);
  CHECK(station.resolve("198.18.5.66", 1) == kMoved);
}

TEST_CASE("what is not meant for us is not answered", "[engine][neighbours]") {
  Station station{{plain()}};
  Bytes frame;
  std::uint64_t strangers = 0;
  SECTION("a request for another address") {
    frame = padded(kArpRequest);
    frame[41] = std::byte{3};
  }
  SECTION("a request sent to another MAC") {
    frame = padded(kArpRequest);
    std::copy_n(hex("020000000007").begin(), 6, frame.begin());
    strangers = 1;
  }
  SECTION("an echo to another MAC") {
    frame = hex(kEcho);
    frame[5] = std::byte{7};
    strangers = 1;
  }
  SECTION("an echo to all") {
    frame = hex(kEcho);
    std::fill_n(frame.begin(), 6, std::byte{0xff});
  }
  CHECK(station.send(frame).empty());
  CHECK(station.counters().not_our_address == strangers);
}

TEST_CASE("where the kernel has the addresses, we ask and learn but never answer",
          "[engine][neighbours]") {
  Station station{{plain(NeighbourDuty::KERNEL)}};
  CHECK_FALSE(station.resolve("198.18.0.77"));
  const auto asked = station.listen();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0] == padded("ffffffffffff02000000000208060001080006040001020000000002c6120002"
                           "000000000000c612004d"));
  CHECK(station.send(reply_from("198.18.0.77")).empty());
  CHECK(station.resolve("198.18.0.77") == kTheirs);

  CHECK(station.send(padded(kArpRequest)).empty());
  CHECK(station.send(hex(kSolicitation)).empty());
  CHECK(station.send(hex(kEcho)).empty());
  CHECK(station.resolve("198.18.0.66") == kTheirs);
}

TEST_CASE("IPv6 neighbours are asked at their solicited-node group", "[engine][neighbours]") {
  Station station{{plain()}};
  CHECK_FALSE(station.resolve("fd00::66"));
  CHECK(station.listen() ==
        just(hex("3333ff00006602000000000286dd6000000000203afffd000000000000000000000000"
                 "000002ff0200000000000000000001ff00006687007ccd00000000fd00000000000000"
                 "00000000000000660101020000000002")));
  CHECK(station.send(hex(kSolicitation)).size() == 1);  // theirs comes first and tells as much
  CHECK(station.resolve("fd00::66") == kTheirs);
}

TEST_CASE("an answer holds for a minute, is checked where it lives, then with all, then forgotten",
          "[engine][neighbours]") {
  Station station{{plain()}};
  CHECK_FALSE(station.resolve("198.18.0.66"));
  CHECK(station.listen().size() == 1);
  CHECK(station.send(reply_from("198.18.0.66")).empty());
  station.pass(Duration::seconds(59));
  CHECK(station.resolve("198.18.0.66") == kTheirs);
  CHECK(station.listen().empty());

  station.pass(Duration::seconds(2));
  const MacAddress expected[] = {kTheirs, MacAddress::broadcast(), MacAddress::broadcast()};
  for (const MacAddress& where : expected) {
    CHECK(station.resolve("198.18.0.66") == kTheirs);
    CHECK(station.resolve("198.18.0.66") == kTheirs);
    const auto asked = station.listen();
    REQUIRE(asked.size() == 1);
    CHECK(destination(asked[0]) == where);
    station.pass(Duration::milliseconds(1001));
  }
  CHECK_FALSE(station.resolve("198.18.0.66"));
  CHECK(station.listen().size() == 1);
  CHECK(station.send(reply_from("198.18.0.66", kMoved)).empty());
  CHECK(station.resolve("198.18.0.66") == kMoved);
}

TEST_CASE("an unanswered request is repeated once a second", "[engine][neighbours]") {
  Station station{{plain()}};
  std::size_t requests = 0;
  for (int tenth = 0; tenth < 45; ++tenth) {
    CHECK_FALSE(station.resolve("198.18.0.77"));
    requests += station.listen().size();
    station.pass(Duration::milliseconds(100));
  }
  CHECK(requests == 5);
}

TEST_CASE("a gratuitous ARP moves a host that we know and teaches none that we do not",
          "[engine][neighbours]") {
  Station station{{plain()}};
  const auto gratuitous = [](std::uint8_t host) {
    Bytes frame = padded(
        "ffffffffffff02000000000908060001080006040001020000000009c6120042000000000000c6120042");
    frame[31] = frame[41] = std::byte{host};
    return frame;
  };
  CHECK(station.send(gratuitous(0x43)).empty());
  CHECK_FALSE(station.resolve("198.18.0.67"));
  CHECK(station.listen().size() == 1);
  CHECK(station.send(padded(kArpRequest)).size() == 1);
  CHECK(station.resolve("198.18.0.66") == kTheirs);
  CHECK(station.send(gratuitous(0x42)).empty());
  CHECK(station.resolve("198.18.0.66") == kMoved);
}

TEST_CASE("a probe whether our address is taken is answered and teaches nothing",
          "[engine][neighbours]") {
  Station station{{plain()}};
  Bytes probe = padded(kArpRequest);
  std::fill_n(probe.begin() + 28, 4, std::byte{0});
  CHECK(station.send(probe).size() == 1);
  CHECK_FALSE(station.resolve("198.18.0.66"));
}

TEST_CASE("nobody can tell us where our own address is", "[engine][neighbours]") {
  Station station{{plain()}};
  Bytes claim = padded(kArpRequest);
  std::copy_n(claim.begin() + 38, 4, claim.begin() + 28);  // the sender says it is 198.18.0.2
  (void)station.send(claim);
  CHECK(station.resolve("198.18.0.2") == kOurs);
}

TEST_CASE("the next hop is the host itself on its subnet and the gateway elsewhere",
          "[engine][neighbours]") {
  Station station{{{kOurs,
                    {prefix("198.18.0.2/24"), prefix("198.19.7.2/16"), prefix("fd00::2/64")},
                    {ip("198.18.0.1"), ip("fd00::1")},
                    {},
                    NeighbourDuty::OURS}}};
  const auto hop = [&](std::string_view to) {
    CHECK_FALSE(station.resolve(to));
    const auto asked = station.listen();
    REQUIRE(asked.size() == 1);
    station.pass(Duration::seconds(2));
    return asked_for(asked[0]);
  };
  CHECK(hop("198.18.0.9") == ip("198.18.0.9"));
  CHECK(hop("198.19.200.9") == ip("198.19.200.9"));
  CHECK(hop("198.18.1.9") == ip("198.18.0.1"));
  CHECK(hop("fd00::9") == ip("fd00::9"));
  CHECK(hop("fd00:1::9") == ip("fd00::1"));
  CHECK(hop("fe80::9") == ip("fe80::9"));
  CHECK(station.send(reply_from("198.18.0.1")).empty());
  CHECK(station.resolve("198.18.1.9") == kTheirs);
  CHECK(station.resolve("198.18.2.2") == kTheirs);
}

TEST_CASE("we ask from the address of the target's subnet", "[engine][neighbours]") {
  Station station{
      {{kOurs, {prefix("198.18.0.2/24"), prefix("198.19.7.2/16")}, {}, {}, NeighbourDuty::OURS}}};
  CHECK_FALSE(station.resolve("198.19.1.1"));
  const auto asked = station.listen();
  REQUIRE(asked.size() == 1);
  CHECK(wire::parse_neighbour(asked[0]).value().sender == ip("198.19.7.2"));
}

TEST_CASE("groups and our own addresses need no asking", "[engine][neighbours]") {
  Station station{{plain()}};
  CHECK(station.resolve("224.0.1.129") == MacAddress{{0x01, 0x00, 0x5e, 0x00, 0x01, 0x81}});
  CHECK(station.resolve("ff02::1:ff00:66") == MacAddress{{0x33, 0x33, 0xff, 0x00, 0x00, 0x66}});
  CHECK(station.resolve("255.255.255.255") == MacAddress::broadcast());
  CHECK(station.resolve("fd00::2") == kOurs);
  CHECK(station.listen().empty());
}

TEST_CASE("a flood of invented hosts displaces nobody that we talk to", "[engine][neighbours]") {
  engine::WorkerConfig config;
  config.max_neighbours = 64;
  Station station{{plain()}, config};
  CHECK_FALSE(station.resolve("198.18.0.66"));
  CHECK(station.listen().size() == 1);
  CHECK(station.send(reply_from("198.18.0.66")).empty());
  std::size_t answers = 0;
  for (unsigned host = 0; host < 10'000; ++host) {
    Bytes request = padded(kArpRequest);
    request[29] = static_cast<std::byte>(19);
    request[30] = static_cast<std::byte>(host >> 8);
    request[31] = static_cast<std::byte>(host);
    answers += station.send(request).size();
  }
  CHECK(answers == 10'000);
  CHECK(station.resolve("198.18.0.66") == kTheirs);
  CHECK(station.listen().empty());
  CHECK(station.counters().neighbours_displaced == 10'000 - 63);
}

TEST_CASE("more requests at once than there is room for are dropped and counted, and asked later",
          "[engine][neighbours]") {
  Station station{{plain()}};
  const auto ask_all = [&] {
    for (std::uint8_t host = 10; host < 110; ++host)
      CHECK_FALSE(
          station.worker.resolve(station.ids[0], IpAddress::v4(198, 18, 0, host), station.now));
  };
  ask_all();
  CHECK(station.counters().control_drops == 36);
  CHECK(station.listen().size() == 64);
  ask_all();
  CHECK(station.listen().size() == 36);
  ask_all();
  CHECK(station.listen().empty());
}
