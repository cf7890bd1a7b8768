// Qp: one queue pair of RC, UC or UD; requester and responder state machines, sans-IO.
//
// Owns: its send and receive queues, PSN state, retry state, responder resources. Called by: the
// one worker that owns it (or a simulation). Never does: read a clock, log, throw, block, allocate
// (but in the constructor and, for max_dest_rd_atomic resources, in modify()), or keep a built
// packet: what is sent again is built again.
//
// The owner's loop: on_packet() for what arrives, on_timeout() when next_deadline() has come,
// build_next() while wants_tx(). After each call, wants_tx() and next_deadline() may have changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "transport/counters.hpp"
#include "transport/effects.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/memory.hpp"
#include "verbs/qp_attributes.hpp"
#include "verbs/work.hpp"
#include "wire/packet.hpp"

namespace roce::transport {

/// Why a work request was not taken.
enum class PostResult : std::uint8_t {
  OK,
  QUEUE_FULL,  ///< max_send_wr or max_recv_wr outstanding
  BAD_STATE,   ///< send: before RTS; receive: in RESET. (In ERR both are taken and flush.)
  BAD_OPCODE,  ///< not an operation of this transport
  TOO_MANY_SGES,
  TOO_LONG,         ///< over 2^31 bytes, UD over the MTU, inline over max_inline_data, atomic not 8
  NO_RD_ATOMIC,     ///< READ or atomic while max_rd_atomic is 0
  BAD_DESTINATION,  ///< UD without an address handle
};
[[nodiscard]] std::string_view name_of(PostResult result);

/// What QPs of one worker share. Outlives them.
struct Environment {
  verbs::MemoryTable& memory;
  Counters& counters;
};

class Qp {
 public:
  Qp(Qpn number, const verbs::QpInitAttributes& init, Environment environment);
  ~Qp();
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  [[nodiscard]] Qpn number() const;
  [[nodiscard]] verbs::QpType type() const;
  [[nodiscard]] verbs::QpState state() const;
  /// The attributes in force (ibv_query_qp).
  [[nodiscard]] const verbs::QpAttributes& attributes() const;

  /// Changes state and attributes (ibv_modify_qp). Fails with the attribute's name when the
  /// transition is not allowed, a mandatory attribute is missing or a value is out of range; then
  /// nothing has changed. Moving to ERR flushes; moving to RESET forgets everything posted.
  [[nodiscard]] Result<void> modify(const verbs::QpAttributes& attributes, Effects& effects);

  /// Copies wr (and inline data) into the send queue.
  [[nodiscard]] PostResult post_send(const verbs::SendWr& wr);
  [[nodiscard]] PostResult post_recv(const verbs::RecvWr& wr);

  /// Starts to bring into cache what on_packet() will read first.
  void prefetch() const;

  /// Takes a packet that was addressed to this QP. Payload is placed, completions are pushed and
  /// responses fall due before it returns. The packet is not referred to afterwards.
  void on_packet(Instant now, const wire::Packet& packet, Effects& effects);

  /// The local ACK timer or the RNR timer has run out. Calling it early does nothing.
  void on_timeout(Instant now, Effects& effects);

  /// When on_timeout() wants to be called; Instant::never() when no timer runs.
  [[nodiscard]] Instant next_deadline() const;

  /// Whether build_next() would build something now.
  [[nodiscard]] bool wants_tx() const;

  /// Builds the next frame into slot (at least wire::kMaxFrameBytes) and returns its length, or 0
  /// when there is nothing to send. Responses go before requests. A local fault met while building
  /// (a bad lkey) completes the WR in error and goes on.
  [[nodiscard]] std::size_t build_next(Instant now, std::span<std::byte> slot, Effects& effects);

  /// The part of it that congestion control does not hold up: ACKs, NAKs and atomic results, while
  /// they are next in the order of responses.
  [[nodiscard]] bool wants_unpaced_tx() const;
  [[nodiscard]] std::size_t build_next_unpaced(std::span<std::byte> slot, Effects& effects);

  /// Requests posted and not yet completed, and receives posted and not yet consumed.
  [[nodiscard]] std::size_t outstanding_sends() const;
  [[nodiscard]] std::size_t outstanding_receives() const;

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace roce::transport
