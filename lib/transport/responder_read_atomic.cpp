// RC READ requests and atomics: checks, execution of atomics, and the resources kept for replay.
#include <cstring>

#include "transport/responder.hpp"

namespace roce::transport {

using verbs::WcStatus;
using wire::NakCode;
using wire::Packet;

namespace {

/// Executes on eight bytes in host order and returns what was there. Atomic towards other threads
/// whenever the memory is aligned (a region whose IOVA and address differ may not be).
std::uint64_t fetch_modify(std::byte* host, const Packet& packet) {
  const wire::AtomicEth& eth = packet.atomic_eth();
  const std::uint64_t operand = eth.swap_or_add.get();
  const bool add = packet.info().operation == wire::Operation::FETCH_ADD;
  std::uint64_t old = 0;
  if (reinterpret_cast<std::uintptr_t>(host) % alignof(std::uint64_t) == 0) {
    auto* word = reinterpret_cast<std::uint64_t*>(host);
    if (add) return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
    old = eth.compare.get();
    __atomic_compare_exchange_n(word, &old, operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return old;
  }
  std::memcpy(&old, host, sizeof old);
  std::uint64_t value = old;
  if (add)
    value = old + operand;
  else if (old == eth.compare.get())
    value = operand;
  std::memcpy(host, &value, sizeof value);
  return old;
}

}  // namespace

bool Responder::accept_read(const Packet& packet) {
  if (message_ != Message::NONE || !(access_ & verbs::ACCESS_REMOTE_READ) || max_resources_ == 0)
    return refuse(NakCode::INVALID_REQUEST, WcStatus::REM_INV_REQ_ERR);
  const wire::Reth& reth = packet.reth();
  const std::uint32_t length = reth.dma_length.get();
  if (length > kMostMessageBytes)
    return refuse(NakCode::INVALID_REQUEST, WcStatus::REM_INV_REQ_ERR);
  const std::uint64_t va = reth.va.get();
  const std::uint32_t rkey = reth.rkey.get();
  if (length != 0 &&
      !context_.memory.check(rkey, context_.pd, va, length, verbs::ACCESS_REMOTE_READ).ok())
    return refuse(NakCode::REMOTE_ACCESS_ERROR, WcStatus::REM_ACCESS_ERR);
  Resource& read = take_resource(packet.psn());
  read.va = va;
  read.rkey = rkey;
  read.length = read.end_byte = length;
  read.packets = read.end = context_.packets_of(length);
  read.atomic = false;
  expected_ += read.packets;
  ++context_.counters.rx_read_requests;
  return true;
}

bool Responder::accept_atomic(const Packet& packet) {
  const wire::AtomicEth& eth = packet.atomic_eth();
  const std::uint64_t va = eth.va.get();
  if (message_ != Message::NONE || !(access_ & verbs::ACCESS_REMOTE_ATOMIC) ||
      max_resources_ == 0 || va % sizeof(std::uint64_t) != 0)
    return refuse(NakCode::INVALID_REQUEST, WcStatus::REM_INV_REQ_ERR);
  const verbs::KeyCheck check =
      context_.memory.check(eth.rkey.get(), context_.pd, va, 8, verbs::ACCESS_REMOTE_ATOMIC);
  if (!check.ok()) return refuse(NakCode::REMOTE_ACCESS_ERROR, WcStatus::REM_ACCESS_ERR);
  Resource& atomic = take_resource(packet.psn());
  atomic.original = fetch_modify(check.host, packet);
  atomic.packets = atomic.end = 1;
  atomic.atomic = true;
  expected_ += 1;
  ++context_.counters.rx_atomic_requests;
  return true;
}

/// A slot for the request at psn, due at once; the oldest slot is given up when all are taken.
/// What came before and has not been acknowledged is acknowledged ahead of the response: some
/// requesters do not take a response for that.
Resource& Responder::take_resource(Psn psn) {
  if (resource_tail_ - resource_head_ > resource_mask_) {
    if (resource_due_ == resource_head_) ++resource_due_;
    retired_end_ = resource(resource_head_).first + resource(resource_head_).packets;
    ++resource_head_;
    skip_answered();
  }
  Resource& slot = resource(resource_tail_);
  slot.first = psn;
  slot.start = slot.next = 0;
  slot.ack_before = ack_due_ || unanswered_;
  slot.ack_msn = msn_;
  slot.msn = ++msn_;
  slot.pending = true;
  ++resource_tail_;
  ack_due_ = unanswered_ = false;
  return slot;
}

}  // namespace roce::transport
