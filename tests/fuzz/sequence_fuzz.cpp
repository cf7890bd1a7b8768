// Fuzzes a connected QP with a sequence of posts, packets that arrive, are lost, doubled, damaged
// or forged, steps of time, and state changes. Whatever comes: no byte outside the registered
// regions changes, each posted WR completes at most once and in order, and the QP comes to rest.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "support/pair/side.hpp"
#include "wire/icrc.hpp"

using namespace roce;
using namespace roce::test;

namespace {

constexpr std::size_t kArena = 16 * 1024;
/// Peers may reach [kOpen, kArena - kOpen); the rest must keep its bytes.
constexpr std::size_t kOpen = 1024;

void require(bool condition) {
  if (!condition) std::abort();
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  [[nodiscard]] bool empty() const { return at_ >= size_; }
  std::uint8_t byte() { return empty() ? 0 : data_[at_++]; }
  std::uint32_t word() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | byte();
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

/// One end with a region that leaves both ends of its arena closed.
struct End {
  End(Qpn qpn, verbs::QpType type, std::uint64_t base)
      : side(qpn, type, base, kArena, 16),
        open(side.memory
                 .reg_mr(side.pd, side.at(kOpen, kArena - 2 * kOpen), base + kOpen,
                         verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE |
                             verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC)
                 .value()) {
    (void)side.memory.dereg_mr(side.mr.lkey);
  }
  Side side;
  verbs::MemoryRegion open;
  std::deque<std::vector<std::byte>> inbox;
  std::uint64_t next_wr_id = 0;
  std::uint64_t last_completed = 0;  ///< wr_id + 1
  std::size_t receives = 0, received = 0;
};

class World {
 public:
  World(Input& input, verbs::QpType type)
      : input_(input), type_(type), a_(Qpn{0x11}, type, 0x10000), b_(Qpn{0x22}, type, 0x20000) {
    connect(a_, b_);
    connect(b_, a_);
  }

  void play() {
    for (int step = 0; step < 400 && !input_.empty(); ++step) {
      const std::uint8_t choice = input_.byte();
      End& end = choice & 1 ? a_ : b_;
      switch ((choice >> 1) % 10) {
        case 0:
        case 1:
          post(end);
          break;
        case 2:
          post_receive(end);
          break;
        case 3:
        case 4:
          deliver(end);
          break;
        case 5:
          if (!end.inbox.empty()) end.inbox.pop_front();
          break;
        case 6:
          if (!end.inbox.empty() && end.inbox.size() < 64) end.inbox.push_back(end.inbox.front());
          break;
        case 7:
          damage(end);
          break;
        case 8:
          advance();
          break;
        default:
          odd(end);
          break;
      }
      pull(a_, b_);
      pull(b_, a_);
      check(a_);
      check(b_);
    }
    come_to_rest();
  }

 private:
  static wire::PathAttributes path(bool from_a) {
    wire::PathAttributes path;
    path.source = IpAddress::v4(198, 18, 0, from_a ? 1 : 2);
    path.destination = IpAddress::v4(198, 18, 0, from_a ? 2 : 1);
    return path;
  }

  void connect(End& end, End& peer) {
    verbs::QpAttributes init, rtr, rts;
    init.qp_state = verbs::QpState::INIT;
    rtr.qp_state = verbs::QpState::RTR;
    rts.qp_state = verbs::QpState::RTS;
    rtr.path_mtu = verbs::Mtu::MTU_256;
    rts.sq_psn = Psn{0xfffff0};
    if (type_ == verbs::QpType::UD) {
      init.qkey = 1;
    } else {
      init.qp_access_flags =
          verbs::ACCESS_REMOTE_WRITE | verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC;
      rtr.path = path(&end == &a_);
      rtr.dest_qp_num = peer.side.qp->number();
      rtr.rq_psn = Psn{0xfffff0};
    }
    if (type_ == verbs::QpType::RC) {
      rtr.max_dest_rd_atomic = 2;
      rtr.min_rnr_timer = 1;
      rts.max_rd_atomic = 2;
      rts.timeout = 8;
      rts.retry_cnt = 3;
      rts.rnr_retry = 3;
    }
    for (const auto& step : {init, rtr, rts})
      require(end.side.qp->modify(step, end.side.effects).has_value());
  }

  void post(End& end) {
    End& peer = &end == &a_ ? b_ : a_;
    constexpr verbs::WrOpcode kOpcodes[] = {verbs::WrOpcode::SEND,
                                            verbs::WrOpcode::SEND_WITH_IMM,
                                            verbs::WrOpcode::SEND_WITH_INV,
                                            verbs::WrOpcode::RDMA_WRITE,
                                            verbs::WrOpcode::RDMA_WRITE_WITH_IMM,
                                            verbs::WrOpcode::RDMA_READ,
                                            verbs::WrOpcode::ATOMIC_CMP_AND_SWP,
                                            verbs::WrOpcode::ATOMIC_FETCH_AND_ADD};
    verbs::SendWr wr;
    const std::uint8_t shape = input_.byte();
    wr.opcode = kOpcodes[shape & 7];
    const bool atomic = (shape & 7) >= 6;
    const std::uint32_t length = atomic ? 8 : input_.byte() * 8u;
    // Mostly right places and keys, at times any.
    const bool wild = (shape & 0xc0) == 0xc0;
    const std::uint32_t place = wild ? input_.word() : kOpen + (input_.byte() & 31u) * 8u;
    const verbs::Sge sge{end.side.base + place, length, wild ? input_.word() : end.open.lkey};
    wr.wr_id = end.next_wr_id;
    wr.send_flags = shape & 0x08 ? verbs::SEND_FENCE : 0;
    wr.send_flags |= shape & 0x10 ? verbs::SEND_SIGNALED : 0;
    wr.send_flags |= shape & 0x20 ? verbs::SEND_SOLICITED : 0;
    wr.sg_list = {&sge, length == 0 ? 0u : 1u};
    wr.remote_addr = peer.side.base + (wild ? input_.word() : kOpen + (input_.byte() & 31u) * 8u);
    wr.rkey = wr.invalidate_rkey = wild ? input_.word() : peer.open.rkey;
    const wire::PathHeaders ah = wire::make_path_headers(path(&end == &a_));
    if (type_ == verbs::QpType::UD) wr.ud = {&ah, peer.side.qp->number(), 1};
    if (end.side.qp->post_send(wr) == transport::PostResult::OK) ++end.next_wr_id;
  }

  void post_receive(End& end) {
    const verbs::Sge sge{end.side.base + kOpen + 4096u, 1024u + input_.byte() * 4u, end.open.lkey};
    if (end.side.qp->post_recv({.wr_id = end.receives, .sg_list = {&sge, 1}}) ==
        transport::PostResult::OK)
      ++end.receives;
  }

  void deliver(End& end) {
    if (end.inbox.empty()) return;
    // Not always the oldest.
    const std::size_t i = input_.byte() % 4 == 0 ? end.inbox.size() - 1 : 0;
    const auto frame = end.inbox[i];
    end.inbox.erase(end.inbox.begin() + static_cast<std::ptrdiff_t>(i));
    wire::Packet packet;
    if (wire::parse(frame, wire::IcrcCheck::VERIFY, packet) != wire::Verdict::ROCE) return;
    end.side.qp->on_packet(now_, packet, end.side.effects);
  }

  /// Changes a byte behind the UDP header and makes the ICRC right again: a forged packet.
  void damage(End& end) {
    if (end.inbox.empty()) return;
    auto frame = end.inbox.front();
    wire::Packet packet;
    if (wire::parse(frame, wire::IcrcCheck::SKIP, packet) != wire::Verdict::ROCE) return;
    const auto bth =
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(packet.bth) - frame.data());
    const std::size_t l3 = static_cast<std::size_t>(packet.l3 - frame.data());
    const std::size_t end_of = l3 + packet.l3_bytes - 4;
    frame[bth + input_.byte() % (end_of - bth)] ^= static_cast<std::byte>(input_.byte());
    wire::store_icrc(frame.data() + end_of, wire::icrc({frame.data() + l3, end_of - l3}));
    end.inbox.push_front(std::move(frame));
  }

  void advance() {
    now_ = now_ + Duration::microseconds(1 << (input_.byte() % 13));
    for (End* end : {&a_, &b_})
      if (end->side.qp->next_deadline() <= now_) end->side.qp->on_timeout(now_, end->side.effects);
  }

  void odd(End& end) {
    verbs::QpAttributes attributes;
    switch (input_.byte() % 16) {
      case 0:
        attributes.qp_state = verbs::QpState::ERR;
        break;
      case 1:
        attributes.qp_state = verbs::QpState::SQD;
        break;
      case 2:
        attributes.qp_state = verbs::QpState::RTS;
        break;
      case 3:
        (void)end.side.memory.dereg_mr(end.open.lkey);
        return;
      default:
        return;
    }
    (void)end.side.qp->modify(attributes, end.side.effects);
  }

  void pull(End& from, End& to) {
    std::array<std::byte, wire::kMaxFrameBytes> slot;
    for (int i = 0; i < 16 && from.side.qp->wants_tx(); ++i) {
      const std::size_t n = from.side.qp->build_next(now_, slot, from.side.effects);
      if (n == 0) break;
      wire::Packet packet;
      require(wire::parse({slot.data(), n}, wire::IcrcCheck::VERIFY, packet) ==
              wire::Verdict::ROCE);
      if (to.inbox.size() < 64)
        to.inbox.emplace_back(slot.begin(), slot.begin() + static_cast<std::ptrdiff_t>(n));
    }
  }

  void check(End& end) {
    std::array<verbs::Wc, 8> wcs;
    while (const std::size_t n = end.side.send_cq.poll(wcs))
      for (std::size_t i = 0; i < n; ++i) {
        require(wcs[i].wr_id >= end.last_completed && wcs[i].wr_id < end.next_wr_id);
        end.last_completed = wcs[i].wr_id + 1;
      }
    while (const std::size_t n = end.side.recv_cq.poll(wcs))
      for (std::size_t i = 0; i < n; ++i) require(wcs[i].wr_id == end.received++);
    require(end.received <= end.receives);
    end.side.effects.clear();
    for (std::size_t i = 0; i < kOpen; ++i)
      require(end.side.arena[i] == Side::kGuardByte &&
              end.side.arena[kArena - 1 - i] == Side::kGuardByte);
  }

  /// With the input used up, delivering and waiting must end: everything completes or fails.
  void come_to_rest() {
    for (int i = 0; i < 20'000; ++i) {
      pull(a_, b_);
      pull(b_, a_);
      if (!a_.inbox.empty()) deliver(a_);
      if (!b_.inbox.empty()) deliver(b_);
      check(a_);
      check(b_);
      if (!a_.inbox.empty() || !b_.inbox.empty() || a_.side.qp->wants_tx() ||
          b_.side.qp->wants_tx())
        continue;
      const Instant next = std::min(a_.side.qp->next_deadline(), b_.side.qp->next_deadline());
      if (next.is_never()) return;
      now_ = std::max(now_, next);
      for (End* end : {&a_, &b_})
        if (end->side.qp->next_deadline() <= now_)
          end->side.qp->on_timeout(now_, end->side.effects);
    }
    require(false);  // it never comes to rest
  }

  Input& input_;
  verbs::QpType type_;
  End a_, b_;
  Instant now_ = Instant::from_ns(1000);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 4096) return 0;
  Input input{data, size};
  constexpr verbs::QpType kTypes[] = {verbs::QpType::RC, verbs::QpType::RC, verbs::QpType::UC,
                                      verbs::QpType::UD};
  World world{input, kTypes[input.byte() % 4]};
  world.play();
  return 0;
}
