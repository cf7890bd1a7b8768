// SendQueue and ReceiveQueue: the work queues of a QP, with room for SGEs, inline data and address
// handles laid out at construction; and the copies between SGE lists and packets.
//
// Owned by the requester and the responder. Never allocate after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "verbs/memory.hpp"
#include "verbs/qp_attributes.hpp"
#include "verbs/work.hpp"
#include "wire/build.hpp"

namespace roce::transport {

/// A send WR in the queue. Packets are numbered by a 64-bit sequence that never wraps; the PSN is
/// the sequence number's low 24 bits plus the QP's first PSN.
struct SendWqe {
  static constexpr std::uint8_t kRetried = 0x80;  ///< in flags: a READ that was asked for again

  std::uint64_t wr_id = 0;
  std::uint64_t first = 0;        ///< sequence number of the first packet (READ: first response)
  std::uint64_t remote_addr = 0;  ///< RDMA and atomic
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;            ///< bytes
  std::uint32_t packets = 0;           ///< PSNs it takes
  std::uint32_t ssn = 0;               ///< number of the message since RTS, the first is 1
  std::uint32_t immediate_or_inv = 0;  ///< immediate as on the wire, or the rkey to invalidate
  verbs::WrOpcode opcode{};
  std::uint8_t flags = 0;  ///< SendFlags and kRetried
  std::uint8_t sges = 0;
  verbs::WcStatus fault = verbs::WcStatus::SUCCESS;  ///< local error that waits for earlier WRs

  [[nodiscard]] std::uint64_t end() const { return first + packets; }
  [[nodiscard]] bool is_read() const { return opcode == verbs::WrOpcode::RDMA_READ; }
  [[nodiscard]] bool is_atomic() const {
    return opcode == verbs::WrOpcode::ATOMIC_CMP_AND_SWP ||
           opcode == verbs::WrOpcode::ATOMIC_FETCH_AND_ADD;
  }
  [[nodiscard]] bool needs_response() const {
    return opcode >= verbs::WrOpcode::RDMA_READ && opcode <= verbs::WrOpcode::ATOMIC_FETCH_AND_ADD;
  }
  [[nodiscard]] bool is_write() const { return opcode <= verbs::WrOpcode::RDMA_WRITE_WITH_IMM; }
  [[nodiscard]] bool has_immediate() const {
    return opcode == verbs::WrOpcode::RDMA_WRITE_WITH_IMM ||
           opcode == verbs::WrOpcode::SEND_WITH_IMM;
  }
  /// Takes one of the peer's receive WRs.
  [[nodiscard]] bool consumes_receive() const {
    return opcode == verbs::WrOpcode::SEND || opcode == verbs::WrOpcode::SEND_WITH_IMM ||
           opcode == verbs::WrOpcode::SEND_WITH_INV ||
           opcode == verbs::WrOpcode::RDMA_WRITE_WITH_IMM;
  }
};
static_assert(sizeof(SendWqe) == 64);

/// Where a UD WR goes.
struct UdTarget {
  wire::PathHeaders path;
  Qpn qpn;
  std::uint32_t qkey = 0;
};

/// Indices run freely; [head, tail) are outstanding.
class SendQueue {
 public:
  SendQueue(const verbs::QpCapabilities& cap, verbs::QpType type);

  std::uint32_t head = 0;
  std::uint32_t tail = 0;

  [[nodiscard]] std::uint32_t size() const { return tail - head; }
  [[nodiscard]] bool empty() const { return tail == head; }
  [[nodiscard]] bool full() const { return size() >= capacity_; }
  [[nodiscard]] std::uint32_t max_sges() const { return max_sges_; }
  [[nodiscard]] std::uint32_t max_inline() const { return max_inline_; }
  [[nodiscard]] SendWqe& at(std::uint32_t i) { return wqes_[i & mask_]; }
  [[nodiscard]] const SendWqe& at(std::uint32_t i) const { return wqes_[i & mask_]; }
  [[nodiscard]] verbs::Sge* sges(std::uint32_t i) {
    return sges_.data() + std::size_t{i & mask_} * max_sges_;
  }
  [[nodiscard]] std::byte* inline_data(std::uint32_t i) {
    return inline_.data() + std::size_t{i & mask_} * max_inline_;
  }
  [[nodiscard]] UdTarget& target(std::uint32_t i) { return targets_[i & mask_]; }

  /// The SGE list of WR i.
  [[nodiscard]] std::span<const verbs::Sge> list(std::uint32_t i) { return {sges(i), at(i).sges}; }

 private:
  std::uint32_t capacity_;
  std::uint32_t mask_;
  std::uint32_t max_sges_;
  std::uint32_t max_inline_;
  std::vector<SendWqe> wqes_;
  std::vector<verbs::Sge> sges_;
  std::vector<std::byte> inline_;
  std::vector<UdTarget> targets_;  ///< UD only
};

struct RecvWqe {
  std::uint64_t wr_id = 0;
  std::uint32_t length = 0;  ///< room in bytes, at most 2^31
  std::uint32_t sges = 0;
};

class ReceiveQueue {
 public:
  explicit ReceiveQueue(const verbs::QpCapabilities& cap);

  std::uint32_t head = 0;
  std::uint32_t tail = 0;

  [[nodiscard]] std::uint32_t size() const { return tail - head; }
  [[nodiscard]] bool empty() const { return tail == head; }
  [[nodiscard]] bool full() const { return size() >= capacity_; }
  [[nodiscard]] std::uint32_t max_sges() const { return max_sges_; }
  [[nodiscard]] const RecvWqe& front() const { return wqes_[head & mask_]; }
  [[nodiscard]] std::span<const verbs::Sge> front_list() const {
    return {sges_.data() + std::size_t{head & mask_} * max_sges_, front().sges};
  }
  /// Appends; the caller has checked that there is room and that the list is short enough.
  void push(const verbs::RecvWr& wr);

 private:
  std::uint32_t capacity_;
  std::uint32_t mask_;
  std::uint32_t max_sges_;
  std::vector<RecvWqe> wqes_;
  std::vector<verbs::Sge> sges_;
};

/// Bytes [offset, offset + out.size()) of the list: where they stand if that is in one piece, else
/// copied into out. Nothing when a key check fails.
[[nodiscard]] std::optional<std::span<const std::byte>> gather(const verbs::MemoryTable& memory,
                                                               verbs::Pd pd,
                                                               std::span<const verbs::Sge> list,
                                                               std::uint64_t offset,
                                                               std::span<std::byte> out);

/// Copies in to bytes [offset, offset + in.size()) of the list, which are checked for LOCAL_WRITE.
/// False when a key check fails or the list is too short.
[[nodiscard]] bool scatter(const verbs::MemoryTable& memory, verbs::Pd pd,
                           std::span<const verbs::Sge> list, std::uint64_t offset,
                           std::span<const std::byte> in);

}  // namespace roce::transport
