// RC requests: the order of checks of IBTA 9.7.4 (PSN, opcode sequence, access, resources, length,
// key), execution of SEND and WRITE, and the receive queue's control.
#include "transport/responder.hpp"

namespace roce::transport {

using verbs::QpState;
using verbs::WcStatus;
using wire::NakCode;
using wire::Operation;
using wire::Packet;

Responder::Responder(Context& context, const verbs::QpInitAttributes& init)
    : context_(context), queue_(init.cap), resources_(1) {}

PostResult Responder::post(const verbs::RecvWr& wr) {
  if (context_.state == QpState::RESET) return PostResult::BAD_STATE;
  if (queue_.full()) return PostResult::QUEUE_FULL;
  if (wr.sg_list.size() > queue_.max_sges()) return PostResult::TOO_MANY_SGES;
  queue_.push(wr);
  if (context_.state == QpState::ERR) flush();
  return PostResult::OK;
}

void Responder::on_request(const Packet& packet) {
  const Psn psn = packet.psn();
  if (psn != expected_) [[unlikely]] {
    if (before(psn, expected_))
      duplicate(packet);
    else
      out_of_sequence(psn);
    return;
  }
  silent_ = false;
  if (nak_ == Nak::RNR) nak_ = Nak::NONE;  // not yet sent, and the packet is here again
  if (!execute(packet)) return;
  // READ and atomic leave nothing unanswered: their response acknowledges them.
  if (packet.bth->ack_request()) ack_due_ = unanswered_;
  if (nak_ == Nak::SEQUENCE) [[unlikely]]
    note_in_order();
}

/// A gap: one NAK, then silence until the expected packet arrives.
void Responder::out_of_sequence(Psn psn) {
  if (nak_ == Nak::SEQUENCE && before(gap_high_, psn)) gap_high_ = psn;
  if (silent_) {
    ++context_.counters.drop_after_nak;
    return;
  }
  ++context_.counters.out_of_sequence;
  silent_ = true;
  if (nak_ == Nak::NONE) gap_high_ = psn;
  nak_ = Nak::SEQUENCE;
}

/// The missing packet came before the NAK left. The NAK is still needed for what was dropped
/// behind it, unless that has come again too.
void Responder::note_in_order() {
  if (before(gap_high_, expected_)) nak_ = Nak::NONE;
}

bool Responder::execute(const Packet& packet) {
  switch (packet.info().operation) {
    case Operation::SEND:
      return execute_send(packet);
    case Operation::RDMA_WRITE:
      return execute_write(packet);
    case Operation::RDMA_READ_REQUEST:
      return accept_read(packet);
    default:
      return accept_atomic(packet);
  }
}

/// FIRST and ONLY begin a message when none is under way; MIDDLE and LAST go on with their kind.
bool Responder::follows(const Packet& packet) const {
  return packet.info().starts_message() ? message_ == Message::NONE : message_ == kind_of(packet);
}

/// Payload against the path MTU by the opcode's rule.
bool Responder::length_fits(const Packet& packet) const {
  const std::size_t bytes = packet.payload.size();
  switch (packet.info().payload) {
    case wire::PayloadRule::NONE:
      return bytes == 0;
    case wire::PayloadRule::FULL_MTU:
      return bytes == context_.mtu();
    case wire::PayloadRule::ONE_TO_MTU:
      return bytes >= 1 && bytes <= context_.mtu();
    case wire::PayloadRule::ZERO_TO_MTU:
      return bytes <= context_.mtu();
  }
  return false;
}

bool Responder::execute_send(const Packet& packet) {
  const wire::OpcodeInfo& info = packet.info();
  if (!follows(packet)) return refuse(NakCode::INVALID_REQUEST, WcStatus::REM_INV_REQ_ERR);
  if (info.starts_message()) {
    if (queue_.empty()) return refuse_for_now();
    received_ = 0;
    message_ = Message::SEND;
  }
  const auto bytes = static_cast<std::uint32_t>(packet.payload.size());
  if (!length_fits(packet)) return refuse(NakCode::INVALID_REQUEST, WcStatus::REM_INV_REQ_ERR);
  if (bytes > queue_.front().length - received_) {
    ++context_.counters.resp_local_length_error;
    return refuse(NakCode::INVALID_REQUEST, WcStatus::LOC_LEN_ERR);
  }
  if (!scatter(context_.memory, context_.pd, queue_.front_list(), received_, packet.payload))
    return refuse(NakCode::REMOTE_OPERATIONAL_ERROR, WcStatus::LOC_PROT_ERR);
  if (info.has(wire::kIeth) && !context_.memory.invalidate(packet.ieth().rkey.get(), context_.pd))
    return refuse(NakCode::REMOTE_ACCESS_ERROR, WcStatus::REM_ACCESS_ERR);
  received_ += bytes;
  expected_ += 1;
  unanswered_ = true;
  if (!info.ends_message()) return true;
  message_ = Message::NONE;
  ++msn_;
  complete_receive(packet, received_);
  return true;
}

bool Responder::execute_write(const Packet& packet) {
  const wire::OpcodeInfo& info = packet.info();
  if (!follows(packet)) return refuse(NakCode::INVALID_REQUEST, WcStatus::REM_INV_REQ_ERR);
  if (info.starts_message() && !begin_write(packet)) return false;
  const bool immediate = info.has(wire::kImmDt);
  if (immediate && queue_.empty()) {
    if (info.starts_message()) message_ = Message::NONE;
    return refuse_for_now();
  }
  const auto bytes = static_cast<std::uint32_t>(packet.payload.size());
  const std::uint32_t left = write_length_ - received_;
  const bool ends = info.ends_message();
  if (!length_fits(packet) || (ends ? bytes != left : bytes >= left))
    return refuse(NakCode::INVALID_REQUEST, WcStatus::REM_INV_REQ_ERR);
  if (bytes != 0) {
    // The key is checked again with each packet: the region may have gone in between.
    std::byte* host = write_target(bytes);
    if (host == nullptr) return refuse(NakCode::REMOTE_ACCESS_ERROR, WcStatus::REM_ACCESS_ERR);
    place_write(packet, host);
  }
  received_ += bytes;
  expected_ += 1;
  unanswered_ = true;
  if (!ends) return true;
  message_ = Message::NONE;
  ++msn_;
  ++context_.counters.rx_write_requests;
  if (immediate) complete_receive(packet, write_length_);
  return true;
}

/// FIRST or ONLY: access, length and the whole range, before a byte is placed.
bool Responder::begin_write(const Packet& packet) {
  if (!(access_ & verbs::ACCESS_REMOTE_WRITE))
    return refuse(NakCode::INVALID_REQUEST, WcStatus::REM_INV_REQ_ERR);
  const wire::Reth& reth = packet.reth();
  const std::uint32_t length = reth.dma_length.get();
  if (length > kMostMessageBytes)
    return refuse(NakCode::INVALID_REQUEST, WcStatus::REM_INV_REQ_ERR);
  write_va_ = reth.va.get();
  write_rkey_ = reth.rkey.get();
  write_length_ = length;
  received_ = 0;
  if (length != 0 &&
      !context_.memory
           .check(write_rkey_, context_.pd, write_va_, length, verbs::ACCESS_REMOTE_WRITE)
           .ok())
    return refuse(NakCode::REMOTE_ACCESS_ERROR, WcStatus::REM_ACCESS_ERR);
  message_ = Message::WRITE;
  return true;
}

}  // namespace roce::transport
