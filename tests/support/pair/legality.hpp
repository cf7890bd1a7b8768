// Legality: an independent judge of what RC sides put on the wire. It knows what was posted and
// what has arrived, and says which rule a frame breaks. Derived from the protocol, not from the
// code under test.
#pragma once

#include <map>
#include <set>
#include <string>

#include "support/pair/side.hpp"
#include "wire/packet.hpp"

namespace roce::test {

/// Judges one direction: the requests of one side and the responses of the other to them.
class Legality {
 public:
  Legality(const Side& requester, const Side& responder, std::uint32_t mtu, Psn first_psn)
      : requester_(requester), responder_(responder), mtu_(mtu), first_psn_(first_psn) {}

  /// A request leaves the requester. Empty when it is called for; else what is wrong.
  [[nodiscard]] std::string request_sent(const wire::Packet& packet);
  /// A request has arrived intact at the responder.
  void request_arrived(const wire::Packet& packet);
  /// A response leaves the responder.
  [[nodiscard]] std::string response_sent(const wire::Packet& packet);
  void response_arrived(const wire::Packet& packet);

 private:
  [[nodiscard]] const Op* op_of(Psn psn) const;
  [[nodiscard]] std::string judge_read_request(const Op& op, const wire::Packet& packet) const;
  [[nodiscard]] std::string judge_read_response(const wire::Packet& packet) const;
  [[nodiscard]] std::string judge_ack(const wire::Packet& packet);
  /// Distance from the first PSN of the connection.
  [[nodiscard]] std::int32_t index(Psn psn) const { return distance(psn, first_psn_); }

  const Side& requester_;
  const Side& responder_;
  std::uint32_t mtu_;
  Psn first_psn_;
  std::set<std::int32_t> arrived_;              ///< indices of request PSNs that arrived intact
  std::map<std::int32_t, std::int32_t> reads_;  ///< READ requests that arrived: first, last index
  std::set<std::int32_t> responses_arrived_;
  std::set<std::int32_t> nak_pending_;  ///< NAKed and not arrived since
};

}  // namespace roce::test
