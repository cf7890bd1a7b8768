// Two QPs and nothing between them: tests move frames by hand, so that each one can be looked at,
// lost, repeated, altered or made up.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "base/time.hpp"
#include "transport/qp.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/memory.hpp"
#include "wire/build.hpp"
#include "wire/packet.hpp"
#include "wire/syndrome.hpp"

namespace roce::test {

using transport::PostResult;
using verbs::QpState;
using verbs::QpType;
using verbs::WcStatus;
using verbs::WrOpcode;
using wire::NakCode;
using wire::Opcode;

/// A frame with its parsed packet; may be copied (the packet is parsed anew).
struct Frame {
  std::vector<std::byte> bytes;
  [[nodiscard]] wire::Packet packet() const {
    wire::Packet p;
    const auto verdict = wire::parse(bytes, wire::IcrcCheck::VERIFY, p);
    REQUIRE(wire::verdict_name(verdict) == "roce");
    return p;
  }
  [[nodiscard]] Opcode opcode() const { return packet().opcode; }
  [[nodiscard]] std::uint32_t psn() const { return packet().psn().value(); }
  [[nodiscard]] bool ack_request() const { return packet().bth->ack_request(); }
  [[nodiscard]] std::uint8_t syndrome() const { return packet().aeth().syndrome; }
  [[nodiscard]] std::uint32_t msn() const { return packet().aeth().msn.get(); }
};

inline const IpAddress kIps[2] = {IpAddress::v4(198, 18, 0, 1), IpAddress::v4(198, 18, 0, 2)};
inline const IpAddress kIps6[2] = {*IpAddress::from_string("fd00::1"),
                                   *IpAddress::from_string("fd00::2")};

/// One end: memory, CQs and a QP. Everything stands open for the tests.
struct Host {
  explicit Host(unsigned which) : index(which) {
    for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<std::byte>(i * 7 + 3);
    pd = memory.alloc_pd();
    mr = *memory.reg_mr(pd, buffer, kIova,
                        verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE |
                            verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC);
  }
  static constexpr std::uint64_t kIova = 0x10'0000;
  static constexpr std::size_t kBytes = 1 << 18;

  void create(QpType type, verbs::QpCapabilities cap = {}, bool signal_all = false) {
    verbs::QpInitAttributes init;
    init.type = type;
    init.pd = pd;
    init.send_cq = &send_cq;
    init.recv_cq = &recv_cq;
    init.cap = cap;
    init.sq_sig_all = signal_all;
    qp = std::make_unique<transport::Qp>(Qpn{0x100u + index}, init,
                                         transport::Environment{memory, counters});
  }
  [[nodiscard]] Result<void> modify(const verbs::QpAttributes& attributes) {
    return qp->modify(attributes, effects);
  }
  [[nodiscard]] verbs::Sge sge(std::uint64_t offset, std::uint32_t length) const {
    return {kIova + offset, length, mr.lkey};
  }
  [[nodiscard]] std::vector<verbs::Wc> poll(verbs::CompletionQueue& cq) {
    std::vector<verbs::Wc> out(cq.size());
    out.resize(cq.poll(out));
    return out;
  }
  [[nodiscard]] std::vector<verbs::Wc> sends() { return poll(send_cq); }
  [[nodiscard]] std::vector<verbs::Wc> receives() { return poll(recv_cq); }
  [[nodiscard]] bool raised(verbs::AsyncEventType type) const {
    for (const auto& event : effects.events())
      if (event.type == type) return true;
    return false;
  }
  /// Posts a receive of length bytes at offset.
  void post_recv(std::uint64_t wr_id, std::uint64_t offset, std::uint32_t length) {
    const verbs::Sge list[] = {sge(offset, length)};
    REQUIRE(qp->post_recv({wr_id, list}) == PostResult::OK);
  }
  PostResult try_post(WrOpcode opcode, std::uint64_t wr_id, std::uint64_t local,
                      std::uint32_t length, std::uint64_t remote = 0, std::uint32_t rkey = 0,
                      std::uint8_t flags = verbs::SEND_SIGNALED) {
    const verbs::Sge list[] = {sge(local, length)};
    verbs::SendWr wr;
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.send_flags = flags;
    if (length != 0) wr.sg_list = list;
    wr.remote_addr = kIova + remote;
    wr.rkey = rkey;
    wr.imm_data = {1, 2, 3, 4};
    return qp->post_send(wr);
  }
  void post(WrOpcode opcode, std::uint64_t wr_id, std::uint64_t local, std::uint32_t length,
            std::uint64_t remote = 0, std::uint32_t rkey = 0,
            std::uint8_t flags = verbs::SEND_SIGNALED) {
    REQUIRE(try_post(opcode, wr_id, local, length, remote, rkey, flags) == PostResult::OK);
  }

