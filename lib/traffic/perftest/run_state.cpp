#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "traffic/perftest/data_plane.hpp"

namespace roce::traffic::perftest {
namespace {

/// What has arrived when the peer ends may still wait in a queue of ours.
constexpr Duration kGrace = Duration::milliseconds(200);

/// How much earlier than ours a run by duration may end at the peer, whose clock starts by itself.
constexpr Duration kSkew = Duration::seconds(1);

struct Advice {
  std::string_view reason, fix;
};

Advice advice_on(verbs::WcStatus status) {
  switch (status) {
    case verbs::WcStatus::RETRY_EXC_ERR:
      return {
          "the peer does not answer",
          "see whether it still runs, whether UDP port 4791 passes both ways, and whether frames "
          "of the MTU do"};
    case verbs::WcStatus::RNR_RETRY_EXC_ERR:
      return {"the peer posts no receives", "see whether it still runs"};
    case verbs::WcStatus::REM_ACCESS_ERR:
      return {"the peer refused access to its memory", "give both ends the same test, -s and -q"};
    case verbs::WcStatus::REM_INV_REQ_ERR:
      return {"the peer calls the request invalid", "give both ends the same test, -s and -o"};
    case verbs::WcStatus::REM_OP_ERR:
      return {"the peer failed while it carried out the request", "see its own messages"};
    case verbs::WcStatus::LOC_LEN_ERR:
      return {"a message longer than the receive buffer has come", "give both ends the same -s"};
    case verbs::WcStatus::WR_FLUSH_ERR:
      return {"the QP has failed earlier", ""};
    default:
      return {"the work request failed", ""};
  }
}

}  // namespace

Step RunState::fail(const verbs::Wc& wc, std::uint32_t lane) {
  if (failure) return Step::FAILED;
  peer_silent = wc.status == verbs::WcStatus::RETRY_EXC_ERR ||
                wc.status == verbs::WcStatus::RNR_RETRY_EXC_ERR;
  const Advice advice = advice_on(wc.status);
  failure = Error{fmt::format("QP {} ({:#08x})", lane, qps.lanes()[lane].ours.qpn.value()),
                  fmt::format("{}: completion status {} ({})", advice.reason,
                              static_cast<unsigned>(wc.status), verbs::name_of(wc.status)),
                  std::string(advice.fix)};
  return Step::FAILED;
}

Step RunState::fail(transport::PostResult result, std::uint32_t lane) {
  if (!failure)
    failure =
        Error{fmt::format("QP {} ({:#08x})", lane, qps.lanes()[lane].ours.qpn.value()),
              fmt::format("a work request was not taken: {}", transport::name_of(result)), ""};
  return Step::FAILED;
}

void RunState::check_message(std::uint32_t lane, std::uint64_t message,
                             std::span<const std::byte> data, std::uint64_t first_offset) {
  ++verdict.messages;
  verdict.bytes += data.size();
  const auto bad = find_mismatch(data, plan.pattern_seed, lane, first_offset);
  if (!bad) return;
  verdict.add(
      {lane, message, *bad,
       std::to_integer<std::uint64_t>(pattern_byte(plan.pattern_seed, lane, first_offset + *bad)),
       std::to_integer<std::uint64_t>(data[*bad]), "byte"});
}

void RunState::check_received(std::uint32_t lane, std::uint64_t message,
                              std::span<const std::byte> place, std::uint32_t byte_len) {
  const std::uint64_t grh = place.size() - plan.size;
  const std::uint64_t length = byte_len < grh ? 0 : byte_len - grh;
  if (plan.until != Until::PEER_ENDS && length != plan.size)
    verdict.add({lane, message, 0, plan.size, length, "message length"});
  check_message(lane, message, place.subspan(grh, std::min(length, plan.size)), 0);
}

void RunState::check_original(std::uint32_t lane, std::uint64_t message,
                              std::span<const std::byte> word) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t original = 0;
  std::memcpy(&original, word.data(), sizeof original);
  ++verdict.messages;
  verdict.bytes += sizeof original;
  if (original != message) verdict.add({lane, message, 0, message, original, "original value"});
}

std::optional<Step> RunState::ended(Instant now, RunClock::Phase phase) {
  if (phase == RunClock::Phase::OVER) return Step::DONE;
  if (!peer_ended) return std::nullopt;
  if (plan.until == Until::DURATION && clock.start() &&
      now - *clock.start() + kSkew < plan.duration) {
    failure = Error{"", "the peer has ended before the run's time was over",
                    "give both ends the same -D, and see whether the peer still runs"};
    peer_silent = true;
    return Step::FAILED;
  }
  if (plan.until != Until::ITERATIONS) return Step::DONE;
  if (!peer_ended_at) peer_ended_at = now;
  if (now < *peer_ended_at + kGrace) return std::nullopt;
  failure = Error{"", "the peer has ended before all messages were exchanged",
                  "give both ends the same -n and -s"};
  return Step::FAILED;
}

bool RunState::stalled(Instant now) {
  if (plan.transport == verbs::QpType::RC) return false;
  if (!last_progress) last_progress = now;
  // A server waits for its first message as long as it takes.
  if (now - *last_progress < kPatience || (plan.role == Role::SERVER && !clock.started()))
    return false;
  failure = Error{"",
                  fmt::format("no message has come for {} s; {} does not resend what is lost",
                              kPatience.ns() / 1'000'000'000, verbs::name_of(plan.transport)),
                  "run it again, or take -c RC where packets get lost"};
  return true;
}

}  // namespace roce::traffic::perftest
