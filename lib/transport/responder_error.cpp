// The responder's refusals (NAKs) and control: RNR, fatal errors, flush, reset, start.
#include <bit>

#include "transport/responder.hpp"

namespace roce::transport {

using verbs::AsyncEventType;
using verbs::WcStatus;
using wire::NakCode;

/// Refuses the packet at ePSN for good: NAK, completion or event, and the QP goes to ERR. What was
/// due before it is still sent, then the NAK. Always false.
bool Responder::refuse(NakCode code, WcStatus status) {
  Counters& counters = context_.counters;
  switch (code) {
    case NakCode::REMOTE_ACCESS_ERROR:
      ++counters.resp_remote_access_errors;
      break;
    case NakCode::REMOTE_OPERATIONAL_ERROR:
      ++counters.resp_operational_error;
      break;
    default:
      ++counters.resp_invalid_request;
      break;
  }
  nak_ = Nak::FATAL;
  nak_syndrome_ = wire::nak_syndrome(code);
  nak_psn_ = expected_;
  if (message_ == Message::SEND)
    fail_receive(status);
  else
    context_.note(code == NakCode::REMOTE_ACCESS_ERROR ? AsyncEventType::QP_ACCESS_ERR
                                                       : AsyncEventType::QP_REQ_ERR);
  message_ = Message::NONE;
  context_.fail(Failure::QP);
  return false;
}

/// No receive WR for the packet at ePSN: RNR NAK, nothing else changes. Always false.
bool Responder::refuse_for_now() {
  ++context_.counters.out_of_buffer;
  nak_ = Nak::RNR;
  silent_ = true;
  return false;
}

/// The receive WR in use completes in error.
void Responder::fail_receive(WcStatus status) {
  if (queue_.empty()) return;
  verbs::Wc wc;
  wc.wr_id = queue_.front().wr_id;
  wc.status = status;
  wc.opcode = verbs::WcOpcode::RECV;
  ++queue_.head;
  ++context_.counters.resp_cqe_error;
  context_.complete(*context_.recv_cq, wc, true);
}

void Responder::drop_responses() {
  for (std::uint32_t i = resource_head_; i != resource_tail_; ++i)
    resource(i).pending = resource(i).ack_before = false;
  resource_due_ = resource_tail_;
  ack_due_ = unanswered_ = false;
  nak_ = Nak::NONE;
}

void Responder::flush() {
  while (!queue_.empty()) {
    verbs::Wc wc;
    wc.wr_id = queue_.front().wr_id;
    wc.status = WcStatus::WR_FLUSH_ERR;
    wc.opcode = verbs::WcOpcode::RECV;
    ++queue_.head;
    ++context_.counters.resp_cqe_flush_error;
    context_.complete(*context_.recv_cq, wc, true);
  }
  message_ = Message::NONE;
  if (nak_ != Nak::FATAL) drop_responses();
}

void Responder::reset() {
  queue_.head = queue_.tail;
  message_ = Message::NONE;
  silent_ = false;
  msn_ = received_ = 0;
  drop_responses();
  resource_head_ = resource_tail_ = resource_due_ = 0;
}

void Responder::configure(const verbs::QpAttributes& attributes) {
  access_ = attributes.qp_access_flags.value_or(0);
  rnr_timer_ = attributes.min_rnr_timer.value_or(0);
  const std::uint8_t most = attributes.max_dest_rd_atomic.value_or(0);
  if (most == max_resources_) return;
  max_resources_ = most;
  // Peers round their depth up to a power of two as well.
  resources_.assign(std::bit_ceil(most == 0 ? 1u : std::uint32_t{most}), Resource{});
  resource_mask_ = static_cast<std::uint32_t>(resources_.size()) - 1;
  resource_head_ = resource_tail_ = resource_due_ = 0;
}

void Responder::start(const verbs::QpAttributes& attributes) {
  configure(attributes);
  expected_ = attributes.rq_psn.value_or(Psn{});
}

}  // namespace roce::transport
