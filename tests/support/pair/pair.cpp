#include "support/pair/pair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "support/pair/alloc_guard.hpp"
#include "wire/icrc.hpp"
#include "wire/syndrome.hpp"

namespace roce::test {
namespace {

constexpr std::uint64_t kBaseA = 0x1000'0000, kBaseB = 0x2000'0000;
constexpr int kMostSteps = 200'000;
constexpr std::size_t kPullBurst = 16;

const wire::PathAttributes kPathA{.source_mac = {{2, 0, 0, 0, 0, 1}},
                                  .destination_mac = {{2, 0, 0, 0, 0, 2}},
                                  .source = IpAddress::v4(198, 18, 0, 1),
                                  .destination = IpAddress::v4(198, 18, 0, 2)};

wire::PathAttributes reversed(const wire::PathAttributes& path) {
  wire::PathAttributes back = path;
  std::swap(back.source, back.destination);
  std::swap(back.source_mac, back.destination_mac);
  return back;
}

std::string describe(const wire::Packet& packet) {
  std::string text = fmt::format("{} psn={}{}", packet.info().name, packet.psn().value(),
                                 packet.bth->ack_request() ? " ack_req" : "");
  if (packet.info().has(wire::kAeth))
    text += fmt::format(" {} msn={}", wire::syndrome_name(packet.aeth().syndrome),
                        packet.aeth().msn.get());
  if (!packet.payload.empty()) text += fmt::format(" payload={}", packet.payload.size());
  return text;
}

}  // namespace

Pair::Pair(const PairConfig& config, Wire wire)
    : a(Qpn{0x11}, config.type, kBaseA, config.arena_bytes, config.depth),
      b(Qpn{0x22}, config.type, kBaseB, config.arena_bytes, config.depth),
      config_(config),
      wire_(std::move(wire)),
      prng_(config.seed),
      a_to_b_(a, b, verbs::bytes_of(config.mtu), config.psn_a),
      b_to_a_(b, a, verbs::bytes_of(config.mtu), config.psn_b) {
  connect(a, b, config.psn_a, config.psn_b);
  connect(b, a, config.psn_b, config.psn_a);
}

void Pair::connect(Side& side, const Side& peer, Psn sq_psn, Psn rq_psn) {
  side.next_psn = sq_psn;
  verbs::QpAttributes init;
  init.qp_state = verbs::QpState::INIT;
  if (config_.type == verbs::QpType::UD)
    init.qkey = 0x1111;
  else
    init.qp_access_flags =
        verbs::ACCESS_REMOTE_WRITE | verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC;
  verbs::QpAttributes rtr, rts;
  rtr.qp_state = verbs::QpState::RTR;
  rts.qp_state = verbs::QpState::RTS;
  rtr.path_mtu = config_.mtu;
  rts.sq_psn = sq_psn;
  if (config_.type != verbs::QpType::UD) {
    rtr.path = &side == &a ? kPathA : reversed(kPathA);
    rtr.dest_qp_num = peer.qp->number();
    rtr.rq_psn = rq_psn;
  }
  if (config_.type == verbs::QpType::RC) {
    rtr.max_dest_rd_atomic = config_.rd_atomic;
    rtr.min_rnr_timer = config_.min_rnr_timer;
    rts.max_rd_atomic = config_.rd_atomic;
    rts.timeout = config_.timeout;
    rts.retry_cnt = config_.retry_cnt;
    rts.rnr_retry = config_.rnr_retry;
  }
  for (const auto& step : {init, rtr, rts})
    if (const auto result = side.qp->modify(step, side.effects); !result)
      fail("modify: " + result.error().to_string());
}

void Pair::post_receive(Way way, std::uint32_t length) {
  Side& side = to(way);
  const std::uint32_t grh = config_.type == verbs::QpType::UD ? 40 : 0;
  const Receive receive{side.received.size() + side.receives.size(), side.take(length + grh),
                        length + grh};
  const verbs::Sge sge{side.base + receive.place, receive.length, side.mr.lkey};
  side.receives.push_back(receive);
  const AllocGuard guard;
  const auto result = side.qp->post_recv(
      {.wr_id = receive.wr_id,
       .sg_list = receive.length > 0 ? std::span{&sge, 1} : std::span<const verbs::Sge>{}});
  if (result != transport::PostResult::OK) fail("a receive was not taken");
}

void Pair::post(Way way, Kind kind, std::uint32_t length, const PostOptions& options) {
  Side& poster = from(way);
  Side& target = to(way);
  Op op;
  op.kind = kind;
  op.length = is_atomic(kind) ? 8 : length;
  op.wr_id = poster.ops.size();
  op.signalled = options.signalled;
  op.solicited = options.solicited;
  op.first = poster.next_psn;
  const std::uint32_t mtu = verbs::bytes_of(config_.mtu);
  op.packets = std::max<std::uint32_t>(1, (op.length + mtu - 1) / mtu);
  op.local = poster.take(op.length, 8);
  op.rkey = target.mr.rkey;
  verbs::SendWr wr;
  if (is_atomic(kind)) {
    // One word for all atomics: executing one twice, or out of order, shows.
    op.remote = 0;
    std::uint64_t value = 0;
    std::memcpy(&value, target.expected.data(), 8);
    op.expected_original = value;
    std::uint64_t next = 0;
    if (kind == Kind::FETCH_ADD) {
      wr.compare_add = prng_() & 0xffff;
      next = value + wr.compare_add;
    } else {
      wr.compare_add = prng_.chance(0.7) ? value : ~value;
      wr.swap = prng_();
      next = wr.compare_add == value ? wr.swap : value;
    }
    std::memcpy(target.expected.data(), &next, 8);
    std::memcpy(poster.expected.data() + op.local, &value, 8);
  } else if (!is_send(kind)) {
    op.remote = target.take(op.length);
    Side& source = kind == Kind::READ ? target : poster;
    const std::size_t place = kind == Kind::READ ? op.remote : op.local;
    source.fill(place, op.length, prng_);
    if (op.length > 0)
      std::memcpy(kind == Kind::READ ? poster.expected.data() + op.local
                                     : target.expected.data() + op.remote,
                  source.arena.data() + place, op.length);
  } else {
    poster.fill(op.local, op.length, prng_);
    if (kind == Kind::SEND_INV)
      op.rkey = target.memory
                    .reg_mr(target.pd, target.at(0, 8), 0x7000'0000,
                            verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE,
                            verbs::RemoteInvalidate::ALLOW)
                    .value()
                    .rkey;
  }
  op.remote_va = target.base + op.remote;
  poster.next_psn += op.packets;

  constexpr verbs::WrOpcode kOpcodes[] = {verbs::WrOpcode::SEND,
                                          verbs::WrOpcode::SEND_WITH_IMM,
                                          verbs::WrOpcode::SEND_WITH_INV,
                                          verbs::WrOpcode::RDMA_WRITE,
                                          verbs::WrOpcode::RDMA_WRITE_WITH_IMM,
                                          verbs::WrOpcode::RDMA_READ,
                                          verbs::WrOpcode::ATOMIC_CMP_AND_SWP,
                                          verbs::WrOpcode::ATOMIC_FETCH_AND_ADD};
  // Inline data is named by its address in the process, as in verbs; everything else by VA and
  // lkey.
  const std::uint64_t source =
      options.inline_data ? reinterpret_cast<std::uintptr_t>(poster.arena.data()) : poster.base;
  std::array<verbs::Sge, 4> sges;
  std::size_t n_sges = 0;
  for (std::uint32_t i = 0, done = 0; i < options.pieces && done < op.length; ++i) {
    const std::uint32_t rest = op.length - done;
    const std::uint32_t n = i + 1 == options.pieces ? rest : std::min(rest, op.length / 3 + 1);
    sges[n_sges++] = {source + op.local + done, n, poster.mr.lkey};
    done += n;
  }
  wr.wr_id = op.wr_id;
  wr.opcode = kOpcodes[static_cast<std::size_t>(kind)];
  wr.sg_list = {sges.data(), n_sges};
  wr.remote_addr = op.remote_va;
  wr.rkey = wr.invalidate_rkey = op.rkey;
  std::memcpy(wr.imm_data.data(), &op.wr_id, 4);
  wr.send_flags = static_cast<std::uint8_t>((options.signalled ? verbs::SEND_SIGNALED : 0) |
                                            (options.fence ? verbs::SEND_FENCE : 0) |
                                            (options.solicited ? verbs::SEND_SOLICITED : 0) |
                                            (options.inline_data ? verbs::SEND_INLINE : 0));
  const wire::PathHeaders ah =
      wire::make_path_headers(way == Way::A_TO_B ? kPathA : reversed(kPathA));
  if (config_.type == verbs::QpType::UD) wr.ud = {&ah, target.qp->number(), 0x1111};
  poster.ops.push_back(op);
  transport::PostResult result{};
  {
    const AllocGuard guard;
    result = poster.qp->post_send(wr);
  }
  if (result != transport::PostResult::OK)
    fail(fmt::format("post_send of {}: {}", name_of(kind), transport::name_of(result)));
}

void Pair::run(Duration limit) {
  const Instant end = now + limit;
  for (int step = 0; verdict_.empty(); ++step) {
    if (step == kMostSteps) return fail("it does not come to rest");
    bool moved = pull(Way::A_TO_B);
    moved = pull(Way::B_TO_A) || moved;
    if (moved) continue;
    const Instant landing = flights_.empty() ? Instant::never() : flights_.begin()->first;
    const Instant next = std::min({landing, a.qp->next_deadline(), b.qp->next_deadline()});
    if (next > end || next.is_never()) return;
    now = std::max(now, next);
    if (landing <= now) {
      const Flight flight = std::move(flights_.begin()->second);
      flights_.erase(flights_.begin());
      land(flight);
      continue;
    }
    for (Side* side : {&a, &b}) {
      if (side->qp->next_deadline() > now) continue;
      note(side == &a ? "A: timer" : "B: timer");
      {
        const AllocGuard guard;
        side->qp->on_timeout(now, side->effects);
      }
      collect(*side, side == &a ? b : a);
    }
  }
}

/// Takes what the sending side has to say at this instant; true when it said anything.
bool Pair::pull(Way way) {
  Side& side = from(way);
  std::array<std::byte, wire::kMaxFrameBytes> slot;
  std::size_t n = 0;
  for (; n < kPullBurst && side.qp->wants_tx(); ++n) {
    std::size_t length = 0;
    {
      const AllocGuard guard;
      length = side.qp->build_next(now, slot, side.effects);
    }
    collect(side, to(way));
    if (length == 0) break;
    launch(way, {slot.data(), length});
  }
  return n > 0;
}

void Pair::launch(Way way, std::span<const std::byte> frame) {
  wire::Packet packet;
  const wire::Verdict parsed = wire::parse(frame, wire::IcrcCheck::VERIFY, packet);
  if (parsed != wire::Verdict::ROCE)
    return fail(fmt::format("a frame was sent that is {}", wire::verdict_name(parsed)));
  const auto w = static_cast<std::size_t>(way);
  const Crossing crossing{way, count_[w]++, &packet};
  const Treatment treatment = wire_ ? wire_(crossing) : Treatment{};
  mix(wire::load_icrc(packet.l3 + packet.l3_bytes - 4));
  mix(static_cast<std::uint64_t>(now.ns()));
  if (config_.trace)
    note(fmt::format("{} #{} {}{}{}{}{}", way == Way::A_TO_B ? "A->B" : "B->A", crossing.index,
                     describe(packet), treatment.drop ? " DROPPED" : "",
                     treatment.corrupt ? " CORRUPTED" : "", treatment.copies > 1 ? " TWICE" : "",
                     treatment.delay.ns() > 0 ? " DELAYED" : ""));
  if (config_.type == verbs::QpType::RC) {
    Legality& forward = way == Way::A_TO_B ? a_to_b_ : b_to_a_;
    Legality& backward = way == Way::A_TO_B ? b_to_a_ : a_to_b_;
    const std::string wrong =
        packet.info().is_response() ? backward.response_sent(packet) : forward.request_sent(packet);
    if (!wrong.empty()) return fail(wrong + ": " + describe(packet));
  }
  line_free_[w] = std::max(line_free_[w], now) + kFrameTime;
  if (treatment.drop) return;
  Flight flight{way, {frame.begin(), frame.end()}, treatment.corrupt};
  if (treatment.corrupt) {
    // Somewhere behind the UDP header and within the IP packet, where only the ICRC can notice.
    const auto begin =
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(packet.bth) - packet.l2);
    const std::size_t end = static_cast<std::size_t>(packet.l3 - packet.l2) + packet.l3_bytes;
    // BTH byte 4 is not covered.
    std::size_t at = begin + prng_.below(static_cast<std::uint32_t>(end - begin));
    if (at == begin + 4) ++at;
    flight.bytes[at] ^= static_cast<std::byte>(1u << prng_.below(8));
  }
  for (int i = 0; i < treatment.copies; ++i)
    flights_.emplace(line_free_[w] + kWireDelay + treatment.delay + Duration::nanoseconds(i),
                     flight);
}

