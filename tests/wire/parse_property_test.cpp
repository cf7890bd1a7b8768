// What parse() owes to any input: it reads nothing beyond the frame, and takes nothing that is
// malformed.
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include "frames.hpp"
#include "wire/checksum.hpp"
#include "wire/icrc.hpp"
#include "wire/neighbour.hpp"
#include "wire/pfc.hpp"
#include "wire/print.hpp"

using namespace roce;
using namespace roce::wire;
using namespace roce::test;

namespace {

std::vector<Opcode> known_opcodes() {
  std::vector<Opcode> opcodes;
  for (unsigned i = 0; i < 256; ++i)
    if (kOpcodes[i].known()) opcodes.push_back(static_cast<Opcode>(i));
  return opcodes;
}

Bytes sample_frame(Opcode opcode, bool v6, bool vlan, std::size_t payload = 21) {
  auto path = sample_path(v6);
  if (vlan) path.vlan_tci = 0x6064;
  BthFields bth;
  bth.opcode = opcode;
  bth.dest_qpn = Qpn{0x123456};
  bth.psn = Psn{0xabcdef};
  bth.ack_request = true;
  return build_frame(path, bth, info_of(opcode).payload == PayloadRule::NONE ? 0 : payload);
}

/// A copy that ends where its memory ends, so that a sanitizer sees any read beyond it.
Verdict parse_exact(const Bytes& frame, IcrcCheck check = IcrcCheck::VERIFY) {
  const std::unique_ptr<std::byte[]> copy{new std::byte[frame.size()]};
  std::copy(frame.begin(), frame.end(), copy.get());
  return verdict_of({copy.get(), frame.size()}, check);
}

/// The extent of the IP packet in a frame by FrameBuilder.
struct Extent {
  std::size_t ip;   ///< offset of the IP header
  std::size_t end;  ///< offset of the first byte behind the ICRC
};
Extent extent_of(const Bytes& frame) {
  Packet packet;
  REQUIRE(parse(frame, IcrcCheck::SKIP, packet) == Verdict::ROCE);
  const auto ip = static_cast<std::size_t>(packet.l3 - packet.l2);
  return {ip, ip + packet.l3_bytes};
}

/// Sets lengths, header checksum and ICRC of an IPv4 frame so that only what is in between decides.
void mend(Bytes& frame) {
  auto& ip = *view_as<Ipv4Header>(frame.data() + 14);
  const std::size_t total = frame.size() - 14;
  ip.total_length.set(static_cast<std::uint16_t>(total));
  ip.checksum.set(0);
  ip.checksum.set(internet_checksum({frame.data() + 14, 20}));
  view_as<UdpHeader>(frame.data() + 34)->length.set(static_cast<std::uint16_t>(total - 20));
  if (total >= 20 + 8 + 12 + 4)
    store_icrc(frame.data() + frame.size() - 4, icrc({frame.data() + 14, total - 4}));
}

void use_everything(std::span<const std::byte> frame) {
  for (const IcrcCheck check : {IcrcCheck::VERIFY, IcrcCheck::SKIP}) {
    Packet packet;
    const Verdict verdict = parse(frame, check, packet);
    if (verdict != Verdict::ROCE) continue;
    RC_ASSERT(packet.payload.data() >= frame.data());
    RC_ASSERT(packet.payload.data() + packet.payload.size() + 4 <= frame.data() + frame.size());
    RC_ASSERT(!to_string(packet).empty());
  }
  RC_ASSERT(!describe_frame(frame).empty());
  (void)parse_neighbour(frame);
  (void)parse_echo_request(frame);
  (void)parse_flow_control(frame);
}

}  // namespace

TEST_CASE("Any bytes at all are parsed without harm", "[wire][parse][property]") {
  rc::prop("random bytes", [](const std::vector<std::uint8_t>& bytes) {
    use_everything(std::as_bytes(std::span{bytes}));
  });
  rc::prop("valid frames with random changes", [] {
    const auto opcode = *rc::gen::elementOf(known_opcodes());
    Bytes frame = sample_frame(opcode, *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>());
    const int changes = *rc::gen::inRange(1, 6);
    for (int i = 0; i < changes; ++i)
      frame[*rc::gen::inRange<std::size_t>(0, frame.size())] =
          static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>());
    frame.resize(*rc::gen::inRange<std::size_t>(0, frame.size() + 1));
    use_everything(frame);
  });
}

