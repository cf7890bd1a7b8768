// What a QP is made with and what modify() sets, by verbs' names.
#pragma once

#include <cstdint>
#include <optional>

#include "base/types.hpp"
#include "verbs/enums.hpp"
#include "verbs/memory.hpp"
#include "wire/build.hpp"

namespace roce::verbs {

class CompletionQueue;

/// Sizes fixed at creation (ibv_qp_cap).
struct QpCapabilities {
  std::uint32_t max_send_wr = 128;
  std::uint32_t max_recv_wr = 128;
  std::uint32_t max_send_sge = 4;       ///< 1..32
  std::uint32_t max_recv_sge = 4;       ///< 1..32
  std::uint32_t max_inline_data = 256;  ///< bytes, 0..1024
};

struct QpInitAttributes {
  QpType type = QpType::RC;
  Pd pd;
  CompletionQueue* send_cq = nullptr;  ///< not null; may be the same as recv_cq
  CompletionQueue* recv_cq = nullptr;
  QpCapabilities cap{};
  bool sq_sig_all = false;  ///< every send WR is signalled
};

/// Attributes of a QP. modify() takes the state transition's mandatory ones and checks ranges; an
/// empty optional leaves the value as it is. Defaults are those of a fresh QP.
struct QpAttributes {
  std::optional<QpState> qp_state;
  std::optional<Mtu> path_mtu;                     ///< RTR
  std::optional<wire::PathAttributes> path;        ///< RTR (RC, UC): address vector
  std::optional<Qpn> dest_qp_num;                  ///< RTR (RC, UC)
  std::optional<Psn> rq_psn;                       ///< RTR (RC, UC): first PSN expected
  std::optional<Psn> sq_psn;                       ///< RTS: first PSN sent
  std::optional<std::uint8_t> max_rd_atomic;       ///< RTS (RC): initiator depth, 0..128
  std::optional<std::uint8_t> max_dest_rd_atomic;  ///< RTR (RC): responder resources, 0..128
  std::optional<std::uint8_t> min_rnr_timer;       ///< RTR (RC): code 0..31; 0 is 655.36 ms
  std::optional<std::uint8_t> timeout;    ///< RTS (RC): 0 (none) or 4.096 us * 2^timeout, 1..31
  std::optional<std::uint8_t> retry_cnt;  ///< RTS (RC): 0..7, 7 is a finite seven
  std::optional<std::uint8_t> rnr_retry;  ///< RTS (RC): 0..7, 7 is for ever
  std::optional<std::uint8_t> qp_access_flags;  ///< INIT (RC, UC): REMOTE_* of AccessFlags
  std::optional<std::uint32_t> qkey;            ///< INIT (UD)
  std::optional<std::uint16_t> pkey;            ///< INIT: default 0xffff
};

}  // namespace roce::verbs
