// WorkerCounters: what became of frames before they reached a QP. One writer, free-running.
#pragma once

#include <array>
#include <cstdint>

#include "wire/packet.hpp"

namespace roce::engine {

/// Frames by what became of them; the rejects of wire::Verdict have a counter each.
struct WorkerCounters {
  std::array<std::uint64_t, wire::kVerdicts> verdicts{};
  std::uint64_t unknown_qpn = 0;      ///< no QP of that number here
  std::uint64_t not_our_address = 0;  ///< destination MAC or IP is none of ours
  std::uint64_t tx_refused = 0;       ///< frames a port did not take at once (kept and sent later)
  std::uint64_t tx_no_buffer = 0;     ///< turns that found no transmit slot
  std::uint64_t arp_rx = 0, arp_tx = 0, nd_rx = 0, nd_tx = 0, icmp_echo_rx = 0, icmp_echo_tx = 0;
  std::uint64_t control_drops = 0;         ///< ARP, ND and echo frames not sent, too many at once
  std::uint64_t neighbours_displaced = 0;  ///< entries of the neighbour table that went for others
  std::uint64_t async_events_dropped = 0;
  // Notification point (congestion::NpCounters).
  std::uint64_t np_marks_suppressed = 0;     ///< marks that brought no CNP of their own
  std::uint64_t np_intervals_cut_short = 0;  ///< more scopes at a time than NpConfig::max_keys
  std::uint64_t np_cnp_dropped = 0;          ///< CNPs not sent, too many at once
};

}  // namespace roce::engine