TEST_CASE("No proper prefix of a packet is a packet", "[wire][parse]") {
  for (const Opcode opcode : known_opcodes())
    for (const bool v6 : {false, true})
      for (const bool vlan : {false, true}) {
        const Bytes frame = sample_frame(opcode, v6, vlan);
        const Extent extent = extent_of(frame);
        for (std::size_t length = 0; length < extent.end; ++length) {
          const Bytes prefix(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length));
          if (parse_exact(prefix) == Verdict::ROCE ||
              parse_exact(prefix, IcrcCheck::SKIP) == Verdict::ROCE)
            FAIL_CHECK(info_of(opcode).name << " cut to " << length);
        }
        const Bytes whole(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(extent.end));
        CHECK(parse_exact(whole) == Verdict::ROCE);
      }
}

TEST_CASE("Padding behind the ICRC is ignored whatever it holds", "[wire][parse]") {
  Bytes frame = sample_frame(Opcode::RC_ACKNOWLEDGE, false, false);
  CHECK(frame.size() == 62);
  frame.resize(frame.size() + 40, std::byte{0xff});
  CHECK(verdict_of(frame) == Verdict::ROCE);
}

TEST_CASE("An opcode is taken exactly when the table knows it", "[wire][parse]") {
  for (unsigned value = 0; value < 256; ++value) {
    const OpcodeInfo& info = kOpcodes[value];
    Bytes frame(14 + 20 + 8 + 12 + info.extension_bytes + 4);
    const Bytes ack = sample_frame(Opcode::RC_ACKNOWLEDGE, false, false);
    std::copy_n(ack.begin(), 54, frame.begin());
    frame[42] = static_cast<std::byte>(value);
    mend(frame);
    INFO("opcode " << value << " " << info.name);
    CHECK(verdict_of(frame) == (info.known() ? Verdict::ROCE : Verdict::UNKNOWN_OPCODE));
  }
}

TEST_CASE("The transport version must be 0", "[wire][parse]") {
  for (unsigned version = 1; version < 16; ++version) {
    Bytes frame = sample_frame(Opcode::RC_SEND_ONLY, false, false, 16);
    frame[43] |= static_cast<std::byte>(version);
    mend(frame);
    CHECK(verdict_of(frame) == Verdict::TRANSPORT_VERSION);
  }
}

TEST_CASE("Each length with each pad count is taken or refused as its opcode rules",
          "[wire][parse]") {
  for (const Opcode opcode : known_opcodes()) {
    const OpcodeInfo& info = info_of(opcode);
    const Bytes sample = sample_frame(opcode, false, false, 0);
    for (std::size_t transport = 0; transport <= 72; ++transport)
      for (std::size_t pad = 0; pad < 4; ++pad) {
        Bytes frame(14 + 20 + 8 + transport);
        std::copy_n(sample.begin(), std::min(frame.size(), sample.size()), frame.begin());
        if (transport >= 2) frame[43] = static_cast<std::byte>(pad << 4);
        mend(frame);
        const std::size_t headers = 12 + info.extension_bytes + 4;
        Verdict expected = Verdict::ROCE;
        if (transport < 16)
          expected = Verdict::BTH_TOO_SHORT;
        else if (transport < headers + pad || transport % 4 != 0)
          expected = Verdict::PACKET_LENGTH;
        else if (info.payload == PayloadRule::NONE && transport != headers)
          expected = Verdict::PAYLOAD_NOT_ALLOWED;
        Packet packet;
        const Verdict verdict = parse(frame, IcrcCheck::VERIFY, packet);
        if (verdict != expected)
          FAIL_CHECK(info.name << " transport " << transport << " pad " << pad << ": "
                               << verdict_name(verdict) << " not " << verdict_name(expected));
        if (verdict == Verdict::ROCE && packet.payload.size() != transport - headers - pad)
          FAIL_CHECK(info.name << " payload " << packet.payload.size());
      }
  }
}

