#include "traffic/perftest/data_plane.hpp"

#include <cstring>

namespace roce::traffic::perftest {
namespace {

Plan with_size(Plan plan, std::uint64_t size) {
  plan.size = size;
  return plan;
}

}  // namespace

DataPlane::DataPlane(QpSet& qps, const Plan& plan, std::uint64_t size)
    : run_(qps, with_size(plan, size)) {
  if (plan.is_bw()) {
    if (plan.sends()) {
      sender_.emplace(run_);
      sender_state_ = Step::RUNNING;
    }
    if (plan.verb() == Verb::SEND && plan.receives()) {
      receiver_.emplace(run_);
      receiver_state_ = Step::RUNNING;
    }
    return;
  }
  if (plan.verb() == Verb::WRITE)
    ping_pong_.emplace<WriteLat>(run_);
  else if (plan.verb() == Verb::SEND)
    ping_pong_.emplace<SendLat>(run_);
  else if (plan.sends())
    ping_pong_.emplace<ReadLat>(run_);
}

Step DataPlane::prepare() {
  if (receiver_) return receiver_->prepare();
  if (auto* send_lat = std::get_if<SendLat>(&ping_pong_)) return send_lat->prepare();
  return Step::RUNNING;
}

Step DataPlane::step(Instant now) {
  if (run_.failure) return Step::FAILED;
  const Step ping_pong = std::visit(
      [&](auto& stepper) {
        if constexpr (std::is_same_v<std::decay_t<decltype(stepper)>, std::monostate>)
          return Step::DONE;
        else
          return stepper.step(now);
      },
      ping_pong_);
  if (sender_ && sender_state_ == Step::RUNNING) sender_state_ = sender_->step(now);
  if (receiver_ && receiver_state_ == Step::RUNNING) receiver_state_ = receiver_->step(now);
  if (run_.failure) return Step::FAILED;
  const bool done =
      ping_pong == Step::DONE && sender_state_ == Step::DONE && receiver_state_ == Step::DONE;
  return done ? Step::DONE : Step::RUNNING;
}

void DataPlane::check_exposed(std::optional<std::uint64_t> operations) {
  const Plan& plan = run_.plan;
  if (!plan.validates() || !plan.receives()) return;
  for (std::uint32_t lane = 0; lane < plan.qps; ++lane) {
    if (plan.test == Test::WRITE_BW) check_write(lane, operations);
    if (plan.verb() == Verb::ATOMIC) check_atomic(lane, operations);
  }
}

void DataPlane::check_write(std::uint32_t lane, std::optional<std::uint64_t> operations) {
  const Plan& plan = run_.plan;
  const std::span<const std::byte> buffer = run_.qps.lanes()[lane].exposed;
  const std::uint64_t slots = ring_slots(plan.size);
  const bool lossy = plan.transport != verbs::QpType::RC;
  // That many are sure to have been written; from there on the first empty place ends them.
  const std::uint64_t sure = operations.value_or(plan.qps) / plan.qps;
  bool ended = false;
  std::uint64_t end = 0;
  for (std::uint64_t slot = 0; slot < slots; ++slot) {
    const std::uint64_t begin = slot * ring_step(plan.size);
    const auto place = buffer.subspan(begin, plan.size);
    end = begin + plan.size;
    if (lossy) {
      for (std::uint64_t i = 0; i < place.size(); ++i) check_lossy_byte(lane, begin + i, place[i]);
      ++run_.verdict.messages;
    } else {
      if (slot >= sure && !find_nonzero(place)) ended = true;
      if (!ended)
        check_place(lane, begin, place);
      else
        check_untouched(lane, begin, place);
    }
    const std::uint64_t next = slot + 1 < slots ? begin + ring_step(plan.size) : buffer.size();
    check_untouched(lane, end, buffer.subspan(end, next - end));
  }
}

void DataPlane::check_place(std::uint32_t lane, std::uint64_t begin,
                            std::span<const std::byte> place) {
  ++run_.verdict.messages;
  run_.verdict.bytes += place.size();
  if (const auto bad = find_mismatch(place, run_.plan.pattern_seed, lane, begin))
    mismatch(lane, begin + *bad, pattern_byte(run_.plan.pattern_seed, lane, begin + *bad),
             place[*bad], "byte");
}

void DataPlane::check_untouched(std::uint32_t lane, std::uint64_t begin,
                                std::span<const std::byte> place) {
  if (const auto bad = find_nonzero(place))
    mismatch(lane, begin + *bad, std::byte{0}, place[*bad], "byte outside of all messages");
}

void DataPlane::check_lossy_byte(std::uint32_t lane, std::uint64_t offset, std::byte found) {
  const std::byte expected = pattern_byte(run_.plan.pattern_seed, lane, offset);
  if (found == expected)
    ++run_.verdict.bytes;
  else if (found == std::byte{0})
    ++run_.verdict.lost;
  else
    mismatch(lane, offset, expected, found, "byte");
}

void DataPlane::mismatch(std::uint32_t lane, std::uint64_t offset, std::byte expected,
                         std::byte found, std::string what) {
  run_.verdict.add({lane, 0, offset, std::to_integer<std::uint64_t>(expected),
                    std::to_integer<std::uint64_t>(found), std::move(what)});
}

void DataPlane::check_atomic(std::uint32_t lane, std::optional<std::uint64_t> operations) {
  const std::span<const std::byte> buffer = run_.qps.lanes()[lane].exposed;
  std::uint64_t word = 0;
  std::memcpy(&word, buffer.data(), sizeof word);
  ++run_.verdict.messages;
  run_.verdict.bytes += buffer.size();
  if (operations && word != *operations && word * run_.plan.qps != *operations)
    run_.verdict.add({lane, 0, 0, *operations, word, "final value"});
  check_untouched(lane, sizeof word, buffer.subspan(sizeof word));
}

std::optional<BandwidthResult> DataPlane::bandwidth() const {
  if (sender_) return sender_->result();
  if (receiver_) return receiver_->result();
  return std::nullopt;
}

std::optional<LatencyResult> DataPlane::latency() const {
  return std::visit(
      [](const auto& stepper) -> std::optional<LatencyResult> {
        if constexpr (std::is_same_v<std::decay_t<decltype(stepper)>, std::monostate>)
          return std::nullopt;
        else
          return stepper.result();
      },
      ping_pong_);
}

const Histogram* DataPlane::histogram() const {
  return std::visit(
      [](const auto& stepper) -> const Histogram* {
        if constexpr (std::is_same_v<std::decay_t<decltype(stepper)>, std::monostate>)
          return nullptr;
        else
          return &stepper.histogram();
      },
      ping_pong_);
}

}  // namespace roce::traffic::perftest
