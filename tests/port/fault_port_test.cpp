#include "port/fault_port.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "port/frames.hpp"
#include "port/memory/memory_wire.hpp"

using namespace roce::test;
using roce::Duration;
using roce::Instant;
using roce::engine::Frame;
using roce::port::FaultPort;
using roce::port::FaultRule;
using roce::port::MemoryWire;
using roce::wire::Opcode;
using Psns = std::vector<std::uint32_t>;

namespace {

std::vector<FaultRule> rules(std::initializer_list<const char*> texts) {
  std::vector<FaultRule> out;
  for (const char* text : texts) {
    auto rule = roce::port::parse_fault_rule(text);
    INFO(text);
    REQUIRE(rule);
    out.push_back(*rule);
  }
  return out;
}

Instant at_us(std::int64_t us) {
  return Instant{} + Duration::microseconds(us);
}

/// A wire whose first end has faults.
struct Faulty {
  explicit Faulty(std::initializer_list<const char*> texts, std::uint64_t seed = 1)
      : port(wire.first(), rules(texts), seed) {}
  MemoryWire wire{{.slots = 64}};
  FaultPort port;
};

}  // namespace

TEST_CASE("drop by PSN loses that packet once, and what is sent again passes", "[port][fault]") {
  Faulty f({"drop:psn=2"});
  send(f.port, at_us(0), psns(0, 4));
  send(f.port, at_us(0), psns(2, 2));
  CHECK(received_psns(f.wire.second(), at_us(0)) == Psns{0, 1, 3, 2, 3});
  CHECK(f.port.counts(0).picked == 1);
  CHECK(free_slots(f.port) == 64);
}

TEST_CASE("nth picks one occurrence, all picks each", "[port][fault]") {
  const auto three_times = [](FaultPort& port) {
    for (int i = 0; i < 3; ++i) send(port, at_us(0), psns(7, 1));
  };
  Faulty second({"drop:psn=7,nth=2"});
  three_times(second.port);
  CHECK(received_psns(second.wire.second(), at_us(0)) == Psns{7, 7});
  Faulty all({"drop:psn=7,nth=all"});
  three_times(all.port);
  CHECK(received_psns(all.wire.second(), at_us(0)).empty());
  CHECK(all.port.counts(0).picked == 3);
  Faulty two({"drop:psn=7,nth=all,max=2"});
  three_times(two.port);
  CHECK(received_psns(two.wire.second(), at_us(0)) == Psns{7});
}

TEST_CASE("a relative PSN counts from the first packet of each stream", "[port][fault]") {
  Faulty f({"drop:psn=+3"});
  send(f.port, at_us(0), psns(0xfffffe, 5));  // across the wrap: +3 is PSN 1
  CHECK(received_psns(f.wire.second(), at_us(0)) == Psns{0xfffffe, 0xffffff, 0, 2});
  std::vector<FrameSpec> other = psns(500, 5);
  for (FrameSpec& spec : other) spec.qpn = 0x13;
  send(f.port, at_us(0), other);
  CHECK(received_psns(f.wire.second(), at_us(0)) == Psns{500, 501, 502, 504});
}

TEST_CASE("requests and responses to one QP are separate streams", "[port][fault]") {
  Faulty f({"drop:psn=+1"});
  const FrameSpec specs[] = {{.psn = 100},
                             {.psn = 900, .opcode = Opcode::RC_ACKNOWLEDGE},
                             {.psn = 101},
                             {.psn = 901, .opcode = Opcode::RC_ACKNOWLEDGE},
                             {.psn = 102}};
  send(f.port, at_us(0), specs);
  CHECK(received_psns(f.wire.second(), at_us(0)) == Psns{100, 900, 102});
}

TEST_CASE("QP number and opcode narrow a rule", "[port][fault]") {
  Faulty f({"drop:qpn=0x13", "drop:opcode=RC_ACK,nth=2"});
  const FrameSpec specs[] = {{.psn = 1},
                             {.psn = 2, .qpn = 0x13},
                             {.psn = 3, .opcode = Opcode::RC_ACKNOWLEDGE},
                             {.psn = 4},
                             {.psn = 5, .opcode = Opcode::RC_ACKNOWLEDGE},
                             {.psn = 6, .opcode = Opcode::RC_ACKNOWLEDGE}};
  send(f.port, at_us(0), specs);
  CHECK(received_psns(f.wire.second(), at_us(0)) == Psns{1, 3, 4, 6});
  CHECK(f.port.counts(0).picked == 1);
  CHECK(f.port.counts(1).picked == 1);
}

