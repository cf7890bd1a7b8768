// Placing WRITE data and completing receives, for RC and UC.
#include <cstring>

#include "transport/responder.hpp"

namespace roce::transport {

using wire::Packet;

/// Where the next bytes of the WRITE under way go; null when the region no longer allows it.
std::byte* Responder::write_target(std::size_t bytes) const {
  return context_.memory
      .check(write_rkey_, context_.pd, write_va_ + received_, bytes, verbs::ACCESS_REMOTE_WRITE)
      .host;
}

/// Copies the payload. The last byte of a message becomes visible last: applications poll it.
void Responder::place_write(const Packet& packet, std::byte* host) {
  const std::size_t bytes = packet.payload.size();
  if (!packet.info().ends_message()) {
    std::memcpy(host, packet.payload.data(), bytes);
    return;
  }
  std::memcpy(host, packet.payload.data(), bytes - 1);
  __atomic_store_n(reinterpret_cast<unsigned char*>(host) + bytes - 1,
                   std::to_integer<unsigned char>(packet.payload[bytes - 1]), __ATOMIC_RELEASE);
}

/// The message that packet ends has arrived whole: the oldest receive WR is done.
void Responder::complete_receive(const Packet& packet, std::uint32_t bytes) {
  const wire::OpcodeInfo& info = packet.info();
  verbs::Wc wc;
  wc.wr_id = queue_.front().wr_id;
  wc.opcode = info.operation == wire::Operation::SEND ? verbs::WcOpcode::RECV
                                                      : verbs::WcOpcode::RECV_RDMA_WITH_IMM;
  wc.byte_len = bytes;
  wc.src_qp = context_.peer;
  if (info.has(wire::kImmDt)) {
    wc.wc_flags |= verbs::WC_WITH_IMM;
    std::memcpy(wc.imm_data.data(), packet.immediate().bytes, 4);
  }
  if (info.has(wire::kIeth)) {
    wc.wc_flags |= verbs::WC_WITH_INV;
    wc.invalidated_rkey = packet.ieth().rkey.get();
  }
  if (info.has(wire::kDeth)) {
    wc.wc_flags |= verbs::WC_GRH;
    wc.src_qp = packet.deth().source_qpn();
  }
  ++queue_.head;
  ++context_.counters.rdma_recvs;
  context_.complete(*context_.recv_cq, wc, packet.bth->solicited());
}

}  // namespace roce::transport