void Pair::land(const Flight& flight) {
  wire::Packet packet;
  const wire::Verdict parsed = wire::parse(flight.bytes, wire::IcrcCheck::VERIFY, packet);
  if (flight.damaged) {
    if (parsed == wire::Verdict::ROCE) fail("a corrupted frame passed for a good one");
    return;
  }
  Side& side = to(flight.way);
  Legality& forward = flight.way == Way::A_TO_B ? a_to_b_ : b_to_a_;
  Legality& backward = flight.way == Way::A_TO_B ? b_to_a_ : a_to_b_;
  if (packet.info().is_response())
    backward.response_arrived(packet);
  else
    forward.request_arrived(packet);
  {
    const AllocGuard guard;
    side.qp->on_packet(now, packet, side.effects);
  }
  collect(side, from(flight.way));
}

void Pair::collect(Side& side, const Side& peer) {
  std::array<verbs::Wc, 16> wcs;
  while (const std::size_t n = side.send_cq.poll(wcs))
    for (const verbs::Wc& wc : std::span{wcs}.first(n)) take_sent(side, wc);
  while (const std::size_t n = side.recv_cq.poll(wcs))
    for (const verbs::Wc& wc : std::span{wcs}.first(n)) take_received(side, peer, wc);
  for (const auto& event : side.effects.events()) side.events.push_back(event);
  side.effects.clear();
}

