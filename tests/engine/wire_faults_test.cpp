// Ports that refuse or run out: nothing is lost and order is kept.
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/prng.hpp"
#include "engine/rig.hpp"
#include "engine/siege.hpp"

using namespace roce;
using test::Bytes;
using transport::PostResult;

namespace {

/// Passes to another port, but takes and lends only so many frames a call.
class StingyPort final : public engine::PacketIo {
 public:
  explicit StingyPort(engine::PacketIo& inner) : inner_(inner) {}

  std::size_t rx_burst(Instant now, std::span<engine::Frame> out) override {
    return inner_.rx_burst(now, out);
  }
  void rx_release(std::span<const engine::Frame> frames) override { inner_.rx_release(frames); }
  std::size_t tx_reserve(std::span<engine::Frame> out) override {
    return inner_.tx_reserve(out.first(std::min(out.size(), lends)));
  }
  std::size_t tx_burst(Instant now, std::span<const engine::Frame> frames) override {
    const auto some = frames.first(std::min(frames.size(), takes));
    for (const engine::Frame& frame : some)
      sent.emplace_back(frame.data, frame.data + frame.length);
    return inner_.tx_burst(now, some);
  }
  void tx_release(std::span<const engine::Frame> frames) override {
    released += frames.size();
    inner_.tx_release(frames);
  }
  [[nodiscard]] const engine::PortInfo& info() const override { return inner_.info(); }
  [[nodiscard]] engine::PortCounters counters() const override { return inner_.counters(); }

  std::size_t takes = 0;
  std::size_t lends = engine::kBurst;
  std::size_t released = 0;
  std::vector<Bytes> sent;

 private:
  engine::PacketIo& inner_;
};

std::uint32_t psn_of(const Bytes& frame) {
  wire::Packet packet;
  REQUIRE(wire::parse(frame, wire::IcrcCheck::VERIFY, packet) == wire::Verdict::ROCE);
  return packet.psn().value();
}

/// Two hosts; the first one's port is stingy.
struct StingyRig {
  StingyRig()
      : wire({.transfer = port::Transfer::IN_PLACE}),
        port(wire.first()),
        a({.index = 0}, port, {IpAddress::v4(198, 18, 0, 1), 24}),
        b({.index = 1}, wire.second(), {IpAddress::v4(198, 18, 0, 2), 24}) {
    a.connect(qa, b, qb);
    b.connect(qb, a, qa);
  }
  void post(std::uint64_t wr_id) {
    const verbs::Sge sge{source.mr.addr, 64, source.mr.lkey};
    REQUIRE(a.worker.post_send(qa, test::write_wr(wr_id, sge, sink.mr)) == PostResult::OK);
  }
  [[nodiscard]] const engine::WorkerCounters& counters() const {
    return a.worker.worker_counters();
  }

  port::MemoryWire wire;
  StingyPort port;
  test::Host a, b;
  Qpn qa = a.rc_qp(), qb = b.rc_qp();
  test::Host::Buffer& source = a.buffer(64);
  test::Host::Buffer& sink = b.buffer(64);
  Instant now = Instant::from_ns(1'000'000);
};

}  // namespace

TEST_CASE("what a port refuses stays first in line, in order, and is counted once",
          "[engine][worker]") {
  StingyRig rig;
  for (std::uint64_t i = 0; i < 20; ++i) rig.post(i);
  CHECK_FALSE(rig.a.worker.turn(rig.now));
  CHECK(rig.counters().tx_refused == 20);
  CHECK_FALSE(rig.a.worker.turn(rig.now));
  CHECK(rig.counters().tx_refused == 20);

  rig.port.takes = 3;
  (void)rig.a.worker.turn(rig.now);
  CHECK(rig.port.sent.size() == 3);
  CHECK(rig.counters().tx_refused == 20);
  for (std::uint64_t i = 20; i < 40; ++i) rig.post(i);
  for (int i = 0; i < 20; ++i) {
    (void)rig.a.worker.turn(rig.now);
    (void)rig.b.worker.turn(rig.now);
  }
  REQUIRE(rig.port.sent.size() == 40);
  for (std::uint32_t i = 0; i < 40; ++i) CHECK(psn_of(rig.port.sent[i]) == 100 + i);
  CHECK(rig.a.cq.size() == 40);
  CHECK(rig.a.worker.counters().retransmitted_packets == 0);
}

TEST_CASE("a port that refuses at random loses and reorders nothing", "[engine][worker]") {
  StingyRig rig;
  Prng prng{3};
  std::uint64_t posted = 0;
  for (int turn = 0; turn < 20'000; ++turn) {
    rig.port.takes = prng.below(5);
    rig.port.lends = turn % 200 < 100 ? prng.below(5) : 0;  // 100 turns use up what it lent
    while (posted < 2000 && posted - rig.a.cq.size() < 64 && prng.chance(0.3)) rig.post(posted++);
    (void)rig.a.worker.turn(rig.now);
    (void)rig.b.worker.turn(rig.now);
  }
  REQUIRE(posted == 2000);
  CHECK(rig.a.cq.size() == 2000);
  REQUIRE(rig.port.sent.size() == 2000);
  for (std::uint32_t i = 0; i < 2000; ++i) REQUIRE(psn_of(rig.port.sent[i]) == 100 + i);
  CHECK(rig.counters().tx_no_buffer > 0);
}

TEST_CASE("a worker that ends gives back the slots it held", "[engine][worker]") {
  port::MemoryWire wire{{.transfer = port::Transfer::IN_PLACE}};
  StingyPort port{wire.first()};
  {
    engine::Worker worker{{}, port};
    const auto id = worker.add_interface({port.info().mac,
                                          {{IpAddress::v4(198, 18, 0, 1), 24}},
                                          {},
                                          {},
                                          engine::NeighbourDuty::OURS});
    CHECK_FALSE(worker.resolve(id, IpAddress::v4(198, 18, 0, 2), Instant::from_ns(0)));
    CHECK_FALSE(worker.turn(Instant::from_ns(0)));
  }
  CHECK(port.released == engine::kBurst);
}

TEST_CASE("a QP that is destroyed with frames in the line and on the wire harms nobody",
          "[engine][worker]") {
  StingyRig rig;
  for (std::uint64_t i = 0; i < 20; ++i) rig.post(i);
  (void)rig.a.worker.turn(rig.now);  // built, refused
  rig.a.worker.destroy_qp(rig.qa);
  rig.port.takes = engine::kBurst;
  for (int i = 0; i < 5; ++i) {
    (void)rig.a.worker.turn(rig.now);
    (void)rig.b.worker.turn(rig.now);
  }
  CHECK(rig.port.sent.size() == 20);
  CHECK(rig.counters().unknown_qpn > 0);  // the ACKs
  CHECK(rig.a.worker.next_deadline().is_never());
  CHECK(rig.a.cq.size() == 0);
}