TEST_CASE("corrupt breaks the ICRC of a packet that still finds its QP", "[port][fault]") {
  Faulty f({"corrupt:nth=all"});
  for (std::uint32_t psn = 0; psn < 200; ++psn) {
    const FrameSpec spec{.psn = psn,
                         .opcode = psn % 2 == 0 ? Opcode::RC_ACKNOWLEDGE : Opcode::RC_SEND_MIDDLE};
    send(f.port, at_us(0), {&spec, 1});
    CHECK(receive(f.wire.second(), at_us(0)) == std::vector<Arrival>{{psn, false}});
  }
  CHECK(f.port.counts(0).picked == 200);
}

TEST_CASE("duplicate sends a packet and its twin", "[port][fault]") {
  Faulty f({"duplicate:psn=5"});
  send(f.port, at_us(0), psns(4, 3));
  CHECK(receive(f.wire.second(), at_us(0)) ==
        std::vector<Arrival>{{4, true}, {5, true}, {5, true}, {6, true}});
  CHECK(free_slots(f.port) == 64);
}

TEST_CASE("mark sets CE where a packet is ECN-capable, and leaves others alone", "[port][fault]") {
  Faulty f({"mark:nth=all"});
  const FrameSpec specs[] = {{.psn = 1, .traffic_class = 2}, {.psn = 2}};
  send(f.port, at_us(0), specs);
  std::array<Frame, 2> frames;
  REQUIRE(f.wire.second().rx_burst(at_us(0), frames) == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    roce::wire::Packet packet;
    REQUIRE(roce::wire::parse({frames[i].data, frames[i].length}, roce::wire::IcrcCheck::VERIFY,
                              packet) == roce::wire::Verdict::ROCE);
    CHECK(packet.congestion_experienced() == (i == 0));
  }
  f.wire.second().rx_release(frames);
  CHECK(f.port.counts(0).picked == 1);
}

TEST_CASE("delay holds a packet for its time while others pass", "[port][fault]") {
  Faulty f({"delay:psn=1,by=50us"});
  std::array<Frame, 1> none;
  send(f.port, at_us(10), psns(0, 3));
  CHECK(received_psns(f.wire.second(), at_us(10)) == Psns{0, 2});
  CHECK(f.port.rx_burst(at_us(59), none) == 0);
  CHECK(received_psns(f.wire.second(), at_us(59)).empty());
  CHECK(f.port.rx_burst(at_us(60), none) == 0);  // a turn without traffic is enough
  CHECK(received_psns(f.wire.second(), at_us(60)) == Psns{1});
}

TEST_CASE("reorder lets later packets overtake", "[port][fault]") {
  Faulty f({"reorder:psn=1,by=2"});
  send(f.port, at_us(0), psns(0, 6));
  CHECK(received_psns(f.wire.second(), at_us(0)) == Psns{0, 2, 3, 1, 4, 5});
}

TEST_CASE("reorder does not wait for ever", "[port][fault]") {
  Faulty f({"reorder:psn=1"});
  std::array<Frame, 1> none;
  send(f.port, at_us(0), psns(0, 2));
  CHECK(received_psns(f.wire.second(), at_us(0)) == Psns{0});
  CHECK(f.port.rx_burst(at_us(0) + FaultPort::kReorderPatience, none) == 0);
  CHECK(received_psns(f.wire.second(), at_us(0)) == Psns{1});
}

TEST_CASE("each action works on received packets too", "[port][fault]") {
  Faulty f({"drop:dir=rx,psn=0", "corrupt:dir=rx,psn=1", "duplicate:dir=rx,psn=2",
            "reorder:dir=rx,psn=3,by=1", "delay:dir=rx,psn=5,by=5us"});
  send(f.wire.second(), at_us(0), psns(0, 7));
  CHECK(receive(f.port, at_us(0)) ==
        std::vector<Arrival>{{1, false}, {2, true}, {2, true}, {4, true}, {3, true}, {6, true}});
  CHECK(received_psns(f.port, at_us(5)) == Psns{5});
  CHECK(free_slots(f.wire.second()) == 64);
}

