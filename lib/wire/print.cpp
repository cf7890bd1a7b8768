#include "wire/print.hpp"

#include <fmt/format.h>

#include <iterator>

#include "wire/build.hpp"
#include "wire/neighbour.hpp"
#include "wire/pfc.hpp"
#include "wire/syndrome.hpp"

namespace roce::wire {
namespace {

using Out = std::back_insert_iterator<std::string>;

void print_bth(Out out, const Packet& packet) {
  const Bth& bth = *packet.bth;
  fmt::format_to(out, "{} dqpn=0x{:06x} psn={}", packet.info().name, bth.dest_qpn().value(),
                 bth.psn().value());
  if (bth.ack_request()) fmt::format_to(out, " ack_req");
  if (bth.solicited()) fmt::format_to(out, " se");
  if (bth.fecn()) fmt::format_to(out, " fecn");
  if (bth.becn()) fmt::format_to(out, " becn");
  if (packet.congestion_experienced()) fmt::format_to(out, " ce");
  if (bth.pkey.get() != kDefaultPkey) fmt::format_to(out, " pkey=0x{:04x}", bth.pkey.get());
}

void print_aeth(Out out, const Aeth& aeth) {
  fmt::format_to(out, " {}", syndrome_name(aeth.syndrome));
  switch (syndrome_kind(aeth.syndrome)) {
    case SyndromeKind::ACK:
      if (syndrome_value(aeth.syndrome) == kUnlimitedCredits) break;
      fmt::format_to(out, " credits={}", kCredits[syndrome_value(aeth.syndrome)]);
      break;
    case SyndromeKind::RNR_NAK:
      fmt::format_to(out, " timer={}us", rnr_timer(syndrome_value(aeth.syndrome)).us());
      break;
    case SyndromeKind::RESERVED:
    case SyndromeKind::NAK:
      fmt::format_to(out, " syndrome=0x{:02x}", aeth.syndrome);
      break;
  }
  fmt::format_to(out, " msn={}", aeth.msn.get());
}

void print_extensions(Out out, const Packet& packet) {
  const OpcodeInfo& info = packet.info();
  if (info.has(kDeth))
    fmt::format_to(out, " qkey=0x{:08x} sqpn=0x{:06x}", packet.deth().qkey.get(),
                   packet.deth().source_qpn().value());
  if (info.has(kReth))
    fmt::format_to(out, " va=0x{:x} rkey=0x{:x} dma_len={}", packet.reth().va.get(),
                   packet.reth().rkey.get(), packet.reth().dma_length.get());
  if (info.has(kAtomicEth)) {
    const AtomicEth& atomic = packet.atomic_eth();
    fmt::format_to(out, " va=0x{:x} rkey=0x{:x} {}=0x{:x}", atomic.va.get(), atomic.rkey.get(),
                   packet.opcode == Opcode::RC_FETCH_ADD ? "add" : "swap",
                   atomic.swap_or_add.get());
    if (packet.opcode == Opcode::RC_COMPARE_SWAP)
      fmt::format_to(out, " compare=0x{:x}", atomic.compare.get());
  }
  if (info.has(kImmDt)) {
    const auto& imm = packet.immediate().bytes;
    fmt::format_to(out, " imm={:02x}{:02x}{:02x}{:02x}", imm[0], imm[1], imm[2], imm[3]);
  }
  if (info.has(kIeth)) fmt::format_to(out, " inv_rkey=0x{:x}", packet.ieth().rkey.get());
  if (info.has(kAeth)) print_aeth(out, packet.aeth());
  if (info.has(kAtomicAckEth))
    fmt::format_to(out, " original=0x{:x}", packet.atomic_ack().original.get());
}

std::string describe_neighbour(const NeighbourMessage& message) {
  const bool asks = message.kind == NeighbourKind::SOLICITATION;
  const auto mac = message.sender_mac ? message.sender_mac->to_string() : std::string{"?"};
  return fmt::format("{}: {} at {} {} {}", asks ? "solicitation" : "advertisement",
                     message.sender.to_string(), mac, asks ? "asks for" : "tells",
                     message.target.to_string());
}

std::string describe_flow_control(const FlowControl& control) {
  if (control.kind == FlowControlKind::PAUSE)
    return fmt::format("pause quanta={}", control.quanta[0]);
  std::string text = "pfc";
  for (unsigned i = 0; i < 8; ++i)
    if ((control.class_enable & (1u << i)) != 0)
      fmt::format_to(std::back_inserter(text), " {}:{}", i, control.quanta[i]);
  return text;
}

}  // namespace

std::string to_string(const Packet& packet) {
  std::string text;
  const Out out = std::back_inserter(text);
  print_bth(out, packet);
  print_extensions(out, packet);
  if (packet.info().payload != PayloadRule::NONE)
    fmt::format_to(out, " payload={}", packet.payload.size());
  if (packet.bth->pad_count() != 0) fmt::format_to(out, " pad={}", packet.bth->pad_count());
  return text;
}

std::string describe_frame(std::span<const std::byte> frame, IcrcCheck check) {
  Packet packet;
  const Verdict verdict = parse(frame, check, packet);
  if (verdict == Verdict::ROCE)
    return packet.source_ip().to_string() + " > " + packet.destination_ip().to_string() + " " +
           to_string(packet);
  if (verdict == Verdict::FLOW_CONTROL) {
    if (const auto control = parse_flow_control(frame)) return describe_flow_control(*control);
  } else if (const auto message = parse_neighbour(frame)) {
    return describe_neighbour(*message);
  }
  return fmt::format("{} ({} bytes)", verdict_name(verdict), frame.size());
}

}  // namespace roce::wire
