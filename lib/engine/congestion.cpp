// Congestion control in the worker's turn: marks and CNPs that arrive, CNPs that go out, and QPs
// whose packets are paced.
#include <algorithm>

#include "engine/worker_core.hpp"
#include "wire/build.hpp"
#include "wire/ecn.hpp"

namespace roce::engine {

using congestion::NpFlow;

namespace {

/// Whether a QP in this state takes packets, and so can complain of their marks.
bool receives(verbs::QpState state) {
  return state == verbs::QpState::RTR || state == verbs::QpState::RTS ||
         state == verbs::QpState::SQD || state == verbs::QpState::SQE;
}

/// Responses without data are never marked by those who send them as they should, and a CNP for
/// one would slow down who sends no data.
bool carries_data(const wire::Packet& packet) {
  return packet.opcode != wire::Opcode::RC_ACKNOWLEDGE &&
         packet.opcode != wire::Opcode::RC_ATOMIC_ACKNOWLEDGE && packet.opcode != wire::Opcode::CNP;
}

}  // namespace

/// A mark, BECN or a CNP. Returns true when the packet is a CNP that has been dealt with.
bool Worker::Core::on_congestion(Instant now, const wire::Packet& packet, transport::Qp& qp) {
  if (packet.congestion_experienced()) on_marked(now, packet, qp);
  const bool cnp = packet.opcode == wire::Opcode::CNP;
  const std::uint32_t slot = qps.slot_of(qp.number());
  if (!(cnp || packet.bth->becn()) || pacer == nullptr || !pacer->has(slot)) return false;
  // Whoever is not the peer must not slow us down.
  const verbs::QpAttributes& attributes = qp.attributes();
  const bool stranger = qp.type() != verbs::QpType::UD &&
                        (!attributes.path || attributes.path->destination != packet.source_ip());
  if (stranger || !receives(qp.state()) || !pacer->on_cnp(now, slot)) return false;
  ++transport_counters.rp_cnp_handled;
  if (cnp) ++transport_counters.rcvd_pkts;
  return cnp;
}

void Worker::Core::on_marked(Instant now, const wire::Packet& packet, const transport::Qp& qp) {
  if (!carries_data(packet) || !receives(qp.state())) return;
  NpFlow flow;
  flow.qpn = qp.number();
  if (qp.type() == verbs::QpType::UD) {
    if (!packet.info().has(wire::kDeth)) return;
    flow.peer = packet.deth().source_qpn();
  } else {
    flow.peer = qp.attributes().dest_qp_num.value_or(Qpn{});
  }
  flow.source = packet.source_ip();
  flow.destination = packet.destination_ip();
  flow.source_mac = packet.source_mac();
  flow.destination_mac = wire::view_as<wire::EthernetHeader>(packet.l2)->destination;
  flow.vlan_tci = packet.vlan_tci;
  if (np.on_marked(now, flow)) queue_cnp(flow);
  counters.np_marks_suppressed = np.counters().suppressed;
  counters.np_intervals_cut_short = np.counters().displaced;
}

/// The QP has just sent NAKs for sequence errors. Some NICs send a CNP with each.
void Worker::Core::on_seq_naks(const transport::Qp& qp) {
  const verbs::QpAttributes& attributes = qp.attributes();
  for (; seq_naks_ != transport_counters.send_seq_nak; ++seq_naks_) {
    if (!attributes.path || !attributes.dest_qp_num || !np.on_nak()) continue;
    NpFlow flow;
    flow.qpn = qp.number();
    flow.peer = *attributes.dest_qp_num;
    flow.source = attributes.path->destination;
    flow.destination = attributes.path->source;
    flow.source_mac = attributes.path->destination_mac;
    flow.destination_mac = attributes.path->source_mac;
    flow.vlan_tci = attributes.path->vlan_tci.value_or(0);
    queue_cnp(flow);
  }
}

void Worker::Core::run_congestion_timers(Instant now) {
  NpFlow flow;
  while (np.take_due(now, flow)) queue_cnp(flow);
  if (pacer == nullptr) return;
  std::uint32_t slot = 0;
  for (std::size_t i = 0; i < kReleasesPerTurn && pacer->take_due(now, slot); ++i) {
    const transport::Qp* qp = qps.at(slot);
    if (qp == nullptr) continue;
    if (!qp->wants_tx()) pacer->rest(slot);
    note_ready(slot, *qp);
  }
}

Instant Worker::Core::next_deadline() const {
  Instant next = std::min(deadlines.earliest(), np.next_deadline());
  if (pacer != nullptr) next = std::min(next, pacer->next_deadline());
  return next;
}

void Worker::Core::queue_cnp(const NpFlow& flow) {
  if (cnps_.full())
    ++counters.np_cnp_dropped;
  else
    cnps_.push(flow);
}

void Worker::Core::build_cnps() {
  for (; !cnps_.empty() && built_ < reserved_; cnps_.pop()) {
    Frame& frame = slots_[built_++];
    frame.length =
        static_cast<std::uint32_t>(build_cnp(cnps_.front(), {frame.data, frame.capacity}));
    ++transport_counters.np_cnp_sent;
    ++transport_counters.sent_pkts;
  }
}

/// As ConnectX sends it: UDP source port 0, MigReq clear, BECN set, PSN 0; back the way the marked
/// packet came.
std::size_t Worker::Core::build_cnp(const NpFlow& flow, std::span<std::byte> slot) const {
  const congestion::NpConfig& how = np.config();
  wire::PathAttributes path;
  path.source_mac = flow.destination_mac;
  path.destination_mac = flow.source_mac;
  path.source = flow.destination;
  path.destination = flow.source;
  path.traffic_class = static_cast<std::uint8_t>(how.cnp_dscp << 2 | how.cnp_ecn);
  path.udp_source_port = 0;
  if (flow.vlan_tci != 0) {
    constexpr unsigned kPcpShift = 13;
    const unsigned pcp = how.cnp_prio_of_packet ? flow.vlan_tci >> kPcpShift : how.cnp_prio;
    path.vlan_tci = static_cast<std::uint16_t>(pcp << kPcpShift | (flow.vlan_tci & 0xfffu));
  }
  wire::FrameBuilder frame(
      slot, wire::make_path_headers(path),
      {.opcode = wire::Opcode::CNP, .dest_qpn = flow.peer, .mig_req = false, .becn = true}, 0);
  return frame.finish();
}

/// A paced QP's turn: what is not held up, then as much as it may send now. Returns the bytes.
std::uint32_t Worker::Core::build_paced_qp(Instant now, std::uint32_t slot, transport::Qp& qp) {
  std::uint32_t bytes = 0;
  for (std::size_t i = 0; i < config.tx_burst_per_qp && built_ < reserved_; ++i) {
    Frame& frame = slots_[built_];
    const bool unpaced = qp.wants_unpaced_tx();
    if (!unpaced && (!qp.wants_tx() || !pacer->may_send(now, slot))) break;
    const std::span<std::byte> room{frame.data, frame.capacity};
    frame.length = static_cast<std::uint32_t>(unpaced ? qp.build_next_unpaced(room, effects)
                                                      : qp.build_next(now, room, effects));
    if (frame.length == 0) break;
    if (!unpaced) {
      pacer->charge(now, slot, frame.length + config.pacing_overhead_bytes);
      if (pacer->heeds_marks(slot)) wire::set_ecn(frame.data, wire::Ecn::ECT_0);
    }
    bytes += frame.length;
    ++built_;
  }
  if (!qp.wants_tx())
    pacer->rest(slot);
  else if (!qp.wants_unpaced_tx() && !pacer->may_send(now, slot))
    pacer->hold(now, slot);
  return bytes;
}

// --- Worker ---

Result<void> Worker::set_congestion_control(Qpn qpn, const congestion::RpConfig& config) {
  transport::Qp* qp = core_->qps.find(qpn);
  if (qp == nullptr)
    return failure("set_congestion_control", "there is no such QP", "create it first");
  const std::uint32_t slot = core_->qps.slot_of(qpn);
  if (std::holds_alternative<congestion::NoControl>(config)) {
    if (core_->pacer != nullptr) core_->pacer->remove(slot);
  } else {
    const Rate line = core_->config.line_rate;
    const bool needs_line = std::holds_alternative<congestion::DcqcnConfig>(config);
    if (needs_line && !(line.mbps() > 0))
      return failure("line_rate", "congestion control needs the rate of the port",
                     "set it in the worker's configuration");
    if (auto valid = congestion::validate(config, line); !valid) return valid;
    if (core_->pacer == nullptr)
      core_->pacer = std::make_unique<Pacer>(core_->config.max_qps, core_->config.pacing_burst);
    core_->pacer->set(slot, config, line);
  }
  core_->note_ready(slot, *qp);
  return {};
}

std::optional<congestion::RpSnapshot> Worker::congestion_state(Qpn qpn, Instant now) {
  const std::uint32_t slot = core_->qps.slot_of(qpn);
  if (core_->qps.find(qpn) == nullptr || core_->pacer == nullptr || !core_->pacer->has(slot))
    return std::nullopt;
  return core_->pacer->snapshot(now, slot);
}

void Worker::observe_congestion(Qpn qpn, congestion::RpObserver observer) {
  const std::uint32_t slot = core_->qps.slot_of(qpn);
  if (core_->qps.find(qpn) != nullptr && core_->pacer != nullptr && core_->pacer->has(slot))
    core_->pacer->observe(slot, observer);
}

const congestion::NpCounters& Worker::np_counters() const {
  return core_->np.counters();
}

Result<void> Worker::set_traffic_class(Qpn qpn, std::uint8_t traffic_class) {
  if (core_->qps.find(qpn) == nullptr)
    return failure("set_traffic_class", "there is no such QP", "create it first");
  if (traffic_class >= core_->ready.classes())
    return failure("set_traffic_class", "there is no such class",
                   "list it in the worker's configuration");
  core_->ready.set_class(core_->qps.slot_of(qpn), traffic_class);
  return {};
}

}  // namespace roce::engine
