// Work requests and completions, field for field as in libibverbs.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/types.hpp"
#include "verbs/enums.hpp"
#include "wire/build.hpp"

namespace roce::verbs {

/// Scatter/gather element. addr is an address inside the MR that lkey names.
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;  ///< bytes
  std::uint32_t lkey = 0;
};

/// Four bytes of immediate data as they stand on the wire (network order is the application's).
using Immediate = std::array<std::uint8_t, 4>;

/// Where a UD WR goes: an address handle with the remote QP's number and Q_Key.
struct UdDestination {
  const wire::PathHeaders* ah = nullptr;  ///< copied when the WR is posted
  Qpn remote_qpn;
  std::uint32_t remote_qkey = 0;  ///< top bit set: use the QP's own Q_Key instead
};

/// A send work request. sg_list and inline data are copied when it is posted.
struct SendWr {
  std::uint64_t wr_id = 0;
  WrOpcode opcode = WrOpcode::SEND;
  std::uint8_t send_flags = 0;  ///< SendFlags
  std::span<const Sge> sg_list{};
  Immediate imm_data{};               ///< *_WITH_IMM
  std::uint32_t invalidate_rkey = 0;  ///< SEND_WITH_INV
  std::uint64_t remote_addr = 0;      ///< RDMA and atomic
  std::uint32_t rkey = 0;             ///< RDMA and atomic
  std::uint64_t compare_add = 0;  ///< atomic: compare value of CMP_AND_SWP, addend of FETCH_AND_ADD
  std::uint64_t swap = 0;         ///< CMP_AND_SWP
  UdDestination ud{};             ///< UD
};

struct RecvWr {
  std::uint64_t wr_id = 0;
  std::span<const Sge> sg_list{};
};

/// A work completion. With a status other than SUCCESS only wr_id, status, qp_num and vendor_err
/// mean anything.
struct Wc {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::SUCCESS;
  WcOpcode opcode = WcOpcode::SEND;
  std::uint8_t wc_flags = 0;           ///< WcFlags
  std::uint32_t byte_len = 0;          ///< received bytes; UD: with the 40 bytes of the GRH area
  Immediate imm_data{};                ///< WC_WITH_IMM
  std::uint32_t invalidated_rkey = 0;  ///< WC_WITH_INV
  std::uint32_t vendor_err = 0;        ///< the AETH syndrome that ended it, or 0
  Qpn qp_num;
  Qpn src_qp;  ///< UD
};

}  // namespace roce::verbs
