// Values and names against the system's <infiniband/verbs.h>, so that they are the same words.
#include "verbs/enums.hpp"

#include <infiniband/verbs.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>

using namespace roce::verbs;

namespace {
template <class A, class B>
bool same(A ours, B theirs) {
  return static_cast<long>(ours) == static_cast<long>(theirs);
}
}  // namespace

TEST_CASE("Values are those of libibverbs", "[verbs][enums]") {
  CHECK(same(WcStatus::SUCCESS, IBV_WC_SUCCESS));
  CHECK(same(WcStatus::LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR));
  CHECK(same(WcStatus::LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR));
  CHECK(same(WcStatus::LOC_EEC_OP_ERR, IBV_WC_LOC_EEC_OP_ERR));
  CHECK(same(WcStatus::LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR));
  CHECK(same(WcStatus::WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR));
  CHECK(same(WcStatus::MW_BIND_ERR, IBV_WC_MW_BIND_ERR));
  CHECK(same(WcStatus::BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR));
  CHECK(same(WcStatus::LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR));
  CHECK(same(WcStatus::REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR));
  CHECK(same(WcStatus::REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR));
  CHECK(same(WcStatus::REM_OP_ERR, IBV_WC_REM_OP_ERR));
  CHECK(same(WcStatus::RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR));
  CHECK(same(WcStatus::RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR));
  CHECK(same(WcStatus::LOC_RDD_VIOL_ERR, IBV_WC_LOC_RDD_VIOL_ERR));
  CHECK(same(WcStatus::REM_INV_RD_REQ_ERR, IBV_WC_REM_INV_RD_REQ_ERR));
  CHECK(same(WcStatus::REM_ABORT_ERR, IBV_WC_REM_ABORT_ERR));
  CHECK(same(WcStatus::INV_EECN_ERR, IBV_WC_INV_EECN_ERR));
  CHECK(same(WcStatus::INV_EEC_STATE_ERR, IBV_WC_INV_EEC_STATE_ERR));
  CHECK(same(WcStatus::FATAL_ERR, IBV_WC_FATAL_ERR));
  CHECK(same(WcStatus::RESP_TIMEOUT_ERR, IBV_WC_RESP_TIMEOUT_ERR));
  CHECK(same(WcStatus::GENERAL_ERR, IBV_WC_GENERAL_ERR));

  CHECK(same(WcOpcode::SEND, IBV_WC_SEND));
  CHECK(same(WcOpcode::RDMA_WRITE, IBV_WC_RDMA_WRITE));
  CHECK(same(WcOpcode::RDMA_READ, IBV_WC_RDMA_READ));
  CHECK(same(WcOpcode::COMP_SWAP, IBV_WC_COMP_SWAP));
  CHECK(same(WcOpcode::FETCH_ADD, IBV_WC_FETCH_ADD));
  CHECK(same(WcOpcode::RECV, IBV_WC_RECV));
  CHECK(same(WcOpcode::RECV_RDMA_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM));

  CHECK(same(WrOpcode::RDMA_WRITE, IBV_WR_RDMA_WRITE));
  CHECK(same(WrOpcode::RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM));
  CHECK(same(WrOpcode::SEND, IBV_WR_SEND));
  CHECK(same(WrOpcode::SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM));
  CHECK(same(WrOpcode::RDMA_READ, IBV_WR_RDMA_READ));
  CHECK(same(WrOpcode::ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP));
  CHECK(same(WrOpcode::ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD));
  CHECK(same(WrOpcode::SEND_WITH_INV, IBV_WR_SEND_WITH_INV));

  CHECK(same(QpState::RESET, IBV_QPS_RESET));
  CHECK(same(QpState::INIT, IBV_QPS_INIT));
  CHECK(same(QpState::RTR, IBV_QPS_RTR));
  CHECK(same(QpState::RTS, IBV_QPS_RTS));
  CHECK(same(QpState::SQD, IBV_QPS_SQD));
  CHECK(same(QpState::SQE, IBV_QPS_SQE));
  CHECK(same(QpState::ERR, IBV_QPS_ERR));
  CHECK(same(QpType::RC, IBV_QPT_RC));
  CHECK(same(QpType::UC, IBV_QPT_UC));
  CHECK(same(QpType::UD, IBV_QPT_UD));
}

TEST_CASE("Flags and events are those of libibverbs", "[verbs][enums]") {
  CHECK(same(SEND_FENCE, IBV_SEND_FENCE));
  CHECK(same(SEND_SIGNALED, IBV_SEND_SIGNALED));
  CHECK(same(SEND_SOLICITED, IBV_SEND_SOLICITED));
  CHECK(same(SEND_INLINE, IBV_SEND_INLINE));
  CHECK(same(ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE));
  CHECK(same(ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE));
  CHECK(same(ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ));
  CHECK(same(ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC));
  CHECK(same(WC_GRH, IBV_WC_GRH));
  CHECK(same(WC_WITH_IMM, IBV_WC_WITH_IMM));
  CHECK(same(WC_WITH_INV, IBV_WC_WITH_INV));
  CHECK(same(Mtu::MTU_256, IBV_MTU_256));
  CHECK(same(Mtu::MTU_4096, IBV_MTU_4096));
  CHECK(bytes_of(Mtu::MTU_256) == 256);
  CHECK(bytes_of(Mtu::MTU_1024) == 1024);
  CHECK(bytes_of(Mtu::MTU_4096) == 4096);
  CHECK(same(AsyncEventType::CQ_ERR, IBV_EVENT_CQ_ERR));
  CHECK(same(AsyncEventType::QP_FATAL, IBV_EVENT_QP_FATAL));
  CHECK(same(AsyncEventType::QP_REQ_ERR, IBV_EVENT_QP_REQ_ERR));
  CHECK(same(AsyncEventType::QP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR));
  CHECK(same(AsyncEventType::COMM_EST, IBV_EVENT_COMM_EST));
  CHECK(same(AsyncEventType::SQ_DRAINED, IBV_EVENT_SQ_DRAINED));
  CHECK(same(AsyncEventType::QP_LAST_WQE_REACHED, IBV_EVENT_QP_LAST_WQE_REACHED));
}

TEST_CASE("Every value has a name of its own and unknown ones have none", "[verbs][enums]") {
  std::set<std::string> names;
  for (unsigned i = 0; i < 22; ++i)
    CHECK(names.insert(std::string{name_of(static_cast<WcStatus>(i))}).second);
  CHECK(names.count("?") == 0);
  CHECK(name_of(static_cast<WcStatus>(22)) == "?");
  CHECK(name_of(WcStatus::WR_FLUSH_ERR) == "WR_FLUSH_ERR");
  CHECK(name_of(WcStatus::GENERAL_ERR) == "GENERAL_ERR");
  CHECK(name_of(WcStatus::REM_INV_RD_REQ_ERR) == "REM_INV_RD_REQ_ERR");
  CHECK(name_of(QpState::ERR) == "ERR");
  CHECK(name_of(QpState::SQE) == "SQE");
  CHECK(name_of(QpType::UD) == "UD");
  CHECK(name_of(WcOpcode::RECV_RDMA_WITH_IMM) == "RECV_RDMA_WITH_IMM");
  CHECK(name_of(WrOpcode::SEND_WITH_INV) == "SEND_WITH_INV");
  CHECK(name_of(static_cast<WrOpcode>(7)) == "?");
  CHECK(name_of(AsyncEventType::QP_LAST_WQE_REACHED) == "QP_LAST_WQE_REACHED");
}
