// Qp::Core: what a QP is made of, and how the outcome of a call is settled.
//
// Owned by Qp. Requester and responder never call each other; they meet in the Context.
#pragma once

#include <cstddef>
#include <span>

#include "transport/context.hpp"
#include "transport/requester.hpp"
#include "transport/responder.hpp"

namespace roce::transport {

class Qp::Core {
 public:
  Core(Qpn number, const verbs::QpInitAttributes& init, Environment environment);

  [[nodiscard]] Result<void> modify(const verbs::QpAttributes& changes, Effects& effects);
  void on_packet(Instant now, const wire::Packet& packet, Effects& effects);
  [[nodiscard]] std::size_t build_next(Instant now, std::span<std::byte> slot, Effects& effects);

  /// Acts on what a call has noted: state changes, flushes, events.
  void settle(Effects& effects);

  Context context;
  Requester requester;
  Responder responder;
  verbs::QpAttributes attributes;

 private:
  /// State, transport, P_Key and source; counts what it drops.
  [[nodiscard]] bool admits(const wire::Packet& packet);
  [[nodiscard]] bool pkey_matches(std::uint16_t theirs) const;
  [[nodiscard]] bool comes_from_peer(const wire::Packet& packet) const;

  // modify.cpp
  void take(const verbs::QpAttributes& changes);
  void enter(verbs::QpState state);

  bool request_turn_ = false;   ///< READ data went last: requests may go now
  bool communication_ = false;  ///< a packet has come since RTR
};

}  // namespace roce::transport
