#include "port/memory/memory_wire.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <set>
#include <thread>
#include <vector>

#include "base/prng.hpp"
#include "port/frames.hpp"

using roce::Instant;
using roce::engine::Frame;
using roce::engine::kBurst;
using roce::engine::PacketIo;
using roce::port::MemoryWire;
using roce::port::Transfer;
using roce::test::free_slots;

namespace {

constexpr Instant kNow{};

void fill(Frame& frame, roce::Prng& prng, std::uint32_t length) {
  frame.length = length;
  for (std::uint32_t i = 0; i < length; ++i) frame.data[i] = static_cast<std::byte>(prng());
}

Transfer both_transfers() {
  return GENERATE(Transfer::IN_PLACE, Transfer::STREAMED);
}

}  // namespace

TEST_CASE("a frame arrives at the other end with its bytes", "[port][memory]") {
  const Transfer transfer = both_transfers();
  MemoryWire wire{{.transfer = transfer}};
  roce::Prng prng{7};
  std::array<std::vector<std::byte>, 3> sent;
  std::array<Frame, 3> tx;
  REQUIRE(wire.first().tx_reserve(tx) == 3);
  std::uint32_t length = 60;
  for (Frame& frame : tx) {
    CHECK(frame.capacity >= roce::wire::kMaxFrameBytes);
    fill(frame, prng, length);
    length += 1000;
  }
  for (std::size_t i = 0; i < 3; ++i) sent[i].assign(tx[i].data, tx[i].data + tx[i].length);
  REQUIRE(wire.first().tx_burst(kNow, tx) == 3);

  std::array<Frame, kBurst> rx;
  CHECK(wire.first().rx_burst(kNow, rx) == 0);
  REQUIRE(wire.second().rx_burst(kNow, rx) == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(rx[i].length == tx[i].length);
    CHECK(std::vector<std::byte>(rx[i].data, rx[i].data + rx[i].length) == sent[i]);
    CHECK((rx[i].data == tx[i].data) == (transfer == Transfer::IN_PLACE));
  }
  wire.second().rx_release(std::span(rx).first(3));
  CHECK(wire.first().counters().opackets == 3);
  CHECK(wire.first().counters().obytes == 60 + 1060 + 2060);
  CHECK(wire.second().counters().ipackets == 3);
  CHECK(wire.second().counters().ibytes == 60 + 1060 + 2060);
}

TEST_CASE("slots come back whichever way they left", "[port][memory]") {
  MemoryWire wire{{.slots = 64, .transfer = Transfer::IN_PLACE}};
  PacketIo& a = wire.first();
  PacketIo& b = wire.second();
  REQUIRE(free_slots(a) == 64);
  REQUIRE(free_slots(b) == 64);

  std::array<Frame, kBurst> frames, received;
  REQUIRE(a.tx_reserve(frames) == kBurst);
  for (Frame& frame : frames) frame.length = 60;
  REQUIRE(a.tx_burst(kNow, std::span(frames).first(20)) == 20);
  CHECK(free_slots(a) == 32);
  a.tx_release(std::span(frames).last(12));
  CHECK(free_slots(a) == 44);
  REQUIRE(b.rx_burst(kNow, received) == 20);
  CHECK(free_slots(a) == 44);
  b.rx_release(std::span(received).first(20));
  CHECK(free_slots(a) == 64);
  CHECK(free_slots(b) == 64);
}

TEST_CASE("streamed buffers come back at once, their slots when the peer releases them",
          "[port][memory]") {
  MemoryWire wire{{.slots = 64, .transfer = Transfer::STREAMED}};
  PacketIo& a = wire.first();
  std::array<Frame, kBurst> frames, received;
  for (int round = 0; round < 2; ++round) {
    REQUIRE(a.tx_reserve(frames) == kBurst);
    for (Frame& frame : frames) frame.length = 60;
    REQUIRE(a.tx_burst(kNow, frames) == kBurst);
    CHECK(free_slots(a) == 64);
  }
  REQUIRE(a.tx_reserve(frames) == kBurst);
  CHECK(a.tx_burst(kNow, frames) == 0);  // all 64 slots are on the way
  REQUIRE(wire.second().rx_burst(kNow, received) == kBurst);
  wire.second().rx_release(std::span(received).first(5));
  CHECK(a.tx_burst(kNow, frames) == 5);
  a.tx_release(std::span(frames).last(27));
  wire.second().rx_release(std::span(received).last(27));
  CHECK(free_slots(a) == 64);
}

