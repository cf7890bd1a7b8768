// UC requests: as RC's, but what is wrong is dropped with its message, silently and counted.
#include "transport/responder.hpp"

namespace roce::transport {

using wire::Packet;

/// The message under way is lost; its receive WR stays for the next one.
void Responder::drop_message(std::uint64_t Counters::*cause) {
  ++(context_.counters.*cause);
  message_ = Message::NONE;
}

void Responder::on_unreliable(const Packet& packet) {
  const wire::OpcodeInfo& info = packet.info();
  if (packet.psn() != expected_) {
    // A gap ends the message under way; the next FIRST or ONLY sets the PSN anew.
    ++context_.counters.out_of_sequence;
    message_ = Message::NONE;
  }
  expected_ = packet.psn() + 1;
  if (info.starts_message())
    message_ = Message::NONE;
  else if (!follows(packet)) {
    drop_message(&Counters::drop_sequence);
    return;
  }
  if (!length_fits(packet))
    drop_message(&Counters::drop_length);
  else if (info.operation == wire::Operation::SEND)
    unreliable_send(packet);
  else
    unreliable_write(packet);
}

void Responder::unreliable_send(const Packet& packet) {
  const wire::OpcodeInfo& info = packet.info();
  if (info.starts_message()) {
    if (queue_.empty()) return drop_message(&Counters::out_of_buffer);
    received_ = 0;
    message_ = Message::SEND;
  }
  const auto bytes = static_cast<std::uint32_t>(packet.payload.size());
  if (bytes > queue_.front().length - received_) {
    ++context_.counters.resp_local_length_error;
    return drop_message(&Counters::drop_length);
  }
  if (!scatter(context_.memory, context_.pd, queue_.front_list(), received_, packet.payload)) {
    fail_receive(verbs::WcStatus::LOC_PROT_ERR);
    message_ = Message::NONE;
    context_.fail(Failure::QP);
    return;
  }
  received_ += bytes;
  if (!info.ends_message()) return;
  message_ = Message::NONE;
  complete_receive(packet, received_);
}

void Responder::unreliable_write(const Packet& packet) {
  const wire::OpcodeInfo& info = packet.info();
  if (info.starts_message()) {
    const wire::Reth& reth = packet.reth();
    write_va_ = reth.va.get();
    write_rkey_ = reth.rkey.get();
    write_length_ = reth.dma_length.get();
    received_ = 0;
    if (write_length_ > kMostMessageBytes) return drop_message(&Counters::drop_length);
    if (!(access_ & verbs::ACCESS_REMOTE_WRITE) ||
        (write_length_ != 0 && write_target(write_length_) == nullptr))
      return drop_message(&Counters::drop_access);
    message_ = Message::WRITE;
  }
  const auto bytes = static_cast<std::uint32_t>(packet.payload.size());
  const std::uint32_t left = write_length_ - received_;
  const bool ends = info.ends_message();
  if (ends ? bytes != left : bytes >= left) return drop_message(&Counters::drop_length);
  const bool immediate = info.has(wire::kImmDt);
  if (immediate && queue_.empty()) return drop_message(&Counters::out_of_buffer);
  if (bytes != 0) {
    std::byte* host = write_target(bytes);
    if (host == nullptr) return drop_message(&Counters::drop_access);
    place_write(packet, host);
  }
  received_ += bytes;
  if (!ends) return;
  message_ = Message::NONE;
  ++context_.counters.rx_write_requests;
  if (immediate) complete_receive(packet, write_length_);
}

}  // namespace roce::transport
