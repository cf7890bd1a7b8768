#include "verbs/enums.hpp"

#include <array>

namespace roce::verbs {

std::string_view name_of(WcStatus status) {
  constexpr std::array<std::string_view, 22> kNames = {
      "SUCCESS",          "LOC_LEN_ERR",       "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
      "LOC_PROT_ERR",     "WR_FLUSH_ERR",      "MW_BIND_ERR",       "BAD_RESP_ERR",
      "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",    "REM_OP_ERR",
      "RETRY_EXC_ERR",    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
      "REM_ABORT_ERR",    "INV_EECN_ERR",      "INV_EEC_STATE_ERR", "FATAL_ERR",
      "RESP_TIMEOUT_ERR", "GENERAL_ERR"};
  const auto i = static_cast<std::size_t>(status);
  return i < kNames.size() ? kNames[i] : "?";
}

std::string_view name_of(WcOpcode opcode) {
  switch (opcode) {
    case WcOpcode::SEND:
      return "SEND";
    case WcOpcode::RDMA_WRITE:
      return "RDMA_WRITE";
    case WcOpcode::RDMA_READ:
      return "RDMA_READ";
    case WcOpcode::COMP_SWAP:
      return "COMP_SWAP";
    case WcOpcode::FETCH_ADD:
      return "FETCH_ADD";
    case WcOpcode::RECV:
      return "RECV";
    case WcOpcode::RECV_RDMA_WITH_IMM:
      return "RECV_RDMA_WITH_IMM";
  }
  return "?";
}

std::string_view name_of(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::RDMA_WRITE:
      return "RDMA_WRITE";
    case WrOpcode::RDMA_WRITE_WITH_IMM:
      return "RDMA_WRITE_WITH_IMM";
    case WrOpcode::SEND:
      return "SEND";
    case WrOpcode::SEND_WITH_IMM:
      return "SEND_WITH_IMM";
    case WrOpcode::RDMA_READ:
      return "RDMA_READ";
    case WrOpcode::ATOMIC_CMP_AND_SWP:
      return "ATOMIC_CMP_AND_SWP";
    case WrOpcode::ATOMIC_FETCH_AND_ADD:
      return "ATOMIC_FETCH_AND_ADD";
    case WrOpcode::SEND_WITH_INV:
      return "SEND_WITH_INV";
  }
  return "?";
}

std::string_view name_of(QpState state) {
  constexpr std::array<std::string_view, 7> kNames = {"RESET", "INIT", "RTR", "RTS",
                                                      "SQD",   "SQE",  "ERR"};
  const auto i = static_cast<std::size_t>(state);
  return i < kNames.size() ? kNames[i] : "?";
}

std::string_view name_of(QpType type) {
  switch (type) {
    case QpType::RC:
      return "RC";
    case QpType::UC:
      return "UC";
    case QpType::UD:
      return "UD";
  }
  return "?";
}

std::string_view name_of(AsyncEventType event) {
  switch (event) {
    case AsyncEventType::CQ_ERR:
      return "CQ_ERR";
    case AsyncEventType::QP_FATAL:
      return "QP_FATAL";
    case AsyncEventType::QP_REQ_ERR:
      return "QP_REQ_ERR";
    case AsyncEventType::QP_ACCESS_ERR:
      return "QP_ACCESS_ERR";
    case AsyncEventType::COMM_EST:
      return "COMM_EST";
    case AsyncEventType::SQ_DRAINED:
      return "SQ_DRAINED";
    case AsyncEventType::QP_LAST_WQE_REACHED:
      return "QP_LAST_WQE_REACHED";
  }
  return "?";
}

}  // namespace roce::verbs
