// Building responses, strictly in PSN order: what the resources owe first, then the NAK or ACK.
#include <algorithm>
#include <cstring>

#include "transport/responder.hpp"

namespace roce::transport {

using wire::FrameBuilder;
using wire::NakCode;
using wire::Opcode;

std::size_t Responder::build(std::span<std::byte> slot) {
  std::size_t length = 0;
  if (resource_due_ != resource_tail_) {
    length = build_resource(slot);
  } else if (nak_ != Nak::NONE) {
    length = build_nak(slot);
  } else if (ack_due_) {
    ack_due_ = unanswered_ = false;
    length = build_acknowledge(slot, expected_ - 1, wire::ack_syndrome(), msn_);
  } else {
    return 0;
  }
  ++context_.counters.sent_pkts;
  return length;
}

/// An ACK or NAK. Credits are always "no limit": the receive queue is not shared out.
std::size_t Responder::build_acknowledge(std::span<std::byte> slot, Psn psn, std::uint8_t syndrome,
                                         std::uint32_t msn) {
  FrameBuilder frame(slot, context_.path,
                     {.opcode = Opcode::RC_ACKNOWLEDGE,
                      .dest_qpn = context_.peer,
                      .psn = psn,
                      .pkey = context_.pkey},
                     0);
  frame.aeth().syndrome = syndrome;
  frame.aeth().msn.set(msn);
  return frame.finish();
}

/// A NAK acknowledges all before its PSN, so that an ACK that was due goes with it.
std::size_t Responder::build_nak(std::span<std::byte> slot) {
  const Nak nak = nak_;
  nak_ = Nak::NONE;
  ack_due_ = unanswered_ = false;
  switch (nak) {
    case Nak::RNR:
      return build_acknowledge(slot, expected_, wire::rnr_syndrome(rnr_timer_), msn_);
    case Nak::FATAL:
      return build_acknowledge(slot, nak_psn_, nak_syndrome_, msn_);
    default:
      ++context_.counters.send_seq_nak;
      return build_acknowledge(slot, expected_, wire::nak_syndrome(NakCode::PSN_SEQUENCE_ERROR),
                               msn_);
  }
}

std::size_t Responder::build_resource(std::span<std::byte> slot) {
  Resource& next = resource(resource_due_);
  std::size_t length = 0;
  if (next.ack_before) {
    next.ack_before = false;
    length = build_acknowledge(slot, next.first - 1, wire::ack_syndrome(), next.ack_msn);
  } else {
    length = next.atomic ? build_atomic(slot, next) : build_read(slot, next);
  }
  skip_answered();
  return length;
}

std::size_t Responder::build_atomic(std::span<std::byte> slot, Resource& atomic) {
  FrameBuilder frame(slot, context_.path,
                     {.opcode = Opcode::RC_ATOMIC_ACKNOWLEDGE,
                      .dest_qpn = context_.peer,
                      .psn = atomic.first,
                      .pkey = context_.pkey},
                     0);
  frame.aeth().syndrome = wire::ack_syndrome();
  frame.aeth().msn.set(atomic.msn);
  frame.atomic_ack().original.set(atomic.original);
  atomic.pending = false;
  return frame.finish();
}

std::size_t Responder::build_read(std::span<std::byte> slot, Resource& read) {
  const std::uint32_t index = read.next;
  const std::uint32_t offset = index << context_.mtu_shift;
  const std::uint32_t bytes = std::min(read.end_byte - offset, context_.mtu());
  const bool first = index == read.start;
  const bool last = index + 1 == read.end;
  const std::byte* host = nullptr;
  if (bytes != 0) {
    // Checked again with each packet: the region may have gone since the request.
    host = context_.memory
               .check(read.rkey, context_.pd, read.va + offset, bytes, verbs::ACCESS_REMOTE_READ)
               .host;
    if (host == nullptr) {
      const Psn psn = read.first + index;
      drop_responses();
      message_ = Message::NONE;  // a receive WR in use is not at fault: it is flushed
      refuse(NakCode::REMOTE_ACCESS_ERROR, verbs::WcStatus::REM_ACCESS_ERR);
      nak_psn_ = psn;
      return build_nak(slot);
    }
  }
  const Opcode opcode =
      first ? (last ? Opcode::RC_RDMA_READ_RESPONSE_ONLY : Opcode::RC_RDMA_READ_RESPONSE_FIRST)
            : (last ? Opcode::RC_RDMA_READ_RESPONSE_LAST : Opcode::RC_RDMA_READ_RESPONSE_MIDDLE);
  FrameBuilder frame(slot, context_.path,
                     {.opcode = opcode,
                      .dest_qpn = context_.peer,
                      .psn = read.first + index,
                      .pkey = context_.pkey},
                     bytes);
  if (first || last) {
    frame.aeth().syndrome = wire::ack_syndrome();
    frame.aeth().msn.set(read.msn);
  }
  ++read.next;
  if (last) read.pending = false;
  return frame.finish_copying({host, bytes});
}

}  // namespace roce::transport
