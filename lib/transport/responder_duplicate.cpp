// RC duplicates: nothing is executed twice. SEND and WRITE are acknowledged again, a READ is read
// again, an atomic's saved result is sent again; what is no longer known is dropped silently.
#include "transport/responder.hpp"

namespace roce::transport {

using wire::Operation;
using wire::Packet;

void Responder::duplicate(const Packet& packet) {
  ++context_.counters.duplicate_request;
  switch (packet.info().operation) {
    case Operation::SEND:
    case Operation::RDMA_WRITE:
      acknowledge_again(packet.psn());
      break;
    case Operation::RDMA_READ_REQUEST:
      replay_read(packet);
      break;
    default:
      replay_atomic(packet.psn());
      break;
  }
}

/// One ACK for any number of duplicates: up to ePSN - 1, or up to the next READ or atomic behind
/// psn, whose own response has to come first.
void Responder::acknowledge_again(Psn psn) {
  for (std::uint32_t i = resource_head_; i != resource_tail_; ++i) {
    Resource& later = resource(i);
    if (!before(psn, later.first)) continue;
    // Between psn and later stands a READ or atomic that was given up, so the requester has had its
    // response: this duplicate is a straggler, and an ACK with the PSN of a READ or atomic is no
    // answer to anything.
    if (i == resource_head_ && resource_head_ != 0 && later.first == retired_end_) return;
    later.ack_before = true;
    later.ack_msn = msn_;
    make_due(i);
    return;
  }
  ack_due_ = true;
}

void Responder::replay_read(const Packet& packet) {
  const Psn psn = packet.psn();
  const wire::Reth& reth = packet.reth();
  const std::uint32_t length = reth.dma_length.get();
  for (std::uint32_t i = resource_head_; i != resource_tail_; ++i) {
    Resource& read = resource(i);
    const auto index = static_cast<std::uint32_t>(distance(psn, read.first)) & Psn::kMask;
    if (index >= read.packets || read.atomic) continue;
    // It has to be the same READ, or the rest of it.
    const std::uint64_t offset = std::uint64_t{index} << context_.mtu_shift;
    if (length != 0 && reth.rkey.get() != read.rkey) return;
    if (offset > read.length || length > read.length - offset) return;
    if (length != 0 && reth.va.get() != read.va + offset) return;
    if (length == 0 && read.length != 0) return;
    read.start = read.next = index;
    read.end = index + context_.packets_of(length);
    read.end_byte = static_cast<std::uint32_t>(offset) + length;
    read.msn = msn_;
    read.pending = true;
    make_due(i);
    return;
  }
}

void Responder::replay_atomic(Psn psn) {
  for (std::uint32_t i = resource_head_; i != resource_tail_; ++i) {
    Resource& atomic = resource(i);
    if (!atomic.atomic || atomic.first != psn) continue;
    atomic.start = atomic.next = 0;
    atomic.msn = msn_;
    atomic.pending = true;
    make_due(i);
    return;
  }
}

/// Resource i has something to send. Responses go in PSN order: one under way behind it starts
/// over when its turn comes.
void Responder::make_due(std::uint32_t index) {
  if (resource_due_ == resource_tail_) {
    resource_due_ = index;
    return;
  }
  if (resource_tail_ - index <= resource_tail_ - resource_due_) return;
  resource(resource_due_).next = resource(resource_due_).start;
  resource_due_ = index;
}

/// Moves resource_due_ on to the next resource that has something to send.
void Responder::skip_answered() {
  while (resource_due_ != resource_tail_ && !due().pending && !due().ack_before) ++resource_due_;
}

}  // namespace roce::transport
