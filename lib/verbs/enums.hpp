// The words of verbs with the values of verbs (libibverbs' ibv_* enumerations).
#pragma once

#include <cstdint>
#include <string_view>

namespace roce::verbs {

enum class WcStatus : std::uint8_t {
  SUCCESS = 0,
  LOC_LEN_ERR = 1,
  LOC_QP_OP_ERR = 2,
  LOC_EEC_OP_ERR = 3,
  LOC_PROT_ERR = 4,
  WR_FLUSH_ERR = 5,
  MW_BIND_ERR = 6,
  BAD_RESP_ERR = 7,
  LOC_ACCESS_ERR = 8,
  REM_INV_REQ_ERR = 9,
  REM_ACCESS_ERR = 10,
  REM_OP_ERR = 11,
  RETRY_EXC_ERR = 12,
  RNR_RETRY_EXC_ERR = 13,
  LOC_RDD_VIOL_ERR = 14,
  REM_INV_RD_REQ_ERR = 15,
  REM_ABORT_ERR = 16,
  INV_EECN_ERR = 17,
  INV_EEC_STATE_ERR = 18,
  FATAL_ERR = 19,
  RESP_TIMEOUT_ERR = 20,
  GENERAL_ERR = 21,
};

enum class WcOpcode : std::uint8_t {
  SEND = 0,
  RDMA_WRITE = 1,
  RDMA_READ = 2,
  COMP_SWAP = 3,
  FETCH_ADD = 4,
  RECV = 128,
  RECV_RDMA_WITH_IMM = 129,
};

enum class WrOpcode : std::uint8_t {
  RDMA_WRITE = 0,
  RDMA_WRITE_WITH_IMM = 1,
  SEND = 2,
  SEND_WITH_IMM = 3,
  RDMA_READ = 4,
  ATOMIC_CMP_AND_SWP = 5,
  ATOMIC_FETCH_AND_ADD = 6,
  SEND_WITH_INV = 9,
};

enum class QpState : std::uint8_t {
  RESET = 0,
  INIT = 1,
  RTR = 2,
  RTS = 3,
  SQD = 4,
  SQE = 5,
  ERR = 6
};

enum class QpType : std::uint8_t { RC = 2, UC = 3, UD = 4 };

enum class Mtu : std::uint8_t { MTU_256 = 1, MTU_512, MTU_1024, MTU_2048, MTU_4096 };
[[nodiscard]] constexpr std::uint32_t bytes_of(Mtu mtu) {
  return 128u << static_cast<unsigned>(mtu);
}

/// Bits of send_flags.
enum SendFlags : std::uint8_t {
  SEND_FENCE = 1,
  SEND_SIGNALED = 2,
  SEND_SOLICITED = 4,
  SEND_INLINE = 8,
};

/// Bits of an access mask (MR and QP).
enum AccessFlags : std::uint8_t {
  ACCESS_LOCAL_WRITE = 1,
  ACCESS_REMOTE_WRITE = 2,
  ACCESS_REMOTE_READ = 4,
  ACCESS_REMOTE_ATOMIC = 8,
};

/// Bits of wc_flags.
enum WcFlags : std::uint8_t { WC_GRH = 1, WC_WITH_IMM = 2, WC_WITH_INV = 8 };

enum class AsyncEventType : std::uint8_t {
  CQ_ERR = 0,
  QP_FATAL = 1,
  QP_REQ_ERR = 2,
  QP_ACCESS_ERR = 3,
  COMM_EST = 4,
  SQ_DRAINED = 5,
  QP_LAST_WQE_REACHED = 16,
};

/// The enumerator's name, as in "WR_FLUSH_ERR".
[[nodiscard]] std::string_view name_of(WcStatus status);
[[nodiscard]] std::string_view name_of(WcOpcode opcode);
[[nodiscard]] std::string_view name_of(WrOpcode opcode);
[[nodiscard]] std::string_view name_of(QpState state);
[[nodiscard]] std::string_view name_of(QpType type);
[[nodiscard]] std::string_view name_of(AsyncEventType event);

}  // namespace roce::verbs
