// Posting send WRs, and the requester's control: start, configure, drain, flush, reset.
#include <cstring>

#include "transport/requester.hpp"

namespace roce::transport {

using verbs::QpState;
using verbs::QpType;
using verbs::WrOpcode;

namespace {

bool operation_of(QpType type, WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::SEND:
    case WrOpcode::SEND_WITH_IMM:
      return true;
    case WrOpcode::RDMA_WRITE:
    case WrOpcode::RDMA_WRITE_WITH_IMM:
      return type != QpType::UD;
    case WrOpcode::RDMA_READ:
    case WrOpcode::ATOMIC_CMP_AND_SWP:
    case WrOpcode::ATOMIC_FETCH_AND_ADD:
    case WrOpcode::SEND_WITH_INV:
      return type == QpType::RC;
  }
  return false;
}

bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::ATOMIC_CMP_AND_SWP || opcode == WrOpcode::ATOMIC_FETCH_AND_ADD;
}

}  // namespace

Requester::Requester(Context& context, const verbs::QpInitAttributes& init)
    : context_(context), signal_all_(init.sq_sig_all), queue_(init.cap, init.type) {}

PostResult Requester::check(const verbs::SendWr& wr, std::uint64_t& length) const {
  if (!operation_of(context_.type, wr.opcode)) return PostResult::BAD_OPCODE;
  const bool inlined = (wr.send_flags & verbs::SEND_INLINE) != 0;
  const bool responds = wr.opcode == WrOpcode::RDMA_READ || is_atomic(wr.opcode);
  if (responds && inlined) return PostResult::BAD_OPCODE;
  if (!inlined && wr.sg_list.size() > queue_.max_sges()) return PostResult::TOO_MANY_SGES;
  length = 0;
  for (const verbs::Sge& sge : wr.sg_list) length += sge.length;
  if (length > kMostMessageBytes) return PostResult::TOO_LONG;
  if (inlined && length > queue_.max_inline()) return PostResult::TOO_LONG;
  if (is_atomic(wr.opcode) && length != 8) return PostResult::TOO_LONG;
  if (context_.type == QpType::UD) {
    if (wr.ud.ah == nullptr) return PostResult::BAD_DESTINATION;
    if (length > context_.mtu()) return PostResult::TOO_LONG;
  }
  if (responds && max_rd_atomic_ == 0 && context_.state != QpState::ERR)
    return PostResult::NO_RD_ATOMIC;
  return PostResult::OK;
}

PostResult Requester::post(const verbs::SendWr& wr) {
  if (context_.state < QpState::RTS) return PostResult::BAD_STATE;
  if (queue_.full()) return PostResult::QUEUE_FULL;
  std::uint64_t length = 0;
  if (const PostResult bad = check(wr, length); bad != PostResult::OK) return bad;
  if (context_.state == QpState::ERR || context_.state == QpState::SQE) {
    flush_one(wr.wr_id);
    return PostResult::OK;
  }
  const std::uint32_t index = queue_.tail;
  SendWqe& wqe = queue_.at(index);
  wqe.wr_id = wr.wr_id;
  wqe.first = posted_;
  wqe.remote_addr = wr.remote_addr;
  wqe.compare_add = wr.compare_add;
  wqe.swap = wr.swap;
  wqe.rkey = wr.rkey;
  wqe.length = static_cast<std::uint32_t>(length);
  wqe.packets = is_atomic(wr.opcode) ? 1 : context_.packets_of(wqe.length);
  wqe.ssn = ++ssn_;
  if (wr.opcode == WrOpcode::SEND_WITH_INV)
    wqe.immediate_or_inv = wr.invalidate_rkey;
  else
    std::memcpy(&wqe.immediate_or_inv, wr.imm_data.data(), sizeof wqe.immediate_or_inv);
  wqe.opcode = wr.opcode;
  wqe.flags =
      static_cast<std::uint8_t>((wr.send_flags & 0x0f) | (signal_all_ ? verbs::SEND_SIGNALED : 0));
  wqe.fault = verbs::WcStatus::SUCCESS;
  if (wr.send_flags & verbs::SEND_INLINE) {
    wqe.sges = 0;
    std::byte* to = queue_.inline_data(index);
    for (const verbs::Sge& sge : wr.sg_list) {
      if (sge.length == 0) continue;
      // Inline data are plain host memory of the caller; the lkey is not looked at.
      std::memcpy(to, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(sge.addr)),
                  sge.length);
      to += sge.length;
    }
  } else {
    wqe.sges = static_cast<std::uint8_t>(wr.sg_list.size());
    verbs::Sge* to = queue_.sges(index);
    for (const verbs::Sge& sge : wr.sg_list) *to++ = sge;
  }
  if (context_.type == QpType::UD) {
    const bool own_qkey = (wr.ud.remote_qkey & 0x8000'0000) != 0;
    queue_.target(index) = {*wr.ud.ah, wr.ud.remote_qpn,
                            own_qkey ? context_.qkey : wr.ud.remote_qkey};
  }
  posted_ += wqe.packets;
  ++queue_.tail;
  return PostResult::OK;
}

void Requester::reset() {
  una_ = cursor_seq_ = sent_ = posted_ = rnr_seq_ = 0;
  window_ = kWindow;
  queue_.head = queue_.tail = cursor_ = 0;
  since_ack_request_ = rd_atomic_outstanding_ = ssn_ = credit_limit_ = 0;
  holds_ = kHoldState;
  first_packet_ = true;
  draining_ = drained_ = limited_ = recovering_ = unlimited_seen_ = false;
  stop_timers();
}

void Requester::configure(const verbs::QpAttributes& attributes) {
  max_rd_atomic_ = attributes.max_rd_atomic.value_or(0);
  retry_cnt_ = attributes.retry_cnt.value_or(0);
  rnr_retry_ = attributes.rnr_retry.value_or(0);
  const std::uint8_t code = attributes.timeout.value_or(0);
  // Infinite with 0; 4.096 us * 2^code otherwise (IBTA 9.7.6.1.3).
  ack_timeout_ = Duration::nanoseconds(code == 0 ? 0 : std::int64_t{4096} << code);
  retries_left_ = retry_cnt_;
  rnr_retries_left_ = rnr_retry_;
}

void Requester::start(const verbs::QpAttributes& attributes) {
  first_psn_ = attributes.sq_psn.value_or(Psn{});
  configure(attributes);
  holds_ = 0;
}

void Requester::drain() {
  draining_ = true;
  note_if_drained();
}

void Requester::flush_one(std::uint64_t wr_id) {
  verbs::Wc wc;
  wc.wr_id = wr_id;
  wc.status = verbs::WcStatus::WR_FLUSH_ERR;
  ++context_.counters.req_cqe_flush_error;
  context_.complete(*context_.send_cq, wc, true);
}

void Requester::flush() {
  while (!queue_.empty()) flush_one(queue_.at(queue_.head++).wr_id);
  // PSNs of WRs that were never sent are free again (UC and UD go on after SQE).
  una_ = cursor_seq_ = posted_ = sent_;
  cursor_ = queue_.head;
  rd_atomic_outstanding_ = 0;
  holds_ &= static_cast<std::uint8_t>(~(kHoldRnr | kHoldFault));
  recovering_ = false;
  stop_timers();
}

}  // namespace roce::transport
