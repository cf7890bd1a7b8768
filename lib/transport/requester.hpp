// Requester: the sending half of a QP: the send queue, the packets it makes, and for RC what the
// peer's responses do to it (completion, go-back, RNR waits, retry limits).
//
// Owned by Qp::Core, called by it only. Never does: keep a built packet; a resend is built again
// from the WR and the sequence number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.hpp"
#include "transport/context.hpp"
#include "transport/queues.hpp"
#include "wire/packet.hpp"
#include "wire/syndrome.hpp"

namespace roce::transport {

class Requester {
 public:
  Requester(Context& context, const verbs::QpInitAttributes& init);

  // --- control (modify) ---
  /// Forgets everything.
  void reset();
  /// RTR to RTS: takes sq_psn and the retry attributes.
  void start(const verbs::QpAttributes& attributes);
  /// Takes timeout, retry_cnt, rnr_retry and max_rd_atomic as they now are.
  void configure(const verbs::QpAttributes& attributes);
  /// No new WR is begun (SQD); SQ_DRAINED is noted when the begun ones are through.
  void drain();
  /// New WRs are begun again.
  void resume() { draining_ = drained_ = false; }
  /// Completes all that is queued with WR_FLUSH_ERR, in post order, and stops timers.
  void flush();

  // --- work ---
  [[nodiscard]] PostResult post(const verbs::SendWr& wr);
  [[nodiscard]] std::size_t outstanding() const { return queue_.size(); }

  [[nodiscard]] bool can_send() const {
    if (holds_ != 0 || cursor_ == queue_.tail) return false;
    if (cursor_seq_ - una_ >= window_) return false;
    if (cursor_seq_ != sent_) return true;  // a resend: its place in the PSN space is taken
    const SendWqe& wqe = queue_.at(cursor_);
    return cursor_seq_ == wqe.first ? may_begin(wqe) : window_has_room(1);
  }
  /// Builds the next request packet, or returns 0.
  [[nodiscard]] std::size_t build(Instant now, std::span<std::byte> slot);

  /// RC: an ACK, NAK, READ response or atomic response.
  void on_response(Instant now, const wire::Packet& packet);

  [[nodiscard]] Instant deadline() const {
    return rnr_deadline_ < ack_deadline_ ? rnr_deadline_ : ack_deadline_;
  }
  void on_timeout(Instant now);

 private:
  /// Reasons not to send, as bits of holds_.
  enum Hold : std::uint8_t {
    kHoldRnr = 1,    ///< the RNR timer runs
    kHoldFault = 2,  ///< a WR with a local fault waits until those before it are through
    kHoldState = 4,  ///< not started
  };

  /// Half the PSN space: beyond it the responder could not tell new from duplicate.
  static constexpr std::uint64_t kWindow = 1u << 23;
  /// What a loss leaves of the window at least.
  static constexpr std::uint64_t kLeastWindow = 16;
  /// At most so many packets without AckReq.
  static constexpr std::uint32_t kAckEvery = 64;

  [[nodiscard]] bool window_has_room(std::uint64_t psns) const {
    return sent_ - una_ + psns <= kWindow;
  }
  [[nodiscard]] bool may_begin(const SendWqe& wqe) const;
  [[nodiscard]] Psn psn_of(std::uint64_t sequence) const {
    return first_psn_ + static_cast<std::uint32_t>(sequence & Psn::kMask);
  }

  // requester_post.cpp
  [[nodiscard]] PostResult check(const verbs::SendWr& wr, std::uint64_t& length) const;
  void flush_one(std::uint64_t wr_id);

