// Loss and refusal: NAKs, implied NAKs, RNR waits, the local ACK timeout, and giving up.
#include <algorithm>

#include "transport/requester.hpp"

namespace roce::transport {

using verbs::WcStatus;
using wire::NakCode;

namespace {

constexpr std::uint8_t kForEver = 7;  ///< rnr_retry

/// How long to wait after an RNR NAK: the coded time and a margin, since a peer whose clock runs a
/// little slower would refuse again, or (some hardware) drop the resend silently.
constexpr Duration rnr_wait(std::uint8_t code) {
  const Duration coded = wire::rnr_timer(code);
  return coded + coded / 16 + Duration::microseconds(1);
}

}  // namespace

void Requester::on_nak(Instant now, std::uint64_t sequence, std::uint8_t syndrome) {
  const bool blocked = acknowledge(now, sequence);
  if (context_.failure != Failure::NONE) return;
  if (blocked && sequence >= queue_.at(queue_.head).end()) {
    on_implied_nak(now);
    return;
  }
  Counters& counters = context_.counters;
  switch (static_cast<NakCode>(wire::syndrome_value(syndrome))) {
    case NakCode::PSN_SEQUENCE_ERROR:
      ++counters.packet_seq_err;
      go_back(now);
      break;
    case NakCode::INVALID_REQUEST:
      ++counters.req_remote_invalid_request;
      fail_head(WcStatus::REM_INV_REQ_ERR, syndrome);
      break;
    case NakCode::REMOTE_ACCESS_ERROR:
      ++counters.req_remote_access_errors;
      fail_head(WcStatus::REM_ACCESS_ERR, syndrome);
      break;
    case NakCode::INVALID_RD_REQUEST:
      ++counters.req_remote_operational_errors;
      fail_head(WcStatus::REM_INV_RD_REQ_ERR, syndrome);
      break;
    default:
      ++counters.req_remote_operational_errors;
      fail_head(WcStatus::REM_OP_ERR, syndrome);
      break;
  }
}

void Requester::on_rnr_nak(Instant now, std::uint64_t sequence, std::uint8_t syndrome) {
  ++context_.counters.rnr_nak_received;
  if ((holds_ & kHoldRnr) && sequence <= rnr_seq_) return;  // the same refusal again
  const bool blocked = acknowledge(now, sequence);
  if (context_.failure != Failure::NONE) return;
  if (blocked) {
    // Something before it is missing as well: that is resent first, after the wait. It costs a
    // retry like any loss: a response that never comes must not be asked for without end.
    ++context_.counters.implied_nak_seq_err;
    if (!spend_retry()) return;
  } else if (rnr_retry_ != kForEver) {
    if (rnr_retries_left_ == 0) {
      ++context_.counters.req_rnr_retries_exceeded;
      fail_head(WcStatus::RNR_RETRY_EXC_ERR, syndrome);
      return;
    }
    --rnr_retries_left_;
  }
  holds_ |= kHoldRnr;
  rnr_seq_ = sequence;
  rnr_deadline_ = now + rnr_wait(wire::syndrome_value(syndrome));
  ack_deadline_ = Instant::never();
}

void Requester::on_implied_nak(Instant now) {
  ++context_.counters.implied_nak_seq_err;
  go_back(now);
}

/// Takes one of retry_cnt; false when there was none left, and the oldest WR has failed.
bool Requester::spend_retry() {
  if (retries_left_ > 0) {
    --retries_left_;
    return true;
  }
  ++context_.counters.req_transport_retries_exceeded;
  fail_head(WcStatus::RETRY_EXC_ERR, 0);
  return false;
}

/// Resends from una_, once per loss: further news of the same loss changes nothing.
void Requester::go_back(Instant now) {
  if (recovering_ || (holds_ & kHoldRnr)) return;
  if (!spend_retry()) return;
  recovering_ = true;
  slow_restart();
  if (ack_timeout_.ns() != 0) ack_deadline_ = now + ack_timeout_;
}

void Requester::slow_restart() {
  ++context_.counters.roce_slow_restart;
  window_ = std::max(kLeastWindow, std::min(window_, sent_ - una_) / 2);
  restart();
}

void Requester::restart() {
  cursor_ = queue_.head;
  cursor_seq_ = una_;
  // A fault found further on is found again when the cursor gets there.
  holds_ &= static_cast<std::uint8_t>(~kHoldFault);
}

void Requester::on_timeout(Instant now) {
  if (rnr_deadline_ <= now) {
    rnr_deadline_ = Instant::never();
    holds_ &= static_cast<std::uint8_t>(~kHoldRnr);
    recovering_ = false;
    ++context_.counters.rnr_nak_retry_err;
    restart();
    return;
  }
  if (ack_deadline_ > now) return;
  ++context_.counters.local_ack_timeout_err;
  if (!spend_retry()) return;
  // A NAK that comes after this may speak of the resend, and then deserves another one.
  recovering_ = false;
  slow_restart();
  ack_deadline_ = now + ack_timeout_;
}

/// Completes the oldest WR in error; the rest is flushed when the QP settles.
void Requester::fail_head(WcStatus status, std::uint8_t syndrome) {
  if (context_.failure != Failure::NONE) return;  // the queue is lost already
  const SendWqe& wqe = queue_.at(queue_.head++);
  verbs::Wc wc;
  wc.wr_id = wqe.wr_id;
  wc.status = status;
  wc.vendor_err = syndrome;
  ++context_.counters.req_cqe_error;
  context_.complete(*context_.send_cq, wc, true);
  context_.fail(context_.type == verbs::QpType::RC ? Failure::QP : Failure::SEND_QUEUE);
  stop_timers();
}

void Requester::note_if_drained() {
  if (!draining_ || context_.state != verbs::QpState::SQD) return;
  if (!queue_.empty() && queue_.at(queue_.head).first < sent_) return;
  if (drained_) return;
  drained_ = true;
  context_.note(verbs::AsyncEventType::SQ_DRAINED);
}

}  // namespace roce::transport
