#include "transport/qp.hpp"

#include <array>
#include <cstring>

#include "base/check.hpp"
#include "transport/core.hpp"

namespace roce::transport {

using verbs::QpState;
using verbs::QpType;
using wire::Packet;

std::string_view name_of(PostResult result) {
  constexpr std::array<std::string_view, 8> kNames = {"OK",           "QUEUE_FULL",     "BAD_STATE",
                                                      "BAD_OPCODE",   "TOO_MANY_SGES",  "TOO_LONG",
                                                      "NO_RD_ATOMIC", "BAD_DESTINATION"};
  return kNames[static_cast<std::size_t>(result)];
}

// --- Core ---

Qp::Core::Core(Qpn number, const verbs::QpInitAttributes& init, Environment environment)
    : context(number, init, environment), requester(context, init), responder(context, init) {
  static_assert(sizeof(Core) <= 1024, "a QP's own state, besides its queues");
  ROCE_CHECK(init.send_cq != nullptr && init.recv_cq != nullptr);
  attributes.qp_state = QpState::RESET;
}

bool Qp::Core::pkey_matches(std::uint16_t theirs) const {
  constexpr std::uint16_t kFullMember = 0x8000;
  const std::uint16_t ours = context.pkey;
  return ((ours ^ theirs) & 0x7fff) == 0 && ((ours | theirs) & kFullMember) != 0;
}

bool Qp::Core::comes_from_peer(const Packet& packet) const {
  const wire::PathHeaders& path = context.path;
  if (packet.is_v6 != path.is_v6()) return false;
  const std::byte* peer = path.bytes.data() + path.l2_bytes;
  return packet.is_v6 ? std::memcmp(wire::view_as<wire::Ipv6Header>(packet.l3)->source,
                                    wire::view_as<wire::Ipv6Header>(peer)->destination, 16) == 0
                      : std::memcmp(wire::view_as<wire::Ipv4Header>(packet.l3)->source,
                                    wire::view_as<wire::Ipv4Header>(peer)->destination, 4) == 0;
}

bool Qp::Core::admits(const Packet& packet) {
  constexpr unsigned kReceiving =
      1u << static_cast<unsigned>(QpState::RTR) | 1u << static_cast<unsigned>(QpState::RTS) |
      1u << static_cast<unsigned>(QpState::SQD) | 1u << static_cast<unsigned>(QpState::SQE);
  constexpr std::array kTransports = {wire::Transport::RC, wire::Transport::UC,
                                      wire::Transport::UD};
  Counters& counters = context.counters;
  if ((kReceiving >> static_cast<unsigned>(context.state) & 1) == 0) {
    ++counters.drop_qp_state;
    return false;
  }
  const auto type = static_cast<std::size_t>(context.type) - static_cast<std::size_t>(QpType::RC);
  if (packet.info().transport != kTransports[type]) {
    ++counters.drop_opcode;
    return false;
  }
  if (!pkey_matches(packet.bth->pkey.get())) {
    ++counters.drop_pkey;
    return false;
  }
  if (context.type != QpType::UD && !comes_from_peer(packet)) {
    ++counters.drop_source;
    return false;
  }
  return true;
}

void Qp::Core::on_packet(Instant now, const Packet& packet, Effects& effects) {
  ++context.counters.rcvd_pkts;
  if (packet.congestion_experienced()) ++context.counters.np_ecn_marked_roce_packets;
  if (packet.opcode == wire::Opcode::CNP) {
    ++context.counters.rp_cnp_ignored;
    return;
  }
  if (!admits(packet)) return;
  if (context.state == QpState::RTR && !communication_) {
    communication_ = true;
    context.note(verbs::AsyncEventType::COMM_EST);
  }
  if (context.type == QpType::RC) {
    if (packet.info().is_response())
      requester.on_response(now, packet);
    else
      responder.on_request(packet);
  } else if (context.type == QpType::UC) {
    responder.on_unreliable(packet);
  } else {
    responder.on_datagram(packet);
  }
  if (context.unsettled()) settle(effects);
}

std::size_t Qp::Core::build_next(Instant now, std::span<std::byte> slot, Effects& effects) {
  std::size_t length = 0;
  // ACKs, NAKs and atomic results go first; READ data and requests take turns.
  if (responder.wants_tx() &&
      !(request_turn_ && responder.next_is_read_data() && requester.can_send())) {
    request_turn_ = responder.next_is_read_data();
    length = responder.build(slot);
  } else {
    request_turn_ = false;
    length = requester.build(now, slot);
  }
  if (context.unsettled()) settle(effects);
  return length;
}

void Qp::Core::settle(Effects& effects) {
  // Flushing may overrun a CQ, which is a failure again.
  while (context.failure != Failure::NONE) {
    const Failure failure = context.failure;
    context.failure = Failure::NONE;
    if (failure == Failure::QP) {
      enter(QpState::ERR);
    } else if (context.state == QpState::RTS || context.state == QpState::SQD) {
      enter(QpState::SQE);
    }
  }
  for (unsigned type = 0; context.events != 0; ++type) {
    const std::uint32_t bit = 1u << type;
    if ((context.events & bit) == 0) continue;
    context.events &= ~bit;
    effects.raise({static_cast<verbs::AsyncEventType>(type), context.number});
  }
}

// --- Qp ---

Qp::Qp(Qpn number, const verbs::QpInitAttributes& init, Environment environment)
    : core_(std::make_unique<Core>(number, init, environment)) {}
Qp::~Qp() = default;

Qpn Qp::number() const {
  return core_->context.number;
}
verbs::QpType Qp::type() const {
  return core_->context.type;
}
verbs::QpState Qp::state() const {
  return core_->context.state;
}
const verbs::QpAttributes& Qp::attributes() const {
  return core_->attributes;
}
Result<void> Qp::modify(const verbs::QpAttributes& attributes, Effects& effects) {
  return core_->modify(attributes, effects);
}
PostResult Qp::post_send(const verbs::SendWr& wr) {
  return core_->requester.post(wr);
}
PostResult Qp::post_recv(const verbs::RecvWr& wr) {
  return core_->responder.post(wr);
}
void Qp::prefetch() const {
  constexpr std::size_t kLine = 64;
  const auto* state = reinterpret_cast<const char*>(core_.get());
  for (std::size_t at = 0; at < sizeof(Core); at += kLine) __builtin_prefetch(state + at);
}
void Qp::on_packet(Instant now, const Packet& packet, Effects& effects) {
  core_->on_packet(now, packet, effects);
}
void Qp::on_timeout(Instant now, Effects& effects) {
  core_->requester.on_timeout(now);
  if (core_->context.unsettled()) core_->settle(effects);
}
Instant Qp::next_deadline() const {
  return core_->requester.deadline();
}
bool Qp::wants_tx() const {
  return core_->requester.can_send() || core_->responder.wants_tx();
}
std::size_t Qp::build_next(Instant now, std::span<std::byte> slot, Effects& effects) {
  return core_->build_next(now, slot, effects);
}
bool Qp::wants_unpaced_tx() const {
  return core_->responder.wants_tx() && !core_->responder.next_is_read_data();
}
std::size_t Qp::build_next_unpaced(std::span<std::byte> slot, Effects& effects) {
  if (!wants_unpaced_tx()) return 0;
  const std::size_t length = core_->responder.build(slot);
  if (core_->context.unsettled()) core_->settle(effects);
  return length;
}
std::size_t Qp::outstanding_sends() const {
  return core_->requester.outstanding();
}
std::size_t Qp::outstanding_receives() const {
  return core_->responder.outstanding();
}

}  // namespace roce::transport