TEST_CASE("Lengths of IP and UDP must agree with each other and with the frame", "[wire][parse]") {
  for (const bool v6 : {false, true}) {
    const Bytes good = sample_frame(Opcode::RC_SEND_ONLY, v6, false, 16);
    const std::size_t udp_at = v6 ? 54 : 34;
    for (unsigned length = 0; length < 200; ++length) {
      Bytes frame = good;
      const std::uint16_t was = view_as<UdpHeader>(frame.data() + udp_at)->length.get();
      view_as<UdpHeader>(frame.data() + udp_at)->length.set(static_cast<std::uint16_t>(length));
      CHECK(verdict_of(frame, IcrcCheck::SKIP) ==
            (length == was ? Verdict::ROCE : Verdict::UDP_LENGTH));
    }
  }
  Bytes frame = sample_frame(Opcode::RC_SEND_ONLY, false, false, 16);
  for (unsigned total = 0; total < 28; ++total) {
    view_as<Ipv4Header>(frame.data() + 14)->total_length.set(static_cast<std::uint16_t>(total));
    CHECK(verdict_of(frame) == Verdict::IP_LENGTH);
  }
  view_as<Ipv4Header>(frame.data() + 14)->total_length.set(0xffff);
  CHECK(verdict_of(frame) == Verdict::IP_LENGTH);
}

TEST_CASE("IP headers that cannot carry RoCE are named", "[wire][parse]") {
  const Bytes good = sample_frame(Opcode::RC_SEND_ONLY, false, false, 16);
  const auto with = [&](std::size_t at, unsigned value) {
    Bytes frame = good;
    frame[at] = static_cast<std::byte>(value);
    return verdict_of(frame);
  };
  CHECK(with(14, 0x46) == Verdict::IPV4_OPTIONS);
  CHECK(with(14, 0x44) == Verdict::IPV4_OPTIONS);
  CHECK(with(14, 0x65) == Verdict::IP_VERSION);
  CHECK(with(20, 0x20) == Verdict::IP_FRAGMENT);  // more fragments
  CHECK(with(21, 0x01) == Verdict::IP_FRAGMENT);  // fragment offset
  CHECK(with(23, 6) == Verdict::OTHER);           // TCP
  CHECK(with(23, 1) == Verdict::ICMP);
  CHECK(with(24, 0xaa) == Verdict::IPV4_CHECKSUM);
  CHECK(with(37, 0x53) == Verdict::OTHER);  // another UDP port
  CHECK(with(42 + 12, 0x55) == Verdict::ICRC);

  Bytes v6 = sample_frame(Opcode::RC_SEND_ONLY, true, false, 16);
  v6[14] = std::byte{0x40};
  CHECK(verdict_of(v6) == Verdict::IP_VERSION);
  v6[14] = std::byte{0x60};
  v6[20] = std::byte{58};
  CHECK(verdict_of(v6) == Verdict::ICMPV6);
  v6[20] = std::byte{44};  // fragment header
  CHECK(verdict_of(v6) == Verdict::OTHER);
}

TEST_CASE("A changed byte is refused or shows in the parsed fields", "[wire][parse]") {
  for (const Opcode opcode : known_opcodes())
    for (const bool v6 : {false, true}) {
      const Bytes good = sample_frame(opcode, v6, true);
      const Extent extent = extent_of(good);
      const std::size_t udp = extent.ip + (v6 ? 40 : 20);
      for (std::size_t at = 0; at < extent.end; ++at)
        for (const unsigned bit : {0x01u, 0x10u, 0x80u}) {
          // Not in Packet's fields, and free: UDP checksum, and FECN and reserved bits of the BTH.
          if (at == udp + 6 || at == udp + 7 || at == udp + 8 + 4) continue;
          Bytes changed = good;
          changed[at] ^= static_cast<std::byte>(bit);
          Packet packet;
          if (parse(changed, IcrcCheck::VERIFY, packet) != Verdict::ROCE) continue;
          if (rebuild(packet) != changed)
            FAIL_CHECK(info_of(opcode).name << " byte " << at << " bit " << bit);
        }
    }
}

TEST_CASE("parse_ip judges as parse does behind the link layer", "[wire][parse][property]") {
  rc::prop("same verdict", [] {
    const auto opcode = *rc::gen::elementOf(known_opcodes());
    Bytes frame = sample_frame(opcode, *rc::gen::arbitrary<bool>(), false);
    frame[*rc::gen::inRange<std::size_t>(15, frame.size())] =
        static_cast<std::byte>(*rc::gen::arbitrary<std::uint8_t>());
    Packet a, b;
    const Verdict verdict = parse(frame, IcrcCheck::VERIFY, a);
    RC_ASSERT(parse_ip(std::span{frame}.subspan(14), IcrcCheck::VERIFY, b) == verdict);
    if (verdict == Verdict::ROCE) RC_ASSERT(a.payload.data() == b.payload.data());
  });
}
