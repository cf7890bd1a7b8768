// Worker::Core: the state behind a Worker and the steps of its turn. Known to worker.cpp, turn.cpp
// and congestion.cpp only.
#pragma once

#include <array>
#include <list>
#include <memory>

#include "base/ring.hpp"
#include "engine/deadline_queue.hpp"
#include "engine/interfaces.hpp"
#include "engine/neighbours.hpp"
#include "engine/pacer.hpp"
#include "engine/qp_table.hpp"
#include "engine/transmit_scheduler.hpp"
#include "engine/worker.hpp"

namespace roce::engine {

class Worker::Core {
 public:
  Core(const WorkerConfig& worker_config, PacketIo& packet_io);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  bool turn(Instant now);

  /// Notes what a QP wants after any call to it.
  void settle(std::uint32_t slot, const transport::Qp& qp) {
    note_ready(slot, qp);
    deadlines.set(slot, qp.next_deadline());
    if (!effects.events().empty()) collect_events();
  }
  /// The same after a post, which starts no timer and raises no event.
  void note_ready(std::uint32_t slot, const transport::Qp& qp) {
    if (ready.contains(slot) || !qp.wants_tx()) return;
    if (pacer != nullptr && pacer->holds(slot) && !qp.wants_unpaced_tx()) return;
    ready.push(slot);
  }
  [[nodiscard]] Instant next_deadline() const;
  /// Moves what QPs have raised to the queue that poll_async() reads.
  void collect_events();

  WorkerConfig config;
  PacketIo& port;
  WorkerCounters counters;
  transport::Counters transport_counters;
  verbs::MemoryTable memory;
  QpTable qps;
  TransmitScheduler ready;
  DeadlineQueue deadlines;
  Interfaces interfaces;
  Neighbours neighbours;
  congestion::NotificationPoint np;
  std::unique_ptr<Pacer> pacer;  ///< made with the first QP under congestion control
  std::list<verbs::CompletionQueue> cqs;
  transport::Effects effects;
  Ring<transport::AsyncEvent> events{kMostEvents};

 private:
  static constexpr std::size_t kMostEvents = 1024;
  static constexpr std::size_t kTimersPerTurn = 64;
  static constexpr std::size_t kBurstsPerTurn = 4;
  /// Control frames per turn while QPs wait: a flood of requests must not keep them waiting.
  static constexpr std::size_t kControlPerTurn = 8;
  static constexpr std::size_t kReleasesPerTurn = 256;
  static constexpr std::size_t kMostCnps = 256;

  bool receive(Instant now);
  [[nodiscard]] std::size_t parse(Instant now, std::span<const Frame> frames);
  void step(Instant now, std::span<const wire::Packet> packets);
  void run_timers(Instant now);
  bool transmit(Instant now);
  [[nodiscard]] bool wants_tx() const;
  bool reserve();
  bool send_urgent(Instant now);
  void build_control(std::size_t most);
  void build_data(Instant now);
  [[nodiscard]] std::uint32_t build_unpaced_qp(Instant now, transport::Qp& qp);
  [[nodiscard]] std::uint32_t build_paced_qp(Instant now, std::uint32_t slot, transport::Qp& qp);
  bool flush(Instant now);

  // congestion.cpp
  [[nodiscard]] bool on_congestion(Instant now, const wire::Packet& packet, transport::Qp& qp);
  void on_marked(Instant now, const wire::Packet& packet, const transport::Qp& qp);
  void on_seq_naks(const transport::Qp& qp);
  void run_congestion_timers(Instant now);
  void queue_cnp(const congestion::NpFlow& flow);
  void build_cnps();
  [[nodiscard]] std::size_t build_cnp(const congestion::NpFlow& flow,
                                      std::span<std::byte> slot) const;

  std::array<wire::Packet, kBurst> packets_;  ///< RoCE packets of the burst in hand

  // Transmit slots: [0, built_) are built and not yet taken by the port, [built_, reserved_) are
  // empty.
  std::array<Frame, kBurst> slots_{};
  std::size_t built_ = 0;
  std::size_t reserved_ = 0;
  std::size_t refused_ = 0;  ///< of the built ones, how many were refused before

  Ring<congestion::NpFlow> cnps_{kMostCnps};  ///< due, before all other RoCE frames
  std::uint64_t seq_naks_ = 0;                ///< of transport_counters.send_seq_nak, seen
};

}  // namespace roce::engine
