// Building request packets from (WR, sequence number): new ones and resends alike.
#include <algorithm>
#include <cstring>

#include "transport/requester.hpp"

namespace roce::transport {

using verbs::QpType;
using verbs::WcStatus;
using verbs::WrOpcode;
using wire::BthFields;
using wire::FrameBuilder;
using wire::Opcode;

namespace {

struct DataOpcodes {
  Opcode first, middle, last, only;
};

/// The RC opcodes of a SEND or WRITE by its WR opcode; UC's are the same plus 0x20.
constexpr DataOpcodes data_opcodes(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::RDMA_WRITE:
      return {Opcode::RC_RDMA_WRITE_FIRST, Opcode::RC_RDMA_WRITE_MIDDLE, Opcode::RC_RDMA_WRITE_LAST,
              Opcode::RC_RDMA_WRITE_ONLY};
    case WrOpcode::RDMA_WRITE_WITH_IMM:
      return {Opcode::RC_RDMA_WRITE_FIRST, Opcode::RC_RDMA_WRITE_MIDDLE,
              Opcode::RC_RDMA_WRITE_LAST_WITH_IMMEDIATE, Opcode::RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE};
    case WrOpcode::SEND_WITH_IMM:
      return {Opcode::RC_SEND_FIRST, Opcode::RC_SEND_MIDDLE, Opcode::RC_SEND_LAST_WITH_IMMEDIATE,
              Opcode::RC_SEND_ONLY_WITH_IMMEDIATE};
    case WrOpcode::SEND_WITH_INV:
      return {Opcode::RC_SEND_FIRST, Opcode::RC_SEND_MIDDLE, Opcode::RC_SEND_LAST_WITH_INVALIDATE,
              Opcode::RC_SEND_ONLY_WITH_INVALIDATE};
    default:
      return {Opcode::RC_SEND_FIRST, Opcode::RC_SEND_MIDDLE, Opcode::RC_SEND_LAST,
              Opcode::RC_SEND_ONLY};
  }
}

Opcode data_opcode(QpType type, WrOpcode wr, bool first, bool last) {
  const DataOpcodes row = data_opcodes(wr);
  const Opcode rc = first ? (last ? row.only : row.first) : (last ? row.last : row.middle);
  constexpr unsigned kUc = 0x20;
  return type == QpType::RC ? rc : static_cast<Opcode>(static_cast<unsigned>(rc) | kUc);
}

}  // namespace

bool Requester::may_begin(const SendWqe& wqe) const {
  if (draining_) return false;
  if (context_.type != QpType::RC) return true;
  if (!window_has_room(wqe.is_read() ? wqe.packets : 1)) return false;
  if ((wqe.flags & verbs::SEND_FENCE) && rd_atomic_outstanding_ != 0) return false;
  if (wqe.needs_response()) return rd_atomic_outstanding_ < max_rd_atomic_;
  // Without credits one message may still go, as a probe, when nothing else is under way.
  if (limited_ && wqe.consumes_receive() && una_ != sent_)
    return !before(Psn{credit_limit_}, Psn{wqe.ssn});
  return true;
}

std::size_t Requester::build(Instant now, std::span<std::byte> slot) {
  while (can_send()) {
    const std::size_t length = build_one(slot);
    if (length == 0) {
      if (context_.failure != Failure::NONE) return 0;
      continue;
    }
    ++context_.counters.sent_pkts;
    if (ack_deadline_.is_never() && una_ != sent_ && ack_timeout_.ns() != 0)
      ack_deadline_ = now + ack_timeout_;
    return length;
  }
  return 0;
}

std::size_t Requester::build_one(std::span<std::byte> slot) {
  SendWqe& wqe = queue_.at(cursor_);
  if (context_.type == QpType::UD) return build_datagram(wqe, slot);
  if (!wqe.needs_response()) return build_data(wqe, slot);
  if (cursor_seq_ == sent_) ++rd_atomic_outstanding_;
  return wqe.is_read() ? build_read(wqe, slot) : build_atomic(wqe, slot);
}

bool Requester::ack_request_due(bool last) {
  if (context_.type != QpType::RC) return false;
  // The first packet after RTS asks too: it opens the credits, as hardware does.
  const bool due = last || first_packet_ || ++since_ack_request_ >= kAckEvery;
  if (due) since_ack_request_ = 0;
  first_packet_ = false;
  return due;
}

std::optional<std::span<const std::byte>> Requester::payload(const SendWqe& wqe,
                                                             std::uint64_t offset,
                                                             std::span<std::byte> out) {
  if (out.empty()) return out;
  if (wqe.flags & verbs::SEND_INLINE)
    return std::span{queue_.inline_data(cursor_) + offset, out.size()};
  return gather(context_.memory, context_.pd, queue_.list(cursor_), offset, out);
}

