// Any bytes as a frame: nothing is read beyond it, what is taken is well formed, and the verdict
// does not depend on how it is reached. parse() compares the ICRC last, so every rule before it is
// open to the fuzzer with SKIP and with VERIFY.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/check.hpp"
#include "wire/icrc.hpp"
#include "wire/neighbour.hpp"
#include "wire/packet.hpp"
#include "wire/pfc.hpp"
#include "wire/print.hpp"

namespace {

using namespace roce::wire;
using Frame = std::span<const std::byte>;

bool inside(Frame whole, const std::byte* at, std::size_t length) {
  return at >= whole.data() && length <= whole.size() &&
         at <= whole.data() + (whole.size() - length);
}

/// What a packet that was taken promises.
void check_packet(Frame frame, const Packet& packet) {
  const OpcodeInfo& info = packet.info();
  const std::size_t pad = packet.bth->pad_count();
  ROCE_CHECK(info.known());
  ROCE_CHECK(packet.bth->transport_version() == 0);
  ROCE_CHECK(inside(frame, packet.l3, packet.l3_bytes));
  ROCE_CHECK(packet.extensions == reinterpret_cast<const std::byte*>(packet.bth) + sizeof(Bth));
  ROCE_CHECK(packet.payload.data() == packet.extensions + info.extension_bytes);
  ROCE_CHECK(packet.payload.data() + packet.payload.size() + pad + kIcrcBytes ==
             packet.l3 + packet.l3_bytes);
  ROCE_CHECK((packet.payload.size() + pad) % 4 == 0);
  ROCE_CHECK(info.payload != PayloadRule::NONE || packet.payload.empty());
  ROCE_CHECK(packet.source_ip().is_v4() || packet.is_v6);
  ROCE_CHECK(to_string(packet).starts_with(info.name));
}

void check_parse(Frame frame) {
  Packet skipped, verified;
  const Verdict lax = parse(frame, IcrcCheck::SKIP, skipped);
  const Verdict strict = parse(frame, IcrcCheck::VERIFY, verified);
  ROCE_CHECK(lax != Verdict::ICRC);
  ROCE_CHECK(lax == Verdict::ROCE ? strict == Verdict::ROCE || strict == Verdict::ICRC
                                  : strict == lax);
  if (lax == Verdict::ROCE) {
    check_packet(frame, skipped);
    const std::size_t covered = skipped.l3_bytes - kIcrcBytes;
    const bool right = icrc({skipped.l3, covered}) == load_icrc(skipped.l3 + covered);
    ROCE_CHECK(right == (strict == Verdict::ROCE));
  }
  Packet bare;
  if (parse_ip(frame, IcrcCheck::SKIP, bare) == Verdict::ROCE) check_packet(frame, bare);
}

void check_neighbours(Frame frame) {
  std::byte slot[4096];
  const roce::MacAddress own{{2, 0, 0, 0, 0, 9}};
  if (const auto message = parse_neighbour(frame)) {
    ROCE_CHECK(!message->teaches() || !message->sender_mac->is_multicast());
    if (message->kind == NeighbourKind::SOLICITATION) {
      const NeighbourSelf self{own, message->target, message->vlan_tci};
      const std::size_t length = build_advertisement(slot, self, *message);
      const auto answer = parse_neighbour({slot, length});
      ROCE_CHECK(answer && answer->kind == NeighbourKind::ADVERTISEMENT &&
                 answer->sender == message->target && answer->sender_mac == own);
    }
  }
  if (const auto echo = parse_echo_request(frame)) {
    ROCE_CHECK(inside(frame, echo->message.data(), echo->message.size()));
    const std::size_t length = build_echo_reply(slot, own, *echo);
    ROCE_CHECK(length <= sizeof slot);
    ROCE_CHECK(!parse_echo_request({slot, length}));  // a reply is no request
  }
}

void check_flow_control(Frame frame) {
  const auto control = parse_flow_control(frame);
  if (!control) return;
  std::byte slot[kMinFrameBytes];
  const std::size_t length = build_flow_control(slot, *control);
  const auto again = parse_flow_control({slot, length});
  ROCE_CHECK(again && again->kind == control->kind && again->source == control->source &&
             again->class_enable == control->class_enable);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Frame frame = std::as_bytes(std::span{data, size});
  check_parse(frame);
  check_neighbours(frame);
  check_flow_control(frame);
  ROCE_CHECK(!describe_frame(frame).empty());
  return 0;
}