  unsigned index;
  std::vector<std::byte> buffer = std::vector<std::byte>(kBytes);
  verbs::MemoryTable memory{64};
  transport::Counters counters;
  verbs::Pd pd;
  verbs::MemoryRegion mr;
  verbs::CompletionQueue send_cq{256};
  verbs::CompletionQueue recv_cq{256};
  transport::Effects effects;
  std::unique_ptr<transport::Qp> qp;
};

struct Options {
  QpType type = QpType::RC;
  verbs::Mtu mtu = verbs::Mtu::MTU_256;
  Psn psn_a{0x100};  ///< a's send PSN
  Psn psn_b{0x900};
  std::uint8_t rd_atomic = 4;
  std::uint8_t timeout = 8;
  std::uint8_t retry_cnt = 3;
  std::uint8_t rnr_retry = 7;
  std::uint8_t min_rnr_timer = 12;
  std::uint8_t access = 0x0f;
  verbs::QpCapabilities cap{};
  bool signal_all = false;
  bool v6 = false;
};

/// Two hosts, connected.
struct Pair {
  explicit Pair(const Options& o = {}) : options(o) {
    for (Host* h : {&a, &b}) {
      h->create(o.type, o.cap, o.signal_all);
      to_init(*h);
      to_rtr(*h);
      to_rts(*h);
    }
  }
  [[nodiscard]] Host& other(const Host& host) { return host.index == 0 ? b : a; }
  [[nodiscard]] verbs::QpAttributes init_attributes() const {
    verbs::QpAttributes q;
    q.qp_state = QpState::INIT;
    if (options.type == QpType::UD) {
      q.qkey = 0x1111;
      q.path_mtu = options.mtu;
    } else {
      q.qp_access_flags = options.access;
    }
    return q;
  }
  [[nodiscard]] wire::PathAttributes path(const Host& host) const {
    wire::PathAttributes p;
    const IpAddress* ips = options.v6 ? kIps6 : kIps;
    p.source = ips[host.index];
    p.destination = ips[1 - host.index];
    p.source_mac.bytes[5] = static_cast<std::uint8_t>(host.index + 1);
    return p;
  }
  [[nodiscard]] verbs::QpAttributes rtr_attributes(const Host& host) const {
    verbs::QpAttributes q;
    q.qp_state = QpState::RTR;
    if (options.type == QpType::UD) return q;
    q.path_mtu = options.mtu;
    q.path = path(host);
    q.dest_qp_num = Qpn{0x100u + 1 - host.index};
    q.rq_psn = host.index == 0 ? options.psn_b : options.psn_a;
    if (options.type == QpType::UC) return q;
    q.max_dest_rd_atomic = options.rd_atomic;
    q.min_rnr_timer = options.min_rnr_timer;
    return q;
  }
  [[nodiscard]] verbs::QpAttributes rts_attributes(const Host& host) const {
    verbs::QpAttributes q;
    q.qp_state = QpState::RTS;
    q.sq_psn = host.index == 0 ? options.psn_a : options.psn_b;
    if (options.type != QpType::RC) return q;
    q.timeout = options.timeout;
    q.retry_cnt = options.retry_cnt;
    q.rnr_retry = options.rnr_retry;
    q.max_rd_atomic = options.rd_atomic;
    return q;
  }
  void to_init(Host& h) { REQUIRE(h.modify(init_attributes())); }
  void to_rtr(Host& h) { REQUIRE(h.modify(rtr_attributes(h))); }
  void to_rts(Host& h) { REQUIRE(h.modify(rts_attributes(h))); }