TEST_CASE("a receiver that stands still stops the sender without loss", "[port][memory]") {
  MemoryWire wire{{.slots = 40, .transfer = both_transfers()}};
  std::uint8_t next = 0;
  std::array<Frame, kBurst> frames;
  for (std::size_t taken = 1; taken != 0;) {
    const std::size_t n = wire.first().tx_reserve(frames);
    for (std::size_t i = 0; i < n; ++i) {
      frames[i].length = 60;
      frames[i].data[0] = static_cast<std::byte>(next + i);
    }
    taken = wire.first().tx_burst(kNow, std::span(frames).first(n));
    wire.first().tx_release(std::span(frames).subspan(taken, n - taken));
    next = static_cast<std::uint8_t>(next + taken);
  }
  CHECK(next == 40);
  std::uint8_t expected = 0;
  while (const std::size_t n = wire.second().rx_burst(kNow, frames)) {
    for (std::size_t i = 0; i < n; ++i) CHECK(frames[i].data[0] == std::byte{expected++});
    wire.second().rx_release(std::span(frames).first(n));
  }
  CHECK(expected == 40);
}

TEST_CASE("no two lent slots overlap", "[port][memory]") {
  MemoryWire wire{{.slots = 128, .transfer = both_transfers()}};
  std::vector<Frame> all(128);
  REQUIRE(wire.first().tx_reserve(all) == 128);
  std::set<const std::byte*> starts;
  for (const Frame& frame : all) starts.insert(frame.data);
  REQUIRE(starts.size() == 128);
  const std::byte* end = nullptr;
  for (const std::byte* start : starts) {
    CHECK(start >= end);
    end = start + all[0].capacity;
  }
  wire.first().tx_release(all);
}

TEST_CASE("two threads exchange frames both ways with equal bytes and no loss", "[port][memory]") {
  constexpr std::uint64_t kFrames = 60'000;
  MemoryWire wire{{.slots = 96, .transfer = both_transfers()}};
  // Content is a function of direction and sequence number, so the receiver can check each byte.
  const auto run = [](PacketIo& port, std::uint64_t send_seed, std::uint64_t expect_seed) {
    std::uint64_t sent = 0, received = 0, wrong = 0;
    std::array<Frame, kBurst> frames;
    while (sent < kFrames || received < kFrames) {
      const std::size_t want = std::min<std::uint64_t>(kFrames - sent, 1 + sent % kBurst);
      const std::size_t n = port.tx_reserve(std::span(frames).first(want));
      for (std::size_t i = 0; i < n; ++i) {
        roce::Prng prng{send_seed + sent + i};
        fill(frames[i], prng, 60 + prng.below(1000));
      }
      const std::size_t taken = port.tx_burst(kNow, std::span(frames).first(n));
      port.tx_release(std::span(frames).subspan(taken, n - taken));
      sent += taken;
      const std::size_t m = port.rx_burst(kNow, frames);
      for (std::size_t i = 0; i < m; ++i, ++received) {
        roce::Prng prng{expect_seed + received};
        bool equal = frames[i].length == 60 + prng.below(1000);
        for (std::uint32_t k = 0; equal && k < frames[i].length; ++k)
          equal = frames[i].data[k] == static_cast<std::byte>(prng());
        if (!equal) ++wrong;
      }
      port.rx_release(std::span(frames).first(m));
    }
    return wrong;
  };
  std::uint64_t wrong_second = 1;
  std::thread second([&] { wrong_second = run(wire.second(), 1'000'000, 0); });
  const std::uint64_t wrong_first = run(wire.first(), 0, 1'000'000);
  second.join();
  CHECK(wrong_first == 0);
  CHECK(wrong_second == 0);
  CHECK(free_slots(wire.first()) == 96);
  CHECK(free_slots(wire.second()) == 96);
}
