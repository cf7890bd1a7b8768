#include "transport/counters.hpp"

namespace roce::transport {

const std::array<CounterInfo, sizeof(Counters) / sizeof(std::uint64_t)>& counter_table() {
#define ROCE_COUNTER(name) \
  CounterInfo {            \
#name, &Counters::name \
  }
  static constexpr std::array<CounterInfo, sizeof(Counters) / sizeof(std::uint64_t)> kTable = {{
      ROCE_COUNTER(rx_write_requests),
      ROCE_COUNTER(rx_read_requests),
      ROCE_COUNTER(rx_atomic_requests),
      ROCE_COUNTER(sent_pkts),
      ROCE_COUNTER(rcvd_pkts),
      ROCE_COUNTER(rdma_sends),
      ROCE_COUNTER(rdma_recvs),
      ROCE_COUNTER(out_of_buffer),
      ROCE_COUNTER(out_of_sequence),
      ROCE_COUNTER(duplicate_request),
      ROCE_COUNTER(resp_local_length_error),
      ROCE_COUNTER(resp_remote_access_errors),
      ROCE_COUNTER(resp_invalid_request),
      ROCE_COUNTER(resp_operational_error),
      ROCE_COUNTER(send_seq_nak),
      ROCE_COUNTER(resp_cqe_error),
      ROCE_COUNTER(resp_cqe_flush_error),
      ROCE_COUNTER(packet_seq_err),
      ROCE_COUNTER(implied_nak_seq_err),
      ROCE_COUNTER(local_ack_timeout_err),
      ROCE_COUNTER(rnr_nak_received),
      ROCE_COUNTER(rnr_nak_retry_err),
      ROCE_COUNTER(req_remote_invalid_request),
      ROCE_COUNTER(req_remote_access_errors),
      ROCE_COUNTER(req_remote_operational_errors),
      ROCE_COUNTER(req_cqe_error),
      ROCE_COUNTER(req_cqe_flush_error),
      ROCE_COUNTER(req_transport_retries_exceeded),
      ROCE_COUNTER(req_rnr_retries_exceeded),
      ROCE_COUNTER(retransmitted_packets),
      ROCE_COUNTER(roce_slow_restart),
      ROCE_COUNTER(unexpected_response),
      ROCE_COUNTER(np_ecn_marked_roce_packets),
      ROCE_COUNTER(np_cnp_sent),
      ROCE_COUNTER(rp_cnp_handled),
      ROCE_COUNTER(rp_cnp_ignored),
      ROCE_COUNTER(drop_qp_state),
      ROCE_COUNTER(drop_pkey),
      ROCE_COUNTER(drop_qkey),
      ROCE_COUNTER(drop_opcode),
      ROCE_COUNTER(drop_source),
      ROCE_COUNTER(drop_length),
      ROCE_COUNTER(drop_sequence),
      ROCE_COUNTER(drop_access),
      ROCE_COUNTER(drop_after_nak),
  }};
#undef ROCE_COUNTER
  static_assert(kTable.back().member != nullptr, "every counter has a row");
  return kTable;
}

}  // namespace roce::transport
