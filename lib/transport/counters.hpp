// Counters of the transport, under the names of rxe's and mlx5's hw_counters. One writer (the
// worker), free-running; any thread may read.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace roce::transport {

struct Counters {
  // Requests accepted by the responder (mlx5 rx_*).
  std::uint64_t rx_write_requests = 0;
  std::uint64_t rx_read_requests = 0;
  std::uint64_t rx_atomic_requests = 0;
  // Packets and payload bytes (rxe sent_pkts/rcvd_pkts, mlx5 optional counters).
  std::uint64_t sent_pkts = 0;
  std::uint64_t rcvd_pkts = 0;
  std::uint64_t rdma_sends = 0;  ///< rxe: completed SEND messages, requester side
  std::uint64_t rdma_recvs = 0;  ///< rxe: receive WRs consumed
  // Responder.
  std::uint64_t out_of_buffer =
      0;  ///< RNR NAKs sent (rxe send_rnr_err); UC/UD: dropped for want of a WR
  std::uint64_t out_of_sequence = 0;  ///< PSN beyond the expected one (rxe out_of_seq_request)
  std::uint64_t duplicate_request = 0;
  std::uint64_t resp_local_length_error = 0;
  std::uint64_t resp_remote_access_errors = 0;  ///< NAK REMOTE_ACCESS_ERROR sent
  std::uint64_t resp_invalid_request = 0;       ///< NAK INVALID_REQUEST sent
  std::uint64_t resp_operational_error = 0;     ///< NAK REMOTE_OPERATIONAL_ERROR sent
  std::uint64_t send_seq_nak = 0;               ///< NAK PSN_SEQUENCE_ERROR sent
  std::uint64_t resp_cqe_error = 0;
  std::uint64_t resp_cqe_flush_error = 0;
  // Requester.
  std::uint64_t packet_seq_err = 0;       ///< NAK PSN_SEQUENCE_ERROR received (rxe rcvd_seq_err)
  std::uint64_t implied_nak_seq_err = 0;  ///< a READ or atomic response was skipped
  std::uint64_t local_ack_timeout_err = 0;
  std::uint64_t rnr_nak_received = 0;   ///< RNR NAKs received (rxe rcvd_rnr_err)
  std::uint64_t rnr_nak_retry_err = 0;  ///< requests resent after an RNR wait
  std::uint64_t req_remote_invalid_request = 0;
  std::uint64_t req_remote_access_errors = 0;
  std::uint64_t req_remote_operational_errors = 0;
  std::uint64_t req_cqe_error = 0;
  std::uint64_t req_cqe_flush_error = 0;
  std::uint64_t req_transport_retries_exceeded = 0;  ///< rxe retry_exceeded_err
  std::uint64_t req_rnr_retries_exceeded = 0;        ///< rxe retry_rnr_exceeded_err
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t roce_slow_restart = 0;    ///< go-backs started
  std::uint64_t unexpected_response = 0;  ///< ghost, stale or malformed ACK or response, ignored
  // Congestion notification.
  std::uint64_t np_ecn_marked_roce_packets = 0;
  std::uint64_t np_cnp_sent = 0;
  std::uint64_t rp_cnp_handled = 0;  ///< CNPs, and other packets with BECN, that a QP heeded
  std::uint64_t rp_cnp_ignored = 0;  ///< CNPs for a QP without congestion control
  // Silent drops, by cause.
  std::uint64_t drop_qp_state = 0;  ///< the QP does not receive in its state
  std::uint64_t drop_pkey = 0;
  std::uint64_t drop_qkey = 0;
  std::uint64_t drop_opcode = 0;     ///< opcode of another transport than the QP's
  std::uint64_t drop_source = 0;     ///< RC/UC packet from another address than the peer's
  std::uint64_t drop_length = 0;     ///< UC/UD: length rule broken
  std::uint64_t drop_sequence = 0;   ///< UC: rest of a broken message
  std::uint64_t drop_access = 0;     ///< UC: key check failed
  std::uint64_t drop_after_nak = 0;  ///< RC: between a NAK and the resend
};

/// Name and place of each counter, for printing, JSON and Prometheus alike.
struct CounterInfo {
  std::string_view name;
  std::uint64_t Counters::*member;
};
[[nodiscard]] const std::array<CounterInfo, sizeof(Counters) / sizeof(std::uint64_t)>&
counter_table();

}  // namespace roce::transport
