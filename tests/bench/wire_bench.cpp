// What the wire codec costs, beside the bare loop: what copying and checksumming the same bytes
// costs at all. Frames rotate through 32 slots, as in a burst.
#include <isa-l/crc.h>

#include <cstring>
#include <vector>

#include "bench/bench.hpp"
#include "wire/build.hpp"
#include "wire/icrc.hpp"
#include "wire/packet.hpp"

namespace roce::bench {
namespace {

using namespace roce::wire;

constexpr std::size_t kBurst = 32;
constexpr std::size_t kStride = 4352;

PathHeaders path_headers(bool v6) {
  PathAttributes path;
  path.source_mac = {{2, 0, 0, 0, 0, 1}};
  path.destination_mac = {{2, 0, 0, 0, 0, 2}};
  path.source = v6 ? *IpAddress::from_string("fd00::1") : IpAddress::v4(198, 18, 0, 1);
  path.destination = v6 ? *IpAddress::from_string("fd00::2") : IpAddress::v4(198, 18, 0, 2);
  return make_path_headers(path);
}

/// Slots of a burst, and the payload that goes into them.
struct Slots {
  std::vector<std::byte> memory = std::vector<std::byte>(kBurst * kStride);
  std::vector<std::byte> source = std::vector<std::byte>(4096, std::byte{0x5a});
  [[nodiscard]] std::span<std::byte> operator[](std::size_t i) {
    return {memory.data() + (i % kBurst) * kStride, kStride};
  }
};

std::size_t build_write(std::span<std::byte> slot, const PathHeaders& path, std::uint32_t psn,
                        std::span<const std::byte> payload) {
  FrameBuilder builder(slot, path,
                       {.opcode = Opcode::RC_RDMA_WRITE_ONLY,
                        .dest_qpn = Qpn{0x11},
                        .psn = Psn{psn},
                        .ack_request = true},
                       payload.size());
  builder.reth().va.set(0x7f0000000000);
  builder.reth().rkey.set(0x1234);
  builder.reth().dma_length.set(static_cast<std::uint32_t>(payload.size()));
  std::memcpy(builder.payload().data(), payload.data(), payload.size());
  return builder.finish(static_cast<std::uint16_t>(psn));
}

/// Copies headers and payload, computes one CRC over all of it: the least that a packet can cost.
void bare_loop(benchmark::State& state) {
  const auto payload = static_cast<std::size_t>(state.range(0));
  Slots slots;
  std::vector<std::byte> headers(slots[0].size());
  const std::size_t length = build_write(headers, path_headers(false), 0, {});
  std::uint64_t sink = 0;
  for (auto _ : state)
    for (std::size_t i = 0; i < kBurst; ++i) {
      std::byte* frame = slots[i].data();
      std::memcpy(frame, headers.data(), length - kIcrcBytes);
      std::memcpy(frame + length - kIcrcBytes, slots.source.data(), payload);
      const std::uint32_t crc =
          crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(frame) + 14,
                          length - kIcrcBytes - 14 + payload);
      store_icrc(frame + length - kIcrcBytes + payload, crc);
      sink += crc;
    }
  benchmark::DoNotOptimize(sink);
  count_packets(state, kBurst, payload);
}

void build(benchmark::State& state, bool v6) {
  const auto payload = static_cast<std::size_t>(state.range(0));
  Slots slots;
  const PathHeaders path = path_headers(v6);
  std::uint32_t psn = 0;
  for (auto _ : state)
    for (std::size_t i = 0; i < kBurst; ++i)
      benchmark::DoNotOptimize(
          build_write(slots[i], path, psn++, std::span{slots.source}.first(payload)));
  count_packets(state, kBurst, payload);
}

/// The same with the payload copied while the ICRC is computed.
void build_copying(benchmark::State& state) {
  const auto payload = static_cast<std::size_t>(state.range(0));
  Slots slots;
  const PathHeaders path = path_headers(false);
  std::uint32_t psn = 0;
  for (auto _ : state)
    for (std::size_t i = 0; i < kBurst; ++i) {
      FrameBuilder builder(slots[i], path,
                           {.opcode = Opcode::RC_RDMA_WRITE_ONLY,
                            .dest_qpn = Qpn{0x11},
                            .psn = Psn{psn++},
                            .ack_request = true},
                           payload);
      builder.reth().dma_length.set(static_cast<std::uint32_t>(payload));
      benchmark::DoNotOptimize(builder.finish_copying(std::span{slots.source}.first(payload)));
    }
  count_packets(state, kBurst, payload);
}

void build_ack(benchmark::State& state) {
  Slots slots;
  const PathHeaders path = path_headers(false);
  std::uint32_t psn = 0;
  for (auto _ : state)
    for (std::size_t i = 0; i < kBurst; ++i) {
      FrameBuilder builder(
          slots[i], path,
          {.opcode = Opcode::RC_ACKNOWLEDGE, .dest_qpn = Qpn{0x11}, .psn = Psn{psn}}, 0);
      builder.aeth().syndrome = 0x1f;
      builder.aeth().msn.set(psn++);
      benchmark::DoNotOptimize(builder.finish());
    }
  count_packets(state, kBurst, 0);
}

void parse_frames(benchmark::State& state, bool v6, IcrcCheck check) {
  const auto payload = static_cast<std::size_t>(state.range(0));
  Slots slots;
  const PathHeaders path = path_headers(v6);
  std::size_t length = 0;
  for (std::uint32_t i = 0; i < kBurst; ++i)
    length = build_write(slots[i], path, i, std::span{slots.source}.first(payload));
  std::size_t good = 0;
  for (auto _ : state)
    for (std::size_t i = 0; i < kBurst; ++i) {
      Packet packet;
      good += parse(slots[i].first(length), check, packet) == Verdict::ROCE ? 1u : 0u;
      benchmark::DoNotOptimize(packet);
    }
  if (good % kBurst != 0) state.SkipWithError("a frame was refused");
  count_packets(state, kBurst, payload);
}

void icrc_only(benchmark::State& state) {
  const auto payload = static_cast<std::size_t>(state.range(0));
  Slots slots;
  const std::size_t length =
      build_write(slots[0], path_headers(false), 0, std::span{slots.source}.first(payload));
  for (std::size_t i = 1; i < kBurst; ++i) std::memcpy(slots[i].data(), slots[0].data(), length);
  for (auto _ : state)
    for (std::size_t i = 0; i < kBurst; ++i)
      benchmark::DoNotOptimize(icrc(slots[i].subspan(14, length - 14 - kIcrcBytes)));
  count_packets(state, kBurst, payload);
}

BENCHMARK(bare_loop)->Apply(payload_sizes);
BENCHMARK(icrc_only)->Name("icrc")->Apply(payload_sizes);
BENCHMARK_CAPTURE(build, v4, false)->Apply(payload_sizes);
BENCHMARK_CAPTURE(build, v6, true)->Apply(payload_sizes);
BENCHMARK(build_copying)->Apply(payload_sizes);
BENCHMARK(build_ack)->Apply(report_best);
BENCHMARK_CAPTURE(parse_frames, v4, false, IcrcCheck::VERIFY)
    ->Name("parse/v4")
    ->Apply(payload_sizes);
BENCHMARK_CAPTURE(parse_frames, v6, true, IcrcCheck::VERIFY)
    ->Name("parse/v6")
    ->Apply(payload_sizes);
BENCHMARK_CAPTURE(parse_frames, skip, false, IcrcCheck::SKIP)
    ->Name("parse/v4_skip_icrc")
    ->Arg(64)
    ->Apply(report_best);

}  // namespace
}  // namespace roce::bench
