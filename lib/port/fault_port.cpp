#include "port/fault_port.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "wire/build.hpp"
#include "wire/ecn.hpp"

namespace roce::port {

using engine::Frame;
using engine::kBurst;

namespace {

constexpr std::size_t kCopyBytes = 9216 + 64;

}  // namespace

FaultPort::FaultPort(engine::PacketIo& inner, std::vector<FaultRule> rules, std::uint64_t seed)
    : inner_(inner) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    Lane& lane = rules[i].direction == FaultDirection::TX ? tx_ : rx_;
    lane.active = true;
    rules_.emplace_back(std::move(rules[i]), seed * 1'000'003 + i);
  }
  for (Lane* lane : {&tx_, &rx_}) {
    lane->ready.reserve(kReady);
    lane->held.reserve(kMaxHeld);
  }
  if (rx_.active) {
    copies_.bytes.resize(kCopies * kCopyBytes);
    for (std::uint32_t i = 0; i < kCopies; ++i) copies_.free.push_back(i);
  }
}

FaultPort::~FaultPort() {
  for (const Held& held : tx_.held) inner_.tx_release({&held.frame, 1});
  for (const Held& held : rx_.held) rx_release({&held.frame, 1});
  inner_.tx_release(tx_.ready);
  rx_release(rx_.ready);
}

std::size_t FaultPort::tx_burst(Instant now, std::span<const Frame> frames) {
  if (!tx_.active) return inner_.tx_burst(now, frames);
  release_due(now, tx_);
  flush(now);
  std::size_t taken = 0;
  // Room for the frame, its twin and all that it may set free.
  while (taken < frames.size() && tx_.ready.size() + tx_.held.size() + 2 <= kReady)
    take(now, tx_, FaultDirection::TX, frames[taken++]);
  flush(now);
  return taken;
}

std::size_t FaultPort::rx_burst(Instant now, std::span<Frame> out) {
  if (tx_.active) {
    release_due(now, tx_);
    flush(now);
  }
  if (!rx_.active) return inner_.rx_burst(now, out);
  release_due(now, rx_);
  if (rx_.ready.size() < out.size() && rx_.ready.size() + rx_.held.size() + 2 * kBurst <= kReady) {
    std::array<Frame, kBurst> arrived;
    const std::size_t n =
        inner_.rx_burst(now, std::span(arrived).first(std::min(out.size(), kBurst)));
    for (std::size_t i = 0; i < n; ++i) take(now, rx_, FaultDirection::RX, arrived[i]);
  }
  const std::size_t n = std::min(out.size(), rx_.ready.size());
  const auto end = rx_.ready.begin() + static_cast<std::ptrdiff_t>(n);
  std::copy(rx_.ready.begin(), end, out.begin());
  rx_.ready.erase(rx_.ready.begin(), end);
  return n;
}

void FaultPort::rx_release(std::span<const Frame> frames) {
  if (copies_.free.size() == kCopies || !rx_.active) return inner_.rx_release(frames);
  for (const Frame& frame : frames) {
    if (is_copy(frame))
      copies_.free.push_back(
          static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(frame.handle)));
    else
      inner_.rx_release({&frame, 1});
  }
}

/// Decides over one frame and moves it on.
void FaultPort::take(Instant now, Lane& lane, FaultDirection direction, const Frame& frame) {
  wire::Packet packet;
  fabric::FaultMatcher* active = pick(direction, frame, packet);
  if (active == nullptr) return pass(lane, frame);
  const FaultRule& rule = active->rule();
  switch (rule.action) {
    case FaultAction::DROP:
      ++active->counts.picked;
      if (direction == FaultDirection::TX)
        inner_.tx_release({&frame, 1});
      else
        rx_release({&frame, 1});
      return;
    case FaultAction::CORRUPT:
      active->corrupt(frame.data, packet);
      ++active->counts.picked;
      return pass(lane, frame);
    case FaultAction::MARK:
      if ((packet.traffic_class & 3) != 0) {
        wire::set_ecn(frame.data, wire::Ecn::CE);
        ++active->counts.picked;
      }
      return pass(lane, frame);
    case FaultAction::DUPLICATE: {
      Frame twin;
      const bool copied = copy(direction, frame, twin);
      ++(copied ? active->counts.picked : active->counts.no_room);
      pass(lane, frame);
      if (copied) lane.ready.push_back(twin);
      return;
    }
    case FaultAction::DELAY:
    case FaultAction::REORDER:
      if (lane.held.size() == kMaxHeld) {
        ++active->counts.no_room;
        return pass(lane, frame);
      }
      ++active->counts.picked;
      if (rule.action == FaultAction::DELAY)
        lane.held.push_back({frame, now + rule.by_time, 0});
      else
        lane.held.push_back({frame, now + kReorderPatience, rule.by_frames});
      return;
  }
}

/// Sends a frame on, and behind it what waited for this many frames to pass.
void FaultPort::pass(Lane& lane, const Frame& frame) {
  lane.ready.push_back(frame);
  std::erase_if(lane.held, [&](Held& held) {
    if (held.frames_left == 0 || --held.frames_left != 0) return false;
    lane.ready.push_back(held.frame);
    return true;
  });
}

void FaultPort::release_due(Instant now, Lane& lane) {
  if (lane.held.empty()) return;
  // In the order of their times, then of their arrival.
  for (;;) {
    const auto first = std::min_element(lane.held.begin(), lane.held.end(),
                                        [](const Held& a, const Held& b) { return a.due < b.due; });
    if (first == lane.held.end() || first->due > now || lane.ready.size() == kReady) return;
    lane.ready.push_back(first->frame);
    lane.held.erase(first);
  }
}

void FaultPort::flush(Instant now) {
  std::size_t sent = 0;
  while (sent < tx_.ready.size()) {
    const std::size_t n = inner_.tx_burst(
        now, std::span(tx_.ready).subspan(sent, std::min(kBurst, tx_.ready.size() - sent)));
    if (n == 0) break;
    sent += n;
  }
  tx_.ready.erase(tx_.ready.begin(), tx_.ready.begin() + static_cast<std::ptrdiff_t>(sent));
}

fabric::FaultMatcher* FaultPort::pick(FaultDirection direction, const Frame& frame,
                                      wire::Packet& packet) {
  if (wire::parse({frame.data, frame.length}, wire::IcrcCheck::SKIP, packet) != wire::Verdict::ROCE)
    return nullptr;
  fabric::FaultMatcher* picked = nullptr;
  // Each rule sees each packet, so that its counts do not depend on the rules before it.
  for (fabric::FaultMatcher& active : rules_)
    if (active.rule().direction == direction && active.meets(packet) && picked == nullptr)
      picked = &active;
  return picked;
}

bool FaultPort::copy(FaultDirection direction, const Frame& frame, Frame& twin) {
  if (direction == FaultDirection::TX) {
    if (inner_.tx_reserve({&twin, 1}) != 1) return false;
  } else {
    if (copies_.free.empty() || frame.length > kCopyBytes) return false;
    const std::uint32_t slot = copies_.free.back();
    copies_.free.pop_back();
    twin = {copies_.bytes.data() + slot * kCopyBytes, 0, kCopyBytes,
            reinterpret_cast<void*>(std::uintptr_t{slot})};
  }
  twin.length = frame.length;
  std::memcpy(twin.data, frame.data, frame.length);
  return true;
}

bool FaultPort::is_copy(const Frame& frame) const {
  const std::byte* begin = copies_.bytes.data();
  return std::greater_equal<>{}(frame.data, begin) &&
         std::less<>{}(frame.data, begin + copies_.bytes.size());
}

}  // namespace roce::port