TEST_CASE("a rate is met, and the same seed gives the same faults", "[port][fault]") {
  const auto survivors = [](std::uint64_t seed) {
    Faulty f({"drop:rate=0.1", "duplicate:rate=0.05"}, seed);
    Psns all;
    for (std::uint32_t psn = 0; psn < 4000; ++psn) {
      send(f.port, at_us(0), psns(psn, 1));
      for (const std::uint32_t got : received_psns(f.wire.second(), at_us(0))) all.push_back(got);
    }
    CHECK(f.port.counts(0).picked > 320);  // 400 expected, 4 sigma is 76
    CHECK(f.port.counts(0).picked < 480);
    CHECK(all.size() == 4000 - f.port.counts(0).picked + f.port.counts(1).picked);
    return all;
  };
  const Psns once = survivors(1);
  CHECK(survivors(1) == once);
  CHECK(survivors(2) != once);
}

TEST_CASE("a rule's own seed is independent of the port's", "[port][fault]") {
  const auto survivors = [](std::uint64_t port_seed) {
    Faulty f({"drop:rate=0.5,seed=42"}, port_seed);
    send(f.port, at_us(0), psns(0, 40));
    return received_psns(f.wire.second(), at_us(0));
  };
  CHECK(survivors(1) == survivors(2));
}

TEST_CASE("what is not RoCE passes unharmed", "[port][fault]") {
  Faulty f({"drop"});
  std::array<Frame, 1> slot;
  REQUIRE(f.port.tx_reserve(slot) == 1);
  build_frame(slot[0], {});
  slot[0].data[12] = std::byte{0x08};
  slot[0].data[13] = std::byte{0x06};  // ARP
  REQUIRE(f.port.tx_burst(at_us(0), slot) == 1);
  std::array<Frame, 4> got;
  REQUIRE(f.wire.second().rx_burst(at_us(0), got) == 1);
  f.wire.second().rx_release(std::span(got).first(1));
}

TEST_CASE("what is held is given back in the end, and overflow passes", "[port][fault]") {
  MemoryWire wire{{.slots = 512}};
  {
    FaultPort port(wire.first(), rules({"delay:by=1s", "delay:dir=rx,by=1s"}));
    send(port, at_us(0), psns(0, 200));
    CHECK(port.counts(0).picked == FaultPort::kMaxHeld);
    CHECK(port.counts(0).no_room == 200 - FaultPort::kMaxHeld);
    CHECK(received_psns(wire.second(), at_us(0)).size() == 200 - FaultPort::kMaxHeld);
    send(wire.second(), at_us(0), psns(0, 10));
    CHECK(received_psns(port, at_us(0)).empty());
  }
  CHECK(free_slots(wire.first()) == 512);
  CHECK(free_slots(wire.second()) == 512);
}

namespace {

/// Takes only a few frames per call, as a busy device does.
class Reluctant final : public roce::engine::PacketIo {
 public:
  explicit Reluctant(PacketIo& inner) : inner_(inner) {}
  std::size_t rx_burst(Instant now, std::span<Frame> out) override {
    return inner_.rx_burst(now, out);
  }
  void rx_release(std::span<const Frame> frames) override { inner_.rx_release(frames); }
  std::size_t tx_reserve(std::span<Frame> out) override { return inner_.tx_reserve(out); }
  std::size_t tx_burst(Instant now, std::span<const Frame> frames) override {
    const std::size_t n = std::min(frames.size(), budget);
    budget -= n;
    return inner_.tx_burst(now, frames.first(n));
  }
  void tx_release(std::span<const Frame> frames) override { inner_.tx_release(frames); }
  const roce::engine::PortInfo& info() const override { return inner_.info(); }
  roce::engine::PortCounters counters() const override { return inner_.counters(); }
  std::size_t budget = 0;

 private:
  PacketIo& inner_;
};

}  // namespace

TEST_CASE("a fault happens once even when the port below refuses the frame", "[port][fault]") {
  MemoryWire wire{{.slots = 64}};
  Reluctant slow(wire.first());
  FaultPort port(slow, rules({"corrupt:psn=1", "drop:psn=2", "duplicate:psn=3"}));
  std::array<Frame, 1> none;
  send(port, at_us(0), psns(0, 5));
  CHECK(receive(wire.second(), at_us(0)).empty());
  std::vector<Arrival> all;
  for (int turn = 0; turn < 8; ++turn) {
    slow.budget = 1;
    CHECK(port.rx_burst(at_us(turn), none) == 0);
    for (const Arrival& a : receive(wire.second(), at_us(turn))) all.push_back(a);
  }
  CHECK(all == std::vector<Arrival>{{0, true}, {1, false}, {3, true}, {3, true}, {4, true}});
}
