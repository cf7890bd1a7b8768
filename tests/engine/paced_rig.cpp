#include "engine/paced_rig.hpp"

#include <algorithm>
#include <cstring>

#include "wire/ecn.hpp"

namespace roce::test {

std::size_t TapPort::tx_burst(Instant now, std::span<const engine::Frame> frames) {
  std::size_t taken = 0;
  for (const engine::Frame& frame : frames.first(std::min(frames.size(), takes))) {
    wire::Packet packet;
    const std::span<const std::byte> bytes{frame.data, frame.length};
    Fate fate = Fate::PASS;
    if (wire::parse(bytes, wire::IcrcCheck::VERIFY, packet) == wire::Verdict::ROCE && look)
      fate = look(now, packet, frame.length);
    if (fate == Fate::MARK) wire::set_ecn(frame.data, wire::Ecn::CE);
    if (fate == Fate::LOSE)
      inner_.tx_release({&frame, 1});
    else
      REQUIRE(inner_.tx_burst(now, {&frame, 1}) == 1);
    ++taken;
  }
  return taken;
}

engine::WorkerConfig paced_config(std::uint8_t index, std::uint32_t max_qps) {
  engine::WorkerConfig config;
  config.index = index;
  config.max_qps = max_qps;
  config.seed = index + 1u;
  config.line_rate = Rate::gbps(100);
  return config;
}

namespace {

port::MemoryWireConfig wire_config() {
  port::MemoryWireConfig config;
  config.transfer = port::Transfer::IN_PLACE;
  config.slots = 4096;
  return config;
}

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

}  // namespace

PacedRig::PacedRig(const engine::WorkerConfig& config_a, const engine::WorkerConfig& config_b,
                   IpPrefix address_a, IpPrefix address_b)
    : wire(wire_config()),
      tap_a(wire.first()),
      tap_b(wire.second()),
      a(config_a, tap_a, address_a),
      b(config_b, tap_b, address_b),
      source(a.buffer(kBufferBytes)),
      sink(b.buffer(kBufferBytes)) {}

std::pair<Qpn, Qpn> PacedRig::pair(std::uint32_t depth) {
  const Qpn qa = a.rc_qp(depth), qb = b.rc_qp(depth);
  a.connect(qa, b, qb);
  b.connect(qb, a, qa);
  return {qa, qb};
}

void PacedRig::write(Qpn qpn, std::uint32_t n) {
  const verbs::Sge sge{source.mr.addr, n, source.mr.lkey};
  REQUIRE(a.worker.post_send(qpn, write_wr(qpn.value(), sge, sink.mr)) ==
          transport::PostResult::OK);
}

void PacedRig::run(Instant until, const std::function<void()>& refill) {
  int stuck = 0;
  while (true) {
    bool busy = false;
    // A frame takes one turn of each side to be seen.
    for (int i = 0; i < 2; ++i) {
      busy |= a.worker.turn(now);
      busy |= b.worker.turn(now);
    }
    if (busy && refill) refill();
    const Instant next = std::min(a.worker.next_deadline(), b.worker.next_deadline());
    stuck = busy || next > now ? 0 : stuck + 1;
    REQUIRE(stuck < 1000);
    if (busy) continue;
    if (next > until) break;
    now = std::max(now, next);
  }
  now = std::max(now, until);
}

void PacedRig::give(Host& host, const Bytes& frame) {
  engine::PacketIo& from = &host == &a ? wire.second() : wire.first();
  std::array<engine::Frame, 1> slot;
  REQUIRE(from.tx_reserve(slot) == 1);
  std::memcpy(slot[0].data, frame.data(), frame.size());
  slot[0].length = static_cast<std::uint32_t>(frame.size());
  REQUIRE(from.tx_burst(now, slot) == 1);
}

}  // namespace roce::test
