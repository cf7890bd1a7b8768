// Single packets with known ICRC from hardware, Soft-RoCE and other stacks, read from
// captures/known_packets.md.
#include <fstream>
#include <map>
#include <regex>

#include "frames.hpp"
#include "support/shared.hpp"
#include "wire/icrc.hpp"

using namespace roce;
using namespace roce::wire;
using namespace roce::test;

namespace {

struct KnownPacket {
  int number = -1;
  std::string name;
  bool starts_at_ip = false;
  Bytes bytes;
  std::string computed_icrc;  ///< as on the wire; empty: the file gives none
  bool matches = false;
};

std::vector<KnownPacket> read_known_packets(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<KnownPacket> packets;
  std::string hex;
  bool in_block = false;
  const std::regex heading{R"(## (\d+)\. (.*))"};
  const std::regex verdict{R"(ICRC computed ([0-9a-f]{8}), in packet ([0-9a-f]{8}): (\w+)\..*)"};
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_match(line, match, heading)) {
      packets.emplace_back();
      packets.back().number = std::stoi(match[1]);
      packets.back().name = match[2];
    } else if (line.rfind("## ", 0) == 0) {
      break;  // the list of packets that cannot be verified
    } else if (packets.empty()) {
      continue;
    } else if (line == "```") {
      in_block = !in_block;
      if (!in_block) packets.back().bytes = from_hex(std::exchange(hex, {}));
    } else if (in_block) {
      hex += line;
    } else if (line.find("starts at the IP header") != std::string::npos) {
      packets.back().starts_at_ip = true;
    } else if (std::regex_match(line, match, verdict)) {
      packets.back().computed_icrc = match[1];
      packets.back().matches = match[3] == "MATCH";
    }
  }
  return packets;
}

/// What parse() must say where it is not ROCE.
const std::map<int, Verdict> kExpected = {
    {0, Verdict::OTHER},                // the specification's sample: local, no Ethernet
    {6, Verdict::OTHER},                // RoCEv1
    {7, Verdict::OTHER},                // RoCEv1
    {9, Verdict::PAYLOAD_NOT_ALLOWED},  // an ACK with four bytes behind the AETH
    {22, Verdict::OTHER},               // VXLAN
    {23, Verdict::IPV4_CHECKSUM},       // header checksum 0
    {24, Verdict::OTHER},               // destination port is not 4791
    {25, Verdict::ICRC},                // ICRC left at 0
    {26, Verdict::ICRC},
};

/// IP header to the end of the IP packet.
std::span<const std::byte> ip_of(const KnownPacket& known) {
  const auto bytes = std::span<const std::byte>{known.bytes}.subspan(known.starts_at_ip ? 0 : 14);
  const bool v4 = std::to_integer<unsigned>(bytes[0]) >> 4 == 4;
  return bytes.first(v4 ? view_as<Ipv4Header>(bytes.data())->total_length.get()
                        : sizeof(Ipv6Header) +
                              view_as<Ipv6Header>(bytes.data())->payload_length.get());
}

bool is_roce_v2(const KnownPacket& known) {
  const auto found = kExpected.find(known.number);
  return found == kExpected.end() || found->second != Verdict::OTHER;
}

}  // namespace

TEST_CASE("Known packets get the verdict and the ICRC that others give them", "[wire][parse]") {
  const auto path = shared("captures/known_packets.md");
  if (!path) return;
  const auto packets = read_known_packets(*path);
  REQUIRE(packets.size() >= 37);
  int matching = 0;
  for (const KnownPacket& known : packets) {
    INFO("#" << known.number << " " << known.name);
    const auto found = kExpected.find(known.number);
    const Verdict expected = found == kExpected.end() ? Verdict::ROCE : found->second;
    Packet packet;
    if (known.number != 0)
      CHECK((known.starts_at_ip ? parse_ip(known.bytes, IcrcCheck::VERIFY, packet)
                                : parse(known.bytes, IcrcCheck::VERIFY, packet)) == expected);
    if (!is_roce_v2(known)) continue;
    REQUIRE_FALSE(known.computed_icrc.empty());
    const auto ip = ip_of(known);
    std::byte computed[4];
    store_icrc(computed, icrc(ip.first(ip.size() - 4)));
    CHECK(to_hex(computed) == known.computed_icrc);
    CHECK((to_hex(computed) == to_hex(ip.last(4))) == known.matches);
    matching += known.matches ? 1 : 0;
  }
  CHECK(matching >= 29);
}

TEST_CASE("Known packets are rebuilt from their parsed fields", "[wire][build]") {
  const auto path = shared("captures/known_packets.md");
  if (!path) return;
  int rebuilt = 0;
  for (const KnownPacket& known : read_known_packets(*path)) {
    Packet packet;
    if (known.starts_at_ip || parse(known.bytes, IcrcCheck::VERIFY, packet) != Verdict::ROCE)
      continue;
    INFO("#" << known.number << " " << known.name);
    Bytes again = rebuild(packet);
    const auto ip_at = static_cast<std::size_t>(packet.l3 - packet.l2);
    // The UDP checksum is free; ours is 0.
    const auto udp_checksum = static_cast<std::size_t>(
        reinterpret_cast<const std::byte*>(packet.udp().checksum.bytes) - packet.l2);
    again[udp_checksum] = known.bytes[udp_checksum];
    again[udp_checksum + 1] = known.bytes[udp_checksum + 1];
    CHECK(to_hex(std::span{again}.first(ip_at + packet.l3_bytes)) ==
          to_hex(std::span{known.bytes}.first(ip_at + packet.l3_bytes)));
    ++rebuilt;
  }
  CHECK(rebuilt >= 27);
}
