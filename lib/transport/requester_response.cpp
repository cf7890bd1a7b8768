// What responses do to the send queue: acknowledgement, READ data, atomic results, credits.
#include <algorithm>
#include <cstring>

#include "transport/requester.hpp"

namespace roce::transport {

using verbs::WcStatus;
using verbs::WrOpcode;
using wire::Position;
using wire::SyndromeKind;

namespace {

constexpr verbs::WcOpcode wc_opcode(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::RDMA_WRITE:
    case WrOpcode::RDMA_WRITE_WITH_IMM:
      return verbs::WcOpcode::RDMA_WRITE;
    case WrOpcode::RDMA_READ:
      return verbs::WcOpcode::RDMA_READ;
    case WrOpcode::ATOMIC_CMP_AND_SWP:
      return verbs::WcOpcode::COMP_SWAP;
    case WrOpcode::ATOMIC_FETCH_AND_ADD:
      return verbs::WcOpcode::FETCH_ADD;
    default:
      return verbs::WcOpcode::SEND;
  }
}

}  // namespace

void Requester::on_response(Instant now, const wire::Packet& packet) {
  const std::uint32_t offset = (packet.psn().value() - psn_of(una_).value()) & Psn::kMask;
  if (offset >= sent_ - una_) {
    // A ghost (never sent) or stale (acknowledged before): neither means anything now.
    ++context_.counters.unexpected_response;
    return;
  }
  const std::uint64_t sequence = una_ + offset;
  switch (packet.info().operation) {
    case wire::Operation::ACKNOWLEDGE:
      on_acknowledge(now, sequence, packet.aeth());
      break;
    case wire::Operation::RDMA_READ_RESPONSE:
      on_read_response(now, sequence, packet);
      break;
    default:
      on_atomic_response(now, sequence, packet);
      break;
  }
}

void Requester::on_acknowledge(Instant now, std::uint64_t sequence, const wire::Aeth& aeth) {
  switch (wire::syndrome_kind(aeth.syndrome)) {
    case SyndromeKind::ACK: {
      take_credits(aeth);
      if (!acknowledge(now, sequence + 1)) return;
      // A READ or atomic without its response stands in the way. Beyond it, the response was lost;
      // within its own PSNs a plain ACK says nothing.
      if (sequence >= queue_.at(queue_.head).end())
        on_implied_nak(now);
      else
        ++context_.counters.unexpected_response;
      break;
    }
    case SyndromeKind::RNR_NAK:
      on_rnr_nak(now, sequence, aeth.syndrome);
      break;
    case SyndromeKind::NAK:
      on_nak(now, sequence, aeth.syndrome);
      break;
    case SyndromeKind::RESERVED:
      ++context_.counters.unexpected_response;
      break;
  }
}

/// Acknowledges all packets before acked, as far as the next READ or atomic without its response.
/// True when one of those stood in the way.
bool Requester::acknowledge(Instant now, std::uint64_t acked) {
  const std::uint64_t was = una_;
  bool blocked = false;
  while (queue_.head != queue_.tail) {
    const SendWqe& wqe = queue_.at(queue_.head);
    if (acked <= wqe.first) break;
    if (wqe.needs_response()) {
      blocked = true;
      break;
    }
    if (acked < wqe.end()) {
      if (acked > una_) una_ = acked;
      break;
    }
    una_ = wqe.end();
    complete_head();
  }
  if (una_ != was) note_progress(now, una_ - was);
  return blocked;
}

/// Prepares for a response at sequence: what comes before is acknowledged by it. True when the
/// head is the READ or atomic that waits for exactly this packet.
bool Requester::reach(Instant now, std::uint64_t sequence) {
  static_cast<void>(acknowledge(now, sequence));
  if (context_.failure != Failure::NONE) return false;
  const SendWqe& wqe = queue_.at(queue_.head);
  if (!wqe.needs_response()) {
    fail_head(WcStatus::BAD_RESP_ERR, 0);  // data for a WR that asked for none
    return false;
  }
  if (sequence == una_) return true;
  on_implied_nak(now);
  return false;
}

/// Opcode order and length of a READ response at una_.
bool Requester::read_response_fits(const SendWqe& wqe, const wire::Packet& packet) {
  const auto index = static_cast<std::uint32_t>(una_ - wqe.first);
  const bool last = index + 1 == wqe.packets;
  const Position position = packet.info().position;
  const bool ends = position == Position::LAST || position == Position::ONLY;
  const bool starts = position == Position::FIRST || position == Position::ONLY;
  // After a partial retry the answer may start over with FIRST or ONLY, or go on with MIDDLE or
  // LAST as older Soft-RoCE does.
  const bool retried = (wqe.flags & SendWqe::kRetried) != 0;
  if (ends != last || (!retried && starts != (index == 0))) {
    fail_head(WcStatus::BAD_RESP_ERR, 0);
    return false;
  }
  const std::uint32_t expected = last ? wqe.length - (index << context_.mtu_shift) : context_.mtu();
  if (packet.payload.size() != expected) {
    fail_head(WcStatus::LOC_LEN_ERR, 0);
    return false;
  }
  return true;
}