std::size_t Requester::build_data(SendWqe& wqe, std::span<std::byte> slot) {
  const auto index = static_cast<std::uint32_t>(cursor_seq_ - wqe.first);
  const std::uint32_t offset = index << context_.mtu_shift;
  const std::uint32_t bytes = std::min(wqe.length - offset, context_.mtu());
  const bool first = index == 0;
  const bool last = index + 1 == wqe.packets;
  BthFields bth{.opcode = data_opcode(context_.type, wqe.opcode, first, last),
                .dest_qpn = context_.peer,
                .psn = psn_of(cursor_seq_),
                .pkey = context_.pkey};
  bth.ack_request = ack_request_due(last);
  bth.solicited = last && (wqe.flags & verbs::SEND_SOLICITED) && wqe.consumes_receive();
  FrameBuilder frame(slot, context_.path, bth, bytes);
  const auto source = payload(wqe, offset, frame.payload());
  if (!source) {
    note_fault(wqe, WcStatus::LOC_PROT_ERR);
    return 0;
  }
  if (first && wqe.is_write()) {
    wire::Reth& reth = frame.reth();
    reth.va.set(wqe.remote_addr);
    reth.rkey.set(wqe.rkey);
    reth.dma_length.set(wqe.length);
  }
  if (last && wqe.has_immediate())
    std::memcpy(frame.immediate().bytes, &wqe.immediate_or_inv, 4);
  else if (last && wqe.opcode == WrOpcode::SEND_WITH_INV)
    frame.ieth().rkey.set(wqe.immediate_or_inv);
  const std::size_t length = frame.finish_copying(*source);
  note_built(cursor_seq_ + 1, last);
  return length;
}

std::size_t Requester::build_read(SendWqe& wqe, std::span<std::byte> slot) {
  // What has arrived already is not asked for again: the request begins at the first missing PSN.
  if (cursor_seq_ != sent_) wqe.flags |= SendWqe::kRetried;
  const auto index = static_cast<std::uint32_t>(cursor_seq_ - wqe.first);
  const std::uint32_t offset = index << context_.mtu_shift;
  FrameBuilder frame(slot, context_.path,
                     {.opcode = Opcode::RC_RDMA_READ_REQUEST,
                      .dest_qpn = context_.peer,
                      .psn = psn_of(cursor_seq_),
                      .ack_request = ack_request_due(true),
                      .pkey = context_.pkey},
                     0);
  wire::Reth& reth = frame.reth();
  reth.va.set(wqe.remote_addr + offset);
  reth.rkey.set(wqe.rkey);
  reth.dma_length.set(wqe.length - offset);
  const std::size_t length = frame.finish();
  note_built(wqe.end(), true);
  return length;
}

std::size_t Requester::build_atomic(SendWqe& wqe, std::span<std::byte> slot) {
  const bool swap = wqe.opcode == WrOpcode::ATOMIC_CMP_AND_SWP;
  FrameBuilder frame(slot, context_.path,
                     {.opcode = swap ? Opcode::RC_COMPARE_SWAP : Opcode::RC_FETCH_ADD,
                      .dest_qpn = context_.peer,
                      .psn = psn_of(cursor_seq_),
                      .ack_request = ack_request_due(true),
                      .pkey = context_.pkey},
                     0);
  wire::AtomicEth& eth = frame.atomic_eth();
  eth.va.set(wqe.remote_addr);
  eth.rkey.set(wqe.rkey);
  eth.swap_or_add.set(swap ? wqe.swap : wqe.compare_add);
  eth.compare.set(swap ? wqe.compare_add : 0);
  const std::size_t length = frame.finish();
  note_built(wqe.end(), true);
  return length;
}

std::size_t Requester::build_datagram(SendWqe& wqe, std::span<std::byte> slot) {
  const UdTarget& target = queue_.target(cursor_);
  const bool immediate = wqe.has_immediate();
  FrameBuilder frame(
      slot, target.path,
      {.opcode = immediate ? Opcode::UD_SEND_ONLY_WITH_IMMEDIATE : Opcode::UD_SEND_ONLY,
       .dest_qpn = target.qpn,
       .psn = psn_of(cursor_seq_),
       .solicited = (wqe.flags & verbs::SEND_SOLICITED) != 0,
       .mig_req = false,
       .pkey = context_.pkey},
      wqe.length);
  const auto source = payload(wqe, 0, frame.payload());
  if (!source) {
    note_fault(wqe, WcStatus::LOC_PROT_ERR);
    return 0;
  }
  wire::Deth& deth = frame.deth();
  deth.qkey.set(target.qkey);
  deth.source_qpn_field.set(context_.number.value());
  if (immediate) std::memcpy(frame.immediate().bytes, &wqe.immediate_or_inv, 4);
  const std::size_t length = frame.finish_copying(*source);
  note_built(cursor_seq_ + 1, true);
  return length;
}

/// Moves the cursor to next, which ends the WR when last.
void Requester::note_built(std::uint64_t next, bool last) {
  if (cursor_seq_ != sent_)
    ++context_.counters.retransmitted_packets;
  else
    sent_ = next;
  cursor_seq_ = next;
  if (last) ++cursor_;
  if (context_.type == QpType::RC) return;
  // Unreliable: what has been sent is done.
  una_ = sent_;
  if (last) {
    complete_head();
    note_if_drained();
  }
}

/// The WR under the cursor fails locally. Its completion waits for those before it.
void Requester::note_fault(SendWqe& wqe, WcStatus status) {
  wqe.fault = status;
  if (cursor_ == queue_.head)
    fail_head(status, 0);
  else
    holds_ |= kHoldFault;
}

}  // namespace roce::transport