/// Completions come in post order, each once; unsignalled ones only in error.
void Pair::take_sent(Side& side, const verbs::Wc& wc) {
  mix(wc.wr_id << 8 | static_cast<std::uint64_t>(wc.status));
  if (config_.trace)
    note(fmt::format("{}: completion {} {}", &side == &a ? "A" : "B", wc.wr_id,
                     verbs::name_of(wc.status)));
  std::uint64_t least = side.sent.empty() ? 0 : side.sent.back().wr_id + 1;
  if (wc.wr_id < least || wc.wr_id >= side.ops.size()) return fail("a completion out of order");
  for (; least < wc.wr_id; ++least)
    if (side.ops[least].signalled) return fail("a completion was passed over");
  if (wc.status == verbs::WcStatus::SUCCESS && !side.ops[wc.wr_id].signalled)
    return fail("a completion that was not asked for");
  if (wc.qp_num != side.qp->number()) return fail("a completion of another QP");
  side.sent.push_back(wc);
}

void Pair::take_received(Side& side, const Side& peer, const verbs::Wc& wc) {
  mix(wc.wr_id << 8 | static_cast<std::uint64_t>(wc.status) | 1ULL << 63);
  if (config_.trace)
    note(fmt::format("{}: receive {} {}", &side == &a ? "A" : "B", wc.wr_id,
                     verbs::name_of(wc.status)));
  if (side.receives.empty() || side.receives.front().wr_id != wc.wr_id)
    return fail("a receive completed out of order");
  const Receive receive = side.receives.front();
  side.receives.pop_front();
  side.received.push_back(wc);
  side.consumed.push_back(receive);
  if (wc.status != verbs::WcStatus::SUCCESS) return;
  const Op* op = nullptr;
  if (config_.type == verbs::QpType::RC) {
    // The n-th message that takes a receive.
    std::size_t n = static_cast<std::size_t>(std::ranges::count_if(
        side.received, [](const verbs::Wc& r) { return r.status == verbs::WcStatus::SUCCESS; }));
    for (const Op& candidate : peer.ops)
      if (takes_receive(candidate.kind) && --n == 0) {
        op = &candidate;
        break;
      }
  } else {
    std::uint32_t index = 0;  // unreliable: the immediate data says which one it is
    std::memcpy(&index, wc.imm_data.data(), 4);
    if ((wc.wc_flags & verbs::WC_WITH_IMM) != 0 && index < peer.ops.size()) op = &peer.ops[index];
  }
  if (op == nullptr) return fail("a receive that no message explains");
  check_receive(side, *op, receive, wc);
}

