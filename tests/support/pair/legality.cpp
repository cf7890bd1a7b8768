#include "support/pair/legality.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "wire/syndrome.hpp"

namespace roce::test {
namespace {

using wire::Operation;
using wire::Position;

Operation operation_of(Kind kind) {
  switch (kind) {
    case Kind::WRITE:
    case Kind::WRITE_IMM:
      return Operation::RDMA_WRITE;
    case Kind::READ:
      return Operation::RDMA_READ_REQUEST;
    case Kind::CMP_SWAP:
      return Operation::COMPARE_SWAP;
    case Kind::FETCH_ADD:
      return Operation::FETCH_ADD;
    default:
      return Operation::SEND;
  }
}

Position position_of(std::uint32_t i, std::uint32_t n) {
  if (n == 1) return Position::ONLY;
  if (i == 0) return Position::FIRST;
  return i + 1 == n ? Position::LAST : Position::MIDDLE;
}

}  // namespace

const Op* Legality::op_of(Psn psn) const {
  for (const Op& op : requester_.ops) {
    const std::int32_t offset = distance(psn, op.first);
    if (offset >= 0 && offset < static_cast<std::int32_t>(op.packets)) return &op;
  }
  return nullptr;
}

std::string Legality::request_sent(const wire::Packet& packet) {
  const wire::OpcodeInfo& info = packet.info();
  const Op* op = op_of(packet.psn());
  if (op == nullptr) return "a request with a PSN that nothing posted has";
  if (info.operation != operation_of(op->kind)) return "a request of another operation than posted";
  if (!packet.bth->mig_req()) return "MigReq is 0";
  if (op->kind == Kind::READ) return judge_read_request(*op, packet);
  const auto i = static_cast<std::uint32_t>(distance(packet.psn(), op->first));
  if (info.position != position_of(i, op->packets)) return "the opcode's position is wrong";
  const bool last = i + 1 == op->packets;
  const bool imm = op->kind == Kind::SEND_IMM || op->kind == Kind::WRITE_IMM;
  if (info.has(wire::kImmDt) != (imm && last)) return "immediate data where none belongs, or none";
  if (info.has(wire::kIeth) != (op->kind == Kind::SEND_INV && last)) return "IETH is out of place";
  const bool may_solicit = last && takes_receive(op->kind) && op->solicited;
  if (packet.bth->solicited() != may_solicit) return "SE is out of place";
  if (is_atomic(op->kind)) {
    if (packet.atomic_eth().va.get() != op->remote_va) return "the atomic's VA is wrong";
    return packet.atomic_eth().rkey.get() == op->rkey ? "" : "the atomic's rkey is wrong";
  }
  if (last && !packet.bth->ack_request())
    return "the last packet of a message does not ask for an ACK";
  const std::uint32_t length = std::min(mtu_, op->length - i * mtu_);
  if (packet.payload.size() != length) return "the payload has another length than it must";
  if (length > 0 && std::memcmp(packet.payload.data(),
                                requester_.arena.data() + op->local + i * mtu_, length) != 0)
    return "the payload is not what was posted";
  if (info.has(wire::kReth)) {
    const wire::Reth& reth = packet.reth();
    if (reth.va.get() != op->remote_va || reth.rkey.get() != op->rkey ||
        reth.dma_length.get() != op->length)
      return "the RETH is not what was posted";
  }
  return "";
}

std::string Legality::judge_read_request(const Op& op, const wire::Packet& packet) const {
  const auto i = static_cast<std::uint32_t>(distance(packet.psn(), op.first));
  const wire::Reth& reth = packet.reth();
  if (reth.va.get() != op.remote_va + std::uint64_t{i} * mtu_) return "the READ's VA is wrong";
  if (reth.rkey.get() != op.rkey) return "the READ's rkey is wrong";
  if (reth.dma_length.get() != op.length - i * mtu_) return "the READ's length is wrong";
  if (i > 0 && !responses_arrived_.contains(index(packet.psn()) - 1))
    return "a READ goes on from where no response has come";
  return "";
}

void Legality::request_arrived(const wire::Packet& packet) {
  const std::int32_t first = index(packet.psn());
  const Op* op = op_of(packet.psn());
  if (op == nullptr) return;
  std::int32_t last = first;
  if (op->kind == Kind::READ) {
    last = index(op->first) + static_cast<std::int32_t>(op->packets) - 1;
    reads_[first] = last;
  }
  for (std::int32_t i = first; i <= last; ++i) {
    arrived_.insert(i);
    nak_pending_.erase(i);
  }
}

std::string Legality::response_sent(const wire::Packet& packet) {
  const Op* op = op_of(packet.psn());
  if (!packet.bth->mig_req()) return "MigReq of a response is 0";
  if (packet.bth->solicited() || packet.bth->ack_request()) return "a response with SE or AckReq";
  switch (packet.info().operation) {
    case Operation::RDMA_READ_RESPONSE:
      return judge_read_response(packet);
    case Operation::ATOMIC_ACKNOWLEDGE:
      if (op == nullptr || !is_atomic(op->kind)) return "an atomic ACK for what is no atomic";
      if (!arrived_.contains(index(packet.psn()))) return "an atomic ACK before its request";
      return packet.atomic_ack().original.get() == op->expected_original
                 ? ""
                 : "an atomic ACK with a wrong original value";
    case Operation::ACKNOWLEDGE:
      return judge_ack(packet);
    default:
      return "not a response";
  }
}

std::string Legality::judge_read_response(const wire::Packet& packet) const {
  const Op* op = op_of(packet.psn());
  if (op == nullptr || op->kind != Kind::READ) return "a READ response for what is no READ";
  const std::int32_t at = index(packet.psn());
  const auto covers = [&](const auto& read) { return read.first <= at && at <= read.second; };
  if (std::ranges::none_of(reads_, covers)) return "a READ response that nobody asked for";
  const auto i = static_cast<std::uint32_t>(distance(packet.psn(), op->first));
  const std::uint32_t length = std::min(mtu_, op->length - i * mtu_);
  if (packet.payload.size() != length) return "a READ response of a wrong length";
  if (length > 0 && std::memcmp(packet.payload.data(),
                                responder_.expected.data() + op->remote + i * mtu_, length) != 0)
    return "a READ response with wrong data";
  const Position position = packet.info().position;
  const bool begins = position == Position::FIRST || position == Position::ONLY;
  const bool ends = position == Position::LAST || position == Position::ONLY;
  if (begins && !reads_.contains(at)) return "a READ response begins where no READ request does";
  if (ends != (i + 1 == op->packets)) return "a READ response ends too early or too late";
  return "";
}

std::string Legality::judge_ack(const wire::Packet& packet) {
  const std::int32_t at = index(packet.psn());
  const std::uint8_t syndrome = packet.aeth().syndrome;
  const Op* op = op_of(packet.psn());
  if (wire::syndrome_kind(syndrome) == wire::SyndromeKind::ACK) {
    if (op == nullptr) return "an ACK for a PSN that was never sent";
    if (op->kind == Kind::READ || is_atomic(op->kind)) return "a plain ACK inside a READ or atomic";
    for (std::int32_t i = 0; i <= at; ++i)
      if (!arrived_.contains(i)) return "an ACK for what has not arrived";
    return "";
  }
  if (wire::syndrome_kind(syndrome) == wire::SyndromeKind::RNR_NAK) {
    if (op == nullptr || !takes_receive(op->kind)) return "an RNR NAK for what needs no receive";
    return arrived_.contains(at) ? "" : "an RNR NAK for what has not arrived";
  }
  if (syndrome != wire::nak_syndrome(wire::NakCode::PSN_SEQUENCE_ERROR)) return "";  // a test's own
  if (arrived_.upper_bound(at) == arrived_.end()) return "a sequence NAK without a later packet";
  if (!nak_pending_.insert(at).second) return "a second NAK for one gap";
  return "";
}

void Legality::response_arrived(const wire::Packet& packet) {
  if (packet.info().operation == Operation::RDMA_READ_RESPONSE)
    responses_arrived_.insert(index(packet.psn()));
}

}  // namespace roce::test
