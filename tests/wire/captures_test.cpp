// Every RoCEv2 packet of real captures: its ICRC is right, and parsing and building are inverse.
#include <pcap/pcap.h>

#include <set>

#include "frames.hpp"
#include "support/shared.hpp"

using namespace roce;
using namespace roce::wire;
using namespace roce::test;

namespace {

struct Tally {
  int roce = 0;
  int arp = 0;
  int other = 0;
  int bad_icrc = 0;
  std::set<Opcode> opcodes;
};

void check_packet(std::span<const std::byte> frame, Tally& tally) {
  Packet packet;
  const Verdict verdict = parse(frame, IcrcCheck::VERIFY, packet);
  if (verdict == Verdict::ICRC) {
    ++tally.bad_icrc;
    return;
  }
  if (verdict != Verdict::ROCE) {
    // TCP side channel, ARP and the like; but never a reject.
    if (verdict >= kFirstReject) FAIL_CHECK(verdict_name(verdict) << " " << to_hex(frame));
    (verdict == Verdict::ARP ? tally.arp : tally.other) += 1;
    return;
  }
  ++tally.roce;
  tally.opcodes.insert(packet.opcode);
  const Bytes again = rebuild(packet);
  const auto length = static_cast<std::size_t>(packet.l3 - packet.l2) + packet.l3_bytes;
  if (again.size() < length || std::memcmp(again.data(), frame.data(), length) != 0)
    FAIL_CHECK("rebuilt " << to_hex(again) << "\ninstead of " << to_hex(frame));
}

Tally check_capture(const std::filesystem::path& path) {
  char error[PCAP_ERRBUF_SIZE] = "";
  pcap_t* capture = pcap_open_offline(path.c_str(), error);
  INFO(path.string() << " " << error);
  REQUIRE(capture != nullptr);
  REQUIRE(pcap_datalink(capture) == DLT_EN10MB);
  Tally tally;
  pcap_pkthdr* header = nullptr;
  const unsigned char* data = nullptr;
  while (pcap_next_ex(capture, &header, &data) == 1) {
    REQUIRE(header->caplen == header->len);
    check_packet(std::as_bytes(std::span{data, header->caplen}), tally);
  }
  pcap_close(capture);
  return tally;
}

Tally check_folder(const std::filesystem::path& folder) {
  Tally sum;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pcap") continue;
    const Tally one = check_capture(entry.path());
    INFO(entry.path().string());
    CHECK(one.roce > 0);
    // One record of this file was overwritten, from BTH byte 5 on, by the record of another frame
    // while it was captured: proof that the check is made.
    CHECK(one.bad_icrc == (entry.path().filename() == "rxe_ipv6_jumbo_4qp.pcap" ? 1 : 0));
    sum.roce += one.roce;
    sum.arp += one.arp;
    sum.other += one.other;
    sum.opcodes.insert(one.opcodes.begin(), one.opcodes.end());
  }
  return sum;
}

}  // namespace

TEST_CASE("Soft-RoCE captures parse with right ICRC and rebuild to the same bytes",
          "[wire][parse][build]") {
  const auto folder = shared("captures/rxe");
  if (!folder) return;
  const Tally tally = check_folder(*folder);
  CHECK(tally.roce > 1000);
  CHECK(tally.opcodes.count(Opcode::RC_RDMA_READ_RESPONSE_MIDDLE) == 1);
  CHECK(tally.opcodes.count(Opcode::RC_ATOMIC_ACKNOWLEDGE) == 1);
  CHECK(tally.opcodes.count(Opcode::UD_SEND_ONLY) == 1);
  CHECK(tally.opcodes.count(Opcode::UC_SEND_FIRST) == 1);
  CHECK(tally.opcodes.size() >= 20);
}

TEST_CASE("Public captures parse with right ICRC and rebuild to the same bytes",
          "[wire][parse][build]") {
  const auto folder = shared("captures/public");
  if (!folder) return;
  const Tally tally = check_folder(*folder);
  CHECK(tally.roce > 250);
  CHECK(tally.opcodes.size() >= 18);
}