void Pair::check_receive(Side& side, const Op& op, const Receive& receive, const verbs::Wc& wc) {
  const bool write = op.kind == Kind::WRITE_IMM;
  const std::uint32_t grh = config_.type == verbs::QpType::UD ? 40 : 0;
  if (wc.byte_len != op.length + grh) return fail("byte_len of a receive is wrong");
  if (wc.opcode != (write ? verbs::WcOpcode::RECV_RDMA_WITH_IMM : verbs::WcOpcode::RECV))
    return fail("the opcode of a receive is wrong");
  const bool imm = write || op.kind == Kind::SEND_IMM;
  if (((wc.wc_flags & verbs::WC_WITH_IMM) != 0) != imm) return fail("WC_WITH_IMM is wrong");
  if (imm && std::memcmp(wc.imm_data.data(), &op.wr_id, 4) != 0)
    return fail("the immediate data is wrong");
  if (((wc.wc_flags & verbs::WC_WITH_INV) != 0) != (op.kind == Kind::SEND_INV))
    return fail("WC_WITH_INV is wrong");
  if (op.kind == Kind::SEND_INV && side.memory.check(op.rkey, side.pd, 0x7000'0000, 8, 0).ok())
    return fail("a region stands that SEND_WITH_INV invalidated");
  if (write) return;
  const Side& sender = &side == &a ? b : a;
  const std::byte* data = sender.arena.data() + op.local;
  if (op.length > 0) {
    std::memcpy(side.expected.data() + receive.place + grh, data, op.length);
    if (std::memcmp(side.arena.data() + receive.place + grh, data, op.length) != 0)
      return fail("received data is not what was sent");
  }
  // The GRH area is judged by tests of its own.
  if (grh > 0)
    std::memcpy(side.expected.data() + receive.place, side.arena.data() + receive.place, grh);
}

void Pair::expect_all_done() {
  if (!verdict_.empty()) return;
  for (Side* side : {&a, &b}) {
    const std::string name = side == &a ? "A" : "B";
    const auto wanted = std::ranges::count_if(side->ops, [](const Op& op) { return op.signalled; });
    if (static_cast<std::size_t>(wanted) != side->sent.size())
      return fail(fmt::format("{}: {} of {} completions came", name, side->sent.size(), wanted));
    for (const verbs::Wc& wc : side->sent)
      if (wc.status != verbs::WcStatus::SUCCESS)
        return fail(
            fmt::format("{}: completion {} is {}", name, wc.wr_id, verbs::name_of(wc.status)));
    if (side->qp->outstanding_sends() != 0) return fail(name + ": sends are left over");
    if (side->qp->state() != verbs::QpState::RTS) return fail(name + ": the QP left RTS");
    if (!side->qp->next_deadline().is_never()) return fail(name + ": a timer still runs");
    if (const std::string wrong = side->compare(); !wrong.empty()) return fail(name + ": " + wrong);
    const auto taken = std::ranges::count_if((side == &a ? b : a).ops,
                                             [](const Op& op) { return takes_receive(op.kind); });
    if (static_cast<std::size_t>(taken) != side->received.size())
      return fail(
          fmt::format("{}: {} of {} receives were consumed", name, side->received.size(), taken));
  }
}

void Pair::fail(const std::string& what) {
  if (!verdict_.empty()) return;
  const AllocationAllowed permit;
  verdict_ = what;
  if (config_.trace) verdict_ = fmt::format("{}\n{}", what, trace_text());
}

std::string Pair::trace_text() const {
  std::string text;
  for (const std::string& line : trace_) text += line + "\n";
  return text;
}

void Pair::note(const std::string& line) {
  if (config_.trace)
    trace_.push_back(fmt::format("{:>12.3f} us  {}", Duration::nanoseconds(now.ns()).us(), line));
}

void Pair::mix(std::uint64_t value) {
  digest_ = (digest_ ^ value) * 0x100000001b3 + (digest_ >> 47);
}

}  // namespace roce::test
