// Context: what the requester and the responder of one QP share: identity, state, path, and the
// outcomes that the QP settles at the end of each call (events, failure).
//
// Owned by Qp::Core. Never does: act on what is noted in it; Core::settle() does.
#pragma once

#include <cstdint>

#include "base/types.hpp"
#include "transport/counters.hpp"
#include "transport/qp.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/enums.hpp"
#include "verbs/memory.hpp"
#include "verbs/work.hpp"
#include "wire/build.hpp"

namespace roce::transport {

/// Most bytes of one message (IBTA 9.7.4.1.6).
inline constexpr std::uint32_t kMostMessageBytes = 1u << 31;

/// What has to become of the QP once the current call is through.
enum class Failure : std::uint8_t {
  NONE,
  SEND_QUEUE,  ///< UC, UD: the send queue stops (SQE), receiving goes on
  QP,          ///< the QP goes to ERR
};

struct Context {
  Context(Qpn qpn, const verbs::QpInitAttributes& init, Environment environment)
      : memory(environment.memory),
        counters(environment.counters),
        send_cq(init.send_cq),
        recv_cq(init.recv_cq),
        pd(init.pd),
        number(qpn),
        type(init.type) {}

  verbs::MemoryTable& memory;
  Counters& counters;
  verbs::CompletionQueue* send_cq;
  verbs::CompletionQueue* recv_cq;
  verbs::Pd pd;
  Qpn number;
  Qpn peer;  ///< RC, UC
  verbs::QpType type;
  verbs::QpState state = verbs::QpState::RESET;
  std::uint8_t mtu_shift = 12;  ///< log2 of the path MTU in bytes
  Failure failure = Failure::NONE;
  std::uint32_t events = 0;  ///< a bit per AsyncEventType, to be raised
  std::uint16_t pkey = wire::kDefaultPkey;
  bool cq_error_raised = false;
  std::uint32_t qkey = 0;  ///< UD
  wire::PathHeaders path;  ///< RC, UC

  [[nodiscard]] std::uint32_t mtu() const { return 1u << mtu_shift; }
  /// PSNs that length bytes take: one per packet, at least one.
  [[nodiscard]] std::uint32_t packets_of(std::uint32_t length) const {
    return length == 0 ? 1 : ((length - 1) >> mtu_shift) + 1;
  }
  [[nodiscard]] bool unsettled() const { return events != 0 || failure != Failure::NONE; }

  void note(verbs::AsyncEventType event) { events |= 1u << static_cast<unsigned>(event); }
  void fail(Failure what) {
    if (what > failure) failure = what;
  }
  /// Pushes a completion; an overrun of the CQ is noted and ends the QP.
  void complete(verbs::CompletionQueue& cq, verbs::Wc& wc, bool solicited) {
    wc.qp_num = number;
    cq.push(wc, solicited);
    if (cq.overrun() && !cq_error_raised) [[unlikely]] {
      cq_error_raised = true;
      note(verbs::AsyncEventType::CQ_ERR);
      fail(Failure::QP);
    }
  }
};

}  // namespace roce::transport
