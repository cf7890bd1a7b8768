// Worker: one core's turn of the crank over one port: receive, parse, demultiplex, step the QPs,
// run timers, pull packets, transmit. It owns its QPs, CQs and memory table; nothing is shared.
//
// All calls come from one thread. Time comes in with turn(); the worker reads no clock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/rate.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "congestion/notification_point.hpp"
#include "congestion/reaction_point.hpp"
#include "engine/interface.hpp"
#include "engine/packet_io.hpp"
#include "engine/transmit_scheduler.hpp"
#include "engine/worker_counters.hpp"
#include "transport/qp.hpp"

namespace roce::engine {

struct WorkerConfig {
  std::uint8_t index = 0;        ///< 0..15, part of each QPN
  std::uint32_t max_qps = 1024;  ///< 1..65536
  std::uint32_t max_mrs = 4096;
  std::uint32_t max_neighbours = 4096;    ///< hosts remembered; the ones used longest ago go first
  std::uint32_t max_control_frames = 64;  ///< ARP, ND and echo frames that wait, of 4.2 KiB each
  std::uint64_t seed = 1;                 ///< QPN generations and keys
  std::size_t tx_burst_per_qp = 8;        ///< frames a QP may send before the next one's turn

  congestion::NpConfig np;  ///< how marks on what arrives are answered; validated by the caller
  Rate line_rate{};         ///< of the port; QPs under congestion control need to know it
  /// For so long at its rate a QP may catch up when it could not send in time.
  Duration pacing_burst = Duration::microseconds(10);
  /// Bytes per frame that count against a QP's rate besides the frame: preamble, FCS and gap, so
  /// that rates are those of the wire. The byte counter of DCQCN counts the same.
  std::uint32_t pacing_overhead_bytes = 24;
  /// 1 to 8; QPs are in the first unless set_traffic_class() says otherwise.
  std::vector<TrafficClass> traffic_classes{TrafficClass{}};
};

class Worker {
 public:
  /// port: outlives the worker.
  Worker(const WorkerConfig& config, PacketIo& port);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] InterfaceId add_interface(const InterfaceConfig& config);
  [[nodiscard]] const InterfaceConfig& interface(InterfaceId id) const;

  // --- verbs ---
  [[nodiscard]] verbs::MemoryTable& memory();
  /// CQs and QPs live until destroyed or the worker ends. cqe: capacity.
  [[nodiscard]] verbs::CompletionQueue& create_cq(std::size_t cqe);
  /// No QP may use cq any more.
  void destroy_cq(verbs::CompletionQueue& cq);
  /// Fails when max_qps are in use. A destroyed QP's number is not used again soon.
  [[nodiscard]] Result<Qpn> create_qp(const verbs::QpInitAttributes& init);
  void destroy_qp(Qpn qpn);
  [[nodiscard]] Result<void> modify_qp(Qpn qpn, const verbs::QpAttributes& attributes);
  [[nodiscard]] transport::PostResult post_send(Qpn qpn, const verbs::SendWr& wr);
  [[nodiscard]] transport::PostResult post_recv(Qpn qpn, const verbs::RecvWr& wr);
  /// For queries; null when there is no such QP.
  [[nodiscard]] const transport::Qp* find_qp(Qpn qpn) const;

  // --- congestion control and scheduling ---
  /// From now on requests and READ responses of the QP are paced, and carry ECT(0) when the
  /// algorithm heeds CNPs; NoControl ends that. Its state starts afresh. Fails on a configuration
  /// that line_rate or the algorithm does not allow.
  [[nodiscard]] Result<void> set_congestion_control(Qpn qpn, const congestion::RpConfig& config);
  /// Nothing when the QP has no congestion control.
  [[nodiscard]] std::optional<congestion::RpSnapshot> congestion_state(Qpn qpn, Instant now);
  /// observer is told of each event of the QP's reaction point until the next
  /// set_congestion_control(). Does nothing without congestion control.
  void observe_congestion(Qpn qpn, congestion::RpObserver observer);
  [[nodiscard]] const congestion::NpCounters& np_counters() const;
  /// traffic_class: an index into WorkerConfig::traffic_classes.
  [[nodiscard]] Result<void> set_traffic_class(Qpn qpn, std::uint8_t traffic_class);

  // --- neighbours ---
  /// The MAC that leads to destination (its own or the gateway's) when known; else starts or goes
  /// on asking by ARP or ND (one request per second) and returns nothing: ask again after later
  /// turns. An answer holds for 60 s; then it is asked for again, and still returned until three
  /// requests went unanswered.
  [[nodiscard]] std::optional<MacAddress> resolve(InterfaceId id, const IpAddress& destination,
                                                  Instant now);
  /// Tells the MAC of destination for good: it is never asked for and what others say of it is not
  /// believed. For closed networks whose hosts are known.
  void add_neighbour(InterfaceId id, const IpAddress& destination, const MacAddress& mac);

  /// One turn (see the design's eight steps). Returns whether it received or sent anything.
  bool turn(Instant now);
  /// When turn() next has something to do by itself: the earliest timer or paced packet of any QP,
  /// or a CNP that waits for its window's end; Instant::never() when there is none. For simulated
  /// time: it may be early, never late.
  [[nodiscard]] Instant next_deadline() const;

  /// Moves pending asynchronous events into out, oldest first; returns how many.
  [[nodiscard]] std::size_t poll_async(std::span<transport::AsyncEvent> out);

  [[nodiscard]] const transport::Counters& counters() const;
  [[nodiscard]] const WorkerCounters& worker_counters() const;
  [[nodiscard]] PacketIo& port();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

}  // namespace roce::engine
