// Worker::Core: the state behind a Worker and the steps of its turn. Known to worker.cpp and
// turn.cpp only.
#pragma once

#include <array>
#include <list>
#include <vector>

#include "base/ring.hpp"
#include "engine/deadline_queue.hpp"
#include "engine/neighbours.hpp"
#include "engine/qp_table.hpp"
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
    if (qp.wants_tx()) make_ready(slot);
    deadlines.set(slot, qp.next_deadline());
  }
  /// Moves what QPs have raised to the queue that poll_async() reads.
  void collect_events();
  void forget(std::uint32_t slot);

  WorkerConfig config;
  PacketIo& port;
  WorkerCounters counters;
  transport::Counters transport_counters;
  verbs::MemoryTable memory;
  QpTable qps;
  DeadlineQueue deadlines;
  Neighbours neighbours;
  std::list<verbs::CompletionQueue> cqs;
  transport::Effects effects;
  Ring<transport::AsyncEvent> events{kMostEvents};

 private:
  static constexpr std::size_t kMostEvents = 1024;
  static constexpr std::size_t kTimersPerTurn = 64;

  bool receive(Instant now);
  void deliver(Instant now, std::span<const Frame> frames);
  void run_timers(Instant now);
  bool transmit(Instant now);
  bool reserve();
  void build(Instant now);
  void build_from(std::uint32_t slot, Instant now);
  bool flush(Instant now);

  void make_ready(std::uint32_t slot) {
    if (is_ready_[slot]) return;
    is_ready_[slot] = 1;
    ready_.push(slot);
  }

  Ring<std::uint32_t> ready_;           ///< slots of QPs that want to transmit, in turn
  std::vector<std::uint8_t> is_ready_;  ///< by slot: stands in ready_

  // Transmit slots: [0, built_) are built and not yet taken by the port, [built_, reserved_) are
  // empty.
  std::array<Frame, kBurst> slots_{};
  std::size_t built_ = 0;
  std::size_t reserved_ = 0;
};

}  // namespace roce::engine