  // requester_build.cpp
  [[nodiscard]] std::size_t build_one(std::span<std::byte> slot);
  [[nodiscard]] std::size_t build_data(SendWqe& wqe, std::span<std::byte> slot);
  [[nodiscard]] std::size_t build_read(SendWqe& wqe, std::span<std::byte> slot);
  [[nodiscard]] std::size_t build_atomic(SendWqe& wqe, std::span<std::byte> slot);
  [[nodiscard]] std::size_t build_datagram(SendWqe& wqe, std::span<std::byte> slot);
  /// The payload at offset: where it stands if that is in one piece, else copied into out. Nothing
  /// when a key check fails.
  [[nodiscard]] std::optional<std::span<const std::byte>> payload(const SendWqe& wqe,
                                                                  std::uint64_t offset,
                                                                  std::span<std::byte> out);
  [[nodiscard]] bool ack_request_due(bool last);
  void note_built(std::uint64_t next, bool last);
  void note_fault(SendWqe& wqe, verbs::WcStatus status);

  // requester_response.cpp
  void on_acknowledge(Instant now, std::uint64_t sequence, const wire::Aeth& aeth);
  void on_read_response(Instant now, std::uint64_t sequence, const wire::Packet& packet);
  void on_atomic_response(Instant now, std::uint64_t sequence, const wire::Packet& packet);
  [[nodiscard]] bool read_response_fits(const SendWqe& wqe, const wire::Packet& packet);
  [[nodiscard]] bool reach(Instant now, std::uint64_t sequence);
  [[nodiscard]] bool acknowledge(Instant now, std::uint64_t acked);
  void take_credits(const wire::Aeth& aeth);
  void complete_head();
  void note_progress(Instant now, std::uint64_t packets);

  // requester_retry.cpp
  void on_nak(Instant now, std::uint64_t sequence, std::uint8_t syndrome);
  void on_rnr_nak(Instant now, std::uint64_t sequence, std::uint8_t syndrome);
  void on_implied_nak(Instant now);
  [[nodiscard]] bool spend_retry();
  void go_back(Instant now);
  void slow_restart();
  void restart();
  void stop_timers() { ack_deadline_ = rnr_deadline_ = Instant::never(); }
  void fail_head(verbs::WcStatus status, std::uint8_t syndrome);
  void note_if_drained();

  Context& context_;

  // Hot. Sequence numbers: una_ <= cursor_seq_ <= sent_ <= posted_.
  std::uint64_t una_ = 0;         ///< oldest packet not acknowledged
  std::uint64_t cursor_seq_ = 0;  ///< next packet to build
  std::uint64_t sent_ = 0;        ///< one past the newest packet ever built
  /// Packets that may be under way. A loss halves it and acknowledgements let it grow again: going
  /// back would else resend thousands of packets to a receiver that lost some for want of room.
  std::uint64_t window_ = kWindow;
  std::uint32_t cursor_ = 0;  ///< WR that cursor_seq_ belongs to
  std::uint32_t since_ack_request_ = 0;
  std::uint32_t rd_atomic_outstanding_ = 0;
  Psn first_psn_;
  std::uint8_t holds_ = kHoldState;
  std::uint8_t max_rd_atomic_ = 0;
  bool first_packet_ = true;  ///< nothing sent since RTS
  bool draining_ = false;
  bool drained_ = false;     ///< SQ_DRAINED has been noted
  bool limited_ = false;     ///< the peer hands out finite credits
  bool recovering_ = false;  ///< went back for the loss at una_ already
  bool signal_all_;
  std::uint8_t retries_left_ = 0;
  std::uint8_t rnr_retries_left_ = 0;
  std::uint8_t retry_cnt_ = 0;
  std::uint8_t rnr_retry_ = 0;
  bool unlimited_seen_ = false;
  Instant ack_deadline_ = Instant::never();
  Instant rnr_deadline_ = Instant::never();
  Duration ack_timeout_{};  ///< zero: none
  SendQueue queue_;
  std::uint64_t posted_ = 0;        ///< one past the last packet of the last WR
  std::uint64_t rnr_seq_ = 0;       ///< the packet that met no receive WR
  std::uint32_t ssn_ = 0;           ///< of the last posted WR
  std::uint32_t credit_limit_ = 0;  ///< last message that may be sent, 24 bits
};

}  // namespace roce::transport
