// Responder: the receiving half of a QP: the receive queue, the checks of IBTA 9.7.4 on what
// arrives, its execution, and for RC the responses that fall due.
//
// Owned by Qp::Core, called by it only. Responses are not kept as packets: an ACK or NAK is a note
// of what to say, a READ response is read from memory when it is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/context.hpp"
#include "transport/queues.hpp"
#include "wire/packet.hpp"
#include "wire/syndrome.hpp"

namespace roce::transport {

/// A READ or atomic that was accepted, kept so that a duplicate can be answered again.
struct Resource {
  std::uint64_t va = 0;        ///< READ
  std::uint64_t original = 0;  ///< atomic: the value before
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;   ///< READ: bytes
  std::uint32_t packets = 0;  ///< PSNs of the response
  Psn first;
  std::uint32_t msn = 0;
  // The response under way: packets [start, end) of the whole, next one to build.
  std::uint32_t start = 0, next = 0, end = 0;
  std::uint32_t end_byte = 0;  ///< READ: where the asked-for range ends
  std::uint32_t ack_msn = 0;   ///< of the ACK that goes before
  bool atomic = false;
  bool pending = false;     ///< its response is due
  bool ack_before = false;  ///< SEND or WRITE before it has to be acknowledged first
};

class Responder {
 public:
  Responder(Context& context, const verbs::QpInitAttributes& init);

  // --- control (modify) ---
  void reset();
  /// INIT to RTR. Takes rq_psn and makes room for max_dest_rd_atomic resources, rounded up to a
  /// power of two; the only allocation outside the constructor.
  void start(const verbs::QpAttributes& attributes);
  /// Takes access flags, min_rnr_timer and max_dest_rd_atomic as they now are.
  void configure(const verbs::QpAttributes& attributes);
  /// Completes all posted receives with WR_FLUSH_ERR. Responses that were due are forgotten, except
  /// when a fatal NAK stands behind them.
  void flush();

  // --- work ---
  [[nodiscard]] PostResult post(const verbs::RecvWr& wr);
  [[nodiscard]] std::size_t outstanding() const { return queue_.size(); }

  void on_request(const wire::Packet& packet);     ///< RC
  void on_unreliable(const wire::Packet& packet);  ///< UC
  void on_datagram(const wire::Packet& packet);    ///< UD

  /// Whether a response is due.
  [[nodiscard]] bool wants_tx() const {
    return ack_due_ || nak_ != Nak::NONE || resource_due_ != resource_tail_;
  }
  /// The next response is READ data, which may take turns with requests.
  [[nodiscard]] bool next_is_read_data() const {
    return resource_due_ != resource_tail_ && !due().ack_before && !due().atomic;
  }
  [[nodiscard]] std::size_t build(std::span<std::byte> slot);

 private:
  enum class Nak : std::uint8_t { NONE, SEQUENCE, RNR, FATAL };
  enum class Message : std::uint8_t { NONE, SEND, WRITE };

  [[nodiscard]] Resource& resource(std::uint32_t i) { return resources_[i & resource_mask_]; }
  [[nodiscard]] const Resource& due() const { return resources_[resource_due_ & resource_mask_]; }
  [[nodiscard]] static Message kind_of(const wire::Packet& packet) {
    return packet.info().operation == wire::Operation::SEND ? Message::SEND : Message::WRITE;
  }

  // responder_request.cpp: each returns false when the packet was refused
  [[nodiscard]] bool execute(const wire::Packet& packet);
  [[nodiscard]] bool execute_send(const wire::Packet& packet);
  [[nodiscard]] bool execute_write(const wire::Packet& packet);
  [[nodiscard]] bool begin_write(const wire::Packet& packet);
  [[nodiscard]] bool follows(const wire::Packet& packet) const;
  [[nodiscard]] bool length_fits(const wire::Packet& packet) const;
  void out_of_sequence(Psn psn);
  void note_in_order();

  // responder_place.cpp: shared by RC and UC
  [[nodiscard]] std::byte* write_target(std::size_t bytes) const;
  void place_write(const wire::Packet& packet, std::byte* host);
  void complete_receive(const wire::Packet& packet, std::uint32_t bytes);

  // responder_read_atomic.cpp
  [[nodiscard]] bool accept_read(const wire::Packet& packet);
  [[nodiscard]] bool accept_atomic(const wire::Packet& packet);
  [[nodiscard]] Resource& take_resource(Psn psn);

  // responder_duplicate.cpp
  void duplicate(const wire::Packet& packet);
  void acknowledge_again(Psn psn);
  void replay_read(const wire::Packet& packet);
  void replay_atomic(Psn psn);
  void make_due(std::uint32_t index);
  void skip_answered();

  // responder_build.cpp
  [[nodiscard]] std::size_t build_acknowledge(std::span<std::byte> slot, Psn psn,
                                              std::uint8_t syndrome, std::uint32_t msn);
  [[nodiscard]] std::size_t build_resource(std::span<std::byte> slot);
  [[nodiscard]] std::size_t build_read(std::span<std::byte> slot, Resource& read);
  [[nodiscard]] std::size_t build_atomic(std::span<std::byte> slot, Resource& atomic);
  [[nodiscard]] std::size_t build_nak(std::span<std::byte> slot);

  // responder_error.cpp
  bool refuse(wire::NakCode code, verbs::WcStatus status);
  bool refuse_for_now();
  void fail_receive(verbs::WcStatus status);
  void drop_responses();

  // unreliable.cpp
  void unreliable_send(const wire::Packet& packet);
  void unreliable_write(const wire::Packet& packet);
  void drop_message(std::uint64_t Counters::*cause);

  Context& context_;

  // Hot.
  Psn expected_;                     ///< ePSN
  Message message_ = Message::NONE;  ///< the message under way
  bool silent_ = false;              ///< a NAK was raised; nothing more is said until ePSN arrives
  bool ack_due_ = false;             ///< an ACK up to ePSN - 1 is due
  bool unanswered_ = false;          ///< a SEND or WRITE packet came since the last ACK
  Nak nak_ = Nak::NONE;
  std::uint8_t access_ = 0;
  std::uint8_t nak_syndrome_ = 0;
  std::uint8_t rnr_timer_ = 0;
  std::uint8_t max_resources_ = 0;
  std::uint32_t msn_ = 0;       ///< 24 bits, masked when built
  std::uint32_t received_ = 0;  ///< bytes of the message so far
  std::uint32_t write_length_ = 0;
  std::uint32_t write_rkey_ = 0;
  std::uint64_t write_va_ = 0;
  ReceiveQueue queue_;

  // Free-running indices: [resource_head_, resource_tail_) are kept; what is due begins at
  // resource_due_, which equals resource_tail_ when nothing is.
  std::uint32_t resource_head_ = 0;
  std::uint32_t resource_tail_ = 0;
  std::uint32_t resource_due_ = 0;
  std::uint32_t resource_mask_ = 0;
  std::vector<Resource> resources_;
  Psn retired_end_;  ///< first PSN behind the resource that was given up last
  Psn nak_psn_;      ///< FATAL
  Psn gap_high_;     ///< SEQUENCE: newest packet that was dropped
};

}  // namespace roce::transport