void Requester::on_read_response(Instant now, std::uint64_t sequence, const wire::Packet& packet) {
  if (!reach(now, sequence)) return;
  const SendWqe& wqe = queue_.at(queue_.head);
  if (packet.info().has(wire::kAeth)) {
    if (wire::syndrome_kind(packet.aeth().syndrome) != SyndromeKind::ACK || !wqe.is_read()) {
      fail_head(WcStatus::BAD_RESP_ERR, packet.aeth().syndrome);
      return;
    }
    take_credits(packet.aeth());
  } else if (!wqe.is_read()) {
    fail_head(WcStatus::BAD_RESP_ERR, 0);
    return;
  }
  if (!read_response_fits(wqe, packet)) return;
  const std::uint64_t offset = (una_ - wqe.first) << context_.mtu_shift;
  if (!scatter(context_.memory, context_.pd, queue_.list(queue_.head), offset, packet.payload)) {
    fail_head(WcStatus::LOC_PROT_ERR, 0);
    return;
  }
  ++una_;
  if (una_ == wqe.end()) {
    --rd_atomic_outstanding_;
    complete_head();
  }
  note_progress(now, 1);
}

void Requester::on_atomic_response(Instant now, std::uint64_t sequence,
                                   const wire::Packet& packet) {
  const wire::Aeth& aeth = packet.aeth();
  if (wire::syndrome_kind(aeth.syndrome) != SyndromeKind::ACK) {
    on_acknowledge(now, sequence, aeth);  // some peers refuse an atomic by this opcode
    return;
  }
  if (!reach(now, sequence)) return;
  if (!queue_.at(queue_.head).is_atomic()) {
    fail_head(WcStatus::BAD_RESP_ERR, aeth.syndrome);
    return;
  }
  take_credits(aeth);
  const std::uint64_t original = packet.atomic_ack().original.get();
  if (!scatter(context_.memory, context_.pd, queue_.list(queue_.head), 0,
               std::as_bytes(std::span{&original, 1}))) {
    fail_head(WcStatus::LOC_PROT_ERR, 0);
    return;
  }
  ++una_;
  --rd_atomic_outstanding_;
  complete_head();
  note_progress(now, 1);
}

/// End-to-end credits (IBTA 9.7.7.2). Finite ones limit messages that take a receive WR; once the
/// peer has said "no limit" that stays.
void Requester::take_credits(const wire::Aeth& aeth) {
  const std::uint8_t code = wire::syndrome_value(aeth.syndrome);
  if (code == wire::kUnlimitedCredits) [[likely]] {
    unlimited_seen_ = true;
    limited_ = false;
    return;
  }
  if (unlimited_seen_) return;
  const Psn limit{aeth.msn.get() + wire::kCredits[code]};
  // An older ACK may arrive late: the limit never moves back.
  if (!limited_ || before(Psn{credit_limit_}, limit)) credit_limit_ = limit.value();
  limited_ = true;
}

/// The oldest WR is done: its completion is written if it asked for one, its slot is free.
void Requester::complete_head() {
  const SendWqe& wqe = queue_.at(queue_.head++);
  if (wc_opcode(wqe.opcode) == verbs::WcOpcode::SEND) ++context_.counters.rdma_sends;
  if (!(wqe.flags & verbs::SEND_SIGNALED)) return;
  verbs::Wc wc;
  wc.wr_id = wqe.wr_id;
  wc.opcode = wc_opcode(wqe.opcode);
  wc.byte_len = wqe.length;
  context_.complete(*context_.send_cq, wc, false);
}

/// una_ has moved by so many packets: the window grows by an eighth of them, retry counts start
/// anew, the timer too, and nothing acknowledged is sent again.
void Requester::note_progress(Instant now, std::uint64_t packets) {
  if (window_ < kWindow) [[unlikely]]
    window_ = std::min(kWindow, window_ + (packets + 7) / 8);
  retries_left_ = retry_cnt_;
  rnr_retries_left_ = rnr_retry_;
  recovering_ = false;
  if (cursor_seq_ < una_) {
    cursor_seq_ = una_;
    cursor_ = queue_.head;
  }
  if (ack_timeout_.ns() != 0) ack_deadline_ = una_ == sent_ ? Instant::never() : now + ack_timeout_;
  if (holds_ == 0 && !draining_) [[likely]]
    return;
  if ((holds_ & kHoldRnr) && una_ > rnr_seq_) {
    holds_ &= static_cast<std::uint8_t>(~kHoldRnr);
    rnr_deadline_ = Instant::never();
  }
  if (holds_ & kHoldRnr) ack_deadline_ = Instant::never();
  if ((holds_ & kHoldFault) && queue_.head == cursor_) fail_head(queue_.at(cursor_).fault, 0);
  note_if_drained();
}

}  // namespace roce::transport