  /// The next frame, if any. wants_tx() is held to what build_next() then does.
  [[nodiscard]] std::optional<Frame> pull(Host& h) {
    Frame frame;
    frame.bytes.resize(wire::kMaxFrameBytes);
    const bool wanted = h.qp->wants_tx();
    const std::size_t n = h.qp->build_next(now, frame.bytes, h.effects);
    if (!wanted) CHECK(n == 0);
    if (n == 0) return std::nullopt;
    frame.bytes.resize(n);
    return frame;
  }
  /// All frames that h has to send now.
  [[nodiscard]] std::vector<Frame> pull_all(Host& h, std::size_t most = 100'000) {
    std::vector<Frame> out;
    while (out.size() < most) {
      auto frame = pull(h);
      if (!frame) break;
      out.push_back(std::move(*frame));
    }
    return out;
  }
  void give(Host& to, const Frame& frame) { to.qp->on_packet(now, frame.packet(), to.effects); }
  void give(Host& to, std::span<const Frame> frames) {
    for (const Frame& frame : frames) give(to, frame);
  }
  /// Exchanges frames, none lost, until both are quiet.
  void settle() {
    for (int i = 0; i < 100'000; ++i) {
      const auto from_a = pull_all(a, 16);
      give(b, from_a);
      const auto from_b = pull_all(b, 16);
      give(a, from_b);
      if (from_a.empty() && from_b.empty()) return;
    }
    FAIL("never quiet");
  }
  void pass(Duration d) { now = now + d; }
  /// Runs h's timer when it is due within the given time; false when it is not.
  bool expire(Host& h, Duration within = Duration::seconds(100)) {
    const Instant at = h.qp->next_deadline();
    if (at.is_never() || at > now + within) return false;
    if (at > now) now = at;
    h.qp->on_timeout(now, h.effects);
    return true;
  }

  // --- made-up packets to h, as if from its peer ---
  [[nodiscard]] wire::BthFields bth(const Host& to, Opcode opcode, std::uint32_t psn,
                                    bool ack_request = false) const {
    wire::BthFields fields;
    fields.opcode = opcode;
    fields.dest_qpn = Qpn{0x100u + to.index};
    fields.psn = Psn{psn};
    fields.ack_request = ack_request;
    return fields;
  }
  [[nodiscard]] wire::PathHeaders path_to(const Host& to) {
    return wire::make_path_headers(path(other(to)));
  }
  /// fill gets the builder before it is finished.
  template <class Fill>
  [[nodiscard]] Frame make(const Host& to, const wire::BthFields& fields, std::size_t payload,
                           Fill fill) {
    Frame frame;
    frame.bytes.resize(wire::kMaxFrameBytes + 8192);
    wire::FrameBuilder builder(frame.bytes, path_to(to), fields, payload);
    for (std::size_t i = 0; i < payload; ++i) builder.payload()[i] = static_cast<std::byte>(i);
    fill(builder);
    frame.bytes.resize(builder.finish());
    return frame;
  }
  [[nodiscard]] Frame make(const Host& to, const wire::BthFields& fields, std::size_t payload = 0) {
    return make(to, fields, payload, [](wire::FrameBuilder&) {});
  }
  [[nodiscard]] Frame make_ack(const Host& to, std::uint32_t psn,
                               std::uint8_t syndrome = wire::ack_syndrome(),
                               std::uint32_t msn = 1) {
    return make(to, bth(to, Opcode::RC_ACKNOWLEDGE, psn), 0, [&](wire::FrameBuilder& f) {
      f.aeth().syndrome = syndrome;
      f.aeth().msn.set(msn);
    });
  }
  /// A request with a RETH; to's own memory is what it names.
  [[nodiscard]] Frame make_reth(const Host& to, Opcode opcode, std::uint32_t psn,
                                std::uint64_t offset, std::uint32_t length, std::size_t payload,
                                std::optional<std::uint32_t> rkey = std::nullopt) {
    return make(to, bth(to, opcode, psn, true), payload, [&](wire::FrameBuilder& f) {
      f.reth().va.set(Host::kIova + offset);
      f.reth().rkey.set(rkey.value_or(to.mr.rkey));
      f.reth().dma_length.set(length);
    });
  }

  Options options;
  Host a{0}, b{1};
  Instant now = Instant::from_ns(1'000'000);
};

inline bool same_bytes(const Host& x, std::size_t at, const Host& y, std::size_t from,
                       std::size_t n) {
  return std::memcmp(x.buffer.data() + at, y.buffer.data() + from, n) == 0;
}

}  // namespace roce::test
