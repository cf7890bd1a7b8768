#include "engine/worker.hpp"

#include <algorithm>

#include "engine/worker_core.hpp"

namespace roce::engine {

Worker::Core::Core(const WorkerConfig& worker_config, PacketIo& packet_io)
    : config(worker_config),
      port(packet_io),
      memory(worker_config.max_mrs, worker_config.seed),
      qps(worker_config.index, worker_config.max_qps, worker_config.seed),
      ready(worker_config.max_qps, worker_config.traffic_classes),
      deadlines(worker_config.max_qps),
      neighbours(interfaces, counters, worker_config.max_neighbours,
                 worker_config.max_control_frames, worker_config.seed),
      np(worker_config.np) {}

Worker::Core::~Core() {
  port.tx_release({slots_.data(), reserved_});
}

void Worker::Core::collect_events() {
  for (const transport::AsyncEvent& event : effects.events()) {
    if (events.full())
      ++counters.async_events_dropped;
    else
      events.push(event);
  }
  counters.async_events_dropped += effects.dropped();
  effects.clear();
}

Worker::Worker(const WorkerConfig& config, PacketIo& port)
    : core_(std::make_unique<Core>(config, port)) {}
Worker::~Worker() = default;

InterfaceId Worker::add_interface(const InterfaceConfig& config) {
  return core_->interfaces.add(config);
}
const InterfaceConfig& Worker::interface(InterfaceId id) const {
  return core_->interfaces[id];
}

verbs::MemoryTable& Worker::memory() {
  return core_->memory;
}

verbs::CompletionQueue& Worker::create_cq(std::size_t cqe) {
  return core_->cqs.emplace_back(cqe);
}

void Worker::destroy_cq(verbs::CompletionQueue& cq) {
  core_->cqs.remove_if([&](const verbs::CompletionQueue& other) { return &other == &cq; });
}

Result<Qpn> Worker::create_qp(const verbs::QpInitAttributes& init) {
  return core_->qps.create(init, {core_->memory, core_->transport_counters});
}

void Worker::destroy_qp(Qpn qpn) {
  if (core_->qps.find(qpn) == nullptr) return;
  const std::uint32_t slot = core_->qps.slot_of(qpn);
  core_->ready.remove(slot);
  core_->ready.set_class(slot, 0);
  core_->deadlines.remove(slot);
  if (core_->pacer != nullptr) core_->pacer->remove(slot);
  core_->qps.destroy(qpn);
}

Result<void> Worker::modify_qp(Qpn qpn, const verbs::QpAttributes& attributes) {
  transport::Qp* qp = core_->qps.find(qpn);
  if (qp == nullptr) return failure("modify_qp", "there is no such QP", "create it first");
  auto result = qp->modify(attributes, core_->effects);
  core_->settle(core_->qps.slot_of(qpn), *qp);
  return result;
}

transport::PostResult Worker::post_send(Qpn qpn, const verbs::SendWr& wr) {
  transport::Qp* qp = core_->qps.find(qpn);
  if (qp == nullptr) return transport::PostResult::BAD_STATE;
  const transport::PostResult result = qp->post_send(wr);
  core_->note_ready(core_->qps.slot_of(qpn), *qp);
  return result;
}

transport::PostResult Worker::post_recv(Qpn qpn, const verbs::RecvWr& wr) {
  transport::Qp* qp = core_->qps.find(qpn);
  return qp == nullptr ? transport::PostResult::BAD_STATE : qp->post_recv(wr);
}

const transport::Qp* Worker::find_qp(Qpn qpn) const {
  return core_->qps.find(qpn);
}

std::optional<MacAddress> Worker::resolve(InterfaceId id, const IpAddress& destination,
                                          Instant now) {
  return core_->neighbours.resolve(id, destination, now);
}

void Worker::add_neighbour(InterfaceId id, const IpAddress& destination, const MacAddress& mac) {
  core_->neighbours.add(id, destination, mac);
}

bool Worker::turn(Instant now) {
  return core_->turn(now);
}

Instant Worker::next_deadline() const {
  return core_->next_deadline();
}

std::size_t Worker::poll_async(std::span<transport::AsyncEvent> out) {
  const std::size_t n = std::min(out.size(), core_->events.size());
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = core_->events.front();
    core_->events.pop();
  }
  return n;
}

const transport::Counters& Worker::counters() const {
  return core_->transport_counters;
}
const WorkerCounters& Worker::worker_counters() const {
  return core_->counters;
}
PacketIo& Worker::port() {
  return core_->port;
}

}  // namespace roce::engine
