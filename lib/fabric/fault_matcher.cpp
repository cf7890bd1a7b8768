#include "fabric/fault_matcher.hpp"

#include <cstring>

namespace roce::fabric {
namespace {

/// Requests and responses to one QP are numbered by different ends. Never 0.
std::uint64_t stream_key(const wire::Packet& packet) {
  const IpAddress to = packet.destination_ip();
  std::uint32_t words[4];
  std::memcpy(words, to.bytes.data(), sizeof words);
  const std::uint32_t address = packet.is_v6 ? words[0] ^ words[1] ^ words[2] ^ words[3] : words[3];
  return std::uint64_t{1} << 63 | std::uint64_t{address} << 25 | packet.dest_qpn().value() << 1 |
         (packet.info().is_response() ? 1u : 0u);
}

}  // namespace

FaultMatcher::FaultMatcher(FaultRule rule, std::uint64_t default_seed)
    : rule_(std::move(rule)),
      prng_(rule_.seed.value_or(default_seed)),
      streams_(rule_.needs_streams() ? 2 * kMaxStreams : 0) {}

bool FaultMatcher::meets(const wire::Packet& packet) {
  if (rule_.qpn && packet.dest_qpn() != *rule_.qpn) return false;
  if (rule_.source && packet.source_ip() != *rule_.source) return false;
  if (rule_.destination && packet.destination_ip() != *rule_.destination) return false;
  Stream* stream = nullptr;
  if (rule_.needs_streams()) {
    stream = stream_of(packet);
    if (stream == nullptr) {
      ++counts.no_room;
      return false;
    }
  }
  if (!rule_.opcodes.test(static_cast<std::size_t>(packet.opcode))) return false;
  if (rule_.psn) {
    const Psn wanted =
        rule_.psn_origin == PsnOrigin::FIRST_SEEN ? stream->first + *rule_.psn : Psn{*rule_.psn};
    if (packet.psn() != wanted) return false;
  }
  if (rule_.rate < 1.0 && !prng_.chance(rule_.rate)) return false;
  if (rule_.nth != 0 && ++stream->met != rule_.nth) return false;
  return rule_.max == 0 || counts.picked < rule_.max;
}

void FaultMatcher::corrupt(std::byte* frame, const wire::Packet& packet) {
  const auto start = static_cast<std::uint32_t>(packet.extensions - frame);
  const auto end = static_cast<std::uint32_t>(packet.l3 - frame) + packet.l3_bytes;
  const std::uint32_t bit = prng_.below((end - start) * 8);
  frame[start + bit / 8] ^= std::byte{1} << (bit % 8);
}

FaultMatcher::Stream* FaultMatcher::stream_of(const wire::Packet& packet) {
  const std::uint64_t key = stream_key(packet);
  const std::size_t size = streams_.size();  // a power of two, at most half of it in use
  std::size_t at = (key * std::size_t{0x9e3779b97f4a7c15}) >> 40 & (size - 1);
  for (std::size_t probes = 0; probes < kMaxStreams; ++probes, at = (at + 1) & (size - 1)) {
    Stream& stream = streams_[at];
    if (stream.key == key) return &stream;
    if (stream.key == 0) {
      stream = {key, packet.psn(), 0};
      return &stream;
    }
  }
  return nullptr;
}

}  // namespace roce::fabric
