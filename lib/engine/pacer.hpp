// Pacer: when each QP under congestion control may send its next packet.
//
// Owned by a worker that has such QPs. A flow, by the QP's slot, carries a reaction point and a
// debt in bytes, which each packet raises and time lowers at the reaction point's rate; it may send
// while it owes nothing. A flow that has to wait stands in a timing wheel, where it is put anew at
// every change of its rate, up or down. Never does: read a clock, allocate but in set(), touch a
// QP.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/rate.hpp"
#include "base/time.hpp"
#include "congestion/reaction_point.hpp"
#include "engine/timing_wheel.hpp"

namespace roce::engine {

class Pacer {
 public:
  /// burst: for so long at its rate a flow may catch up, after it could not send when it might
  /// have.
  Pacer(std::uint32_t slots, Duration burst);

  /// Begins to pace slot, or goes on with another configuration. config: validated for line, and
  /// not NoControl.
  void set(std::uint32_t slot, const congestion::RpConfig& config, Rate line);
  void remove(std::uint32_t slot);

  /// Whether slot is paced.
  [[nodiscard]] bool has(std::uint32_t slot) const { return flows_[slot] != nullptr; }
  /// Whether it stands in the wheel: it wants to send and may not yet.
  [[nodiscard]] bool holds(std::uint32_t slot) const { return wheel_.contains(slot); }
  /// Whether its packets are to say that they can bear marks (ECT): it heeds CNPs.
  [[nodiscard]] bool heeds_marks(std::uint32_t slot) const { return flows_[slot]->heeds_marks; }

  // For slots that are paced; now never goes back.

  /// Whether it may send a packet of any size now. It is taken to want to.
  [[nodiscard]] bool may_send(Instant now, std::uint32_t slot);
  /// It has sent so many bytes.
  void charge(Instant now, std::uint32_t slot, std::uint32_t bytes);
  /// It wants to send and may not: it is held until it may.
  void hold(Instant now, std::uint32_t slot);
  /// It has nothing to send: from now on it saves nothing up.
  void rest(std::uint32_t slot) { flows_[slot]->sending = false; }
  /// A CNP for it has come. Returns whether it means anything to it.
  bool on_cnp(Instant now, std::uint32_t slot);

  /// A flow that was held and may send now; no longer held. Call until false.
  [[nodiscard]] bool take_due(Instant now, std::uint32_t& slot);
  /// No later than take_due() next has something to do.
  [[nodiscard]] Instant next_deadline() const { return wheel_.earliest(); }

  [[nodiscard]] congestion::RpSnapshot snapshot(Instant now, std::uint32_t slot);
  /// Events of a flow that waits are told when it is next touched, each with its own time.
  void observe(std::uint32_t slot, congestion::RpObserver observer) {
    flows_[slot]->rp.observe(observer);
  }

 private:
  struct Flow {
    congestion::ReactionPoint rp;
    double debt = 0;       ///< bytes; below 0: what it may catch up
    Instant settled{};     ///< when debt was this
    bool sending = false;  ///< it wants to send and has wanted to since settled
    bool heeds_marks = false;
  };

  void settle(Instant now, Flow& flow) const;
  [[nodiscard]] static Instant release_of(Instant now, const Flow& flow);

  std::vector<std::unique_ptr<Flow>> flows_;  ///< by slot; null when not paced
  TimingWheel wheel_;
  Duration burst_;
};

}  // namespace roce::engine
