// For each operation and each packet of a 1-, 2-, 3- and 9-packet message: lose, duplicate, delay
// and corrupt each request, response and ACK, alone and in pairs. A message goes before and one
// behind.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "support/pair/pair.hpp"

using namespace roce;
using namespace roce::test;

namespace {

enum class Fault : std::uint8_t { LOSE, DUPLICATE, DELAY, CORRUPT };
constexpr Fault kFaults[] = {Fault::LOSE, Fault::DUPLICATE, Fault::DELAY, Fault::CORRUPT};

struct Hit {
  Way way;
  std::uint32_t index;
  Fault fault;
};

std::string text_of(const Hit& hit) {
  constexpr std::string_view kNames[] = {"lose", "duplicate", "delay", "corrupt"};
  return fmt::format("{} frame {} {}", kNames[static_cast<std::size_t>(hit.fault)], hit.index,
                     hit.way == Way::A_TO_B ? "A->B" : "B->A");
}

struct Subject {
  Kind kind;
  std::uint32_t packets;
  Psn psn;
};

struct Outcome {
  std::string verdict;
  std::uint32_t frames[2];
  transport::Counters a, b;
  bool request_lost = false;
};

Outcome play(const Subject& subject, std::span<const Hit> hits, bool trace) {
  PairConfig config;
  config.psn_a = subject.psn;
  config.arena_bytes = 12 * 1024;
  config.depth = 8;
  config.trace = trace;
  Outcome outcome;
  Pair pair{config, [&](const Crossing& crossing) {
              Treatment treatment;
              for (const Hit& hit : hits) {
                if (hit.way != crossing.way || hit.index != crossing.index) continue;
                const bool gone = hit.fault == Fault::LOSE || hit.fault == Fault::CORRUPT;
                if (gone && !crossing.packet->info().is_response()) outcome.request_lost = true;
                if (hit.fault == Fault::LOSE) treatment.drop = true;
                if (hit.fault == Fault::DUPLICATE) treatment.copies = 2;
                // Past the next two frames.
                if (hit.fault == Fault::DELAY) treatment.delay = Pair::kFrameTime * 5 / 2;
                if (hit.fault == Fault::CORRUPT) treatment.corrupt = true;
              }
              return treatment;
            }};
  const std::uint32_t length = subject.packets == 1 ? 100 : (subject.packets - 1) * 256 + 57;
  if (takes_receive(subject.kind)) pair.post_receive(Way::A_TO_B, length);
  pair.post_receive(Way::A_TO_B, 30);
  pair.post(Way::A_TO_B, Kind::WRITE, 40);
  pair.post(Way::A_TO_B, subject.kind, length);
  pair.post(Way::A_TO_B, Kind::SEND, 30);
  pair.run();
  pair.expect_all_done();
  outcome.verdict = pair.verdict();
  outcome.frames[0] = pair.frames(Way::A_TO_B);
  outcome.frames[1] = pair.frames(Way::B_TO_A);
  outcome.a = pair.a.counters;
  outcome.b = pair.b.counters;
  return outcome;
}

/// Plays, and on failure plays again with a trace for the message. Checks that what was lost was
/// sent again: a run that heals without is a check that does not look.
void judge(const Subject& subject, std::span<const Hit> hits) {
  const Outcome outcome = play(subject, hits, false);
  std::string wrong = outcome.verdict;
  if (wrong.empty() && outcome.request_lost && outcome.a.retransmitted_packets == 0)
    wrong = "a request was lost and nothing was sent again";
  if (wrong.empty()) return;
  std::string what = fmt::format("{} of {} packets from PSN {:#x}", name_of(subject.kind),
                                 subject.packets, subject.psn.value());
  for (const Hit& hit : hits) what += ", " + text_of(hit);
  FAIL_CHECK(what << "\n" << wrong << "\n" << play(subject, hits, true).verdict);
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const Kind kind : kKinds)
    for (const std::uint32_t packets : {1u, 2u, 3u, 9u})
      for (const std::uint32_t psn : {0u, 0xfffffeu})
        if (!is_atomic(kind) || packets == 1) all.push_back({kind, packets, Psn{psn}});
  return all;
}

std::vector<Hit> hits_of(const Subject& subject) {
  const Outcome clean = play(subject, {}, false);
  REQUIRE(clean.verdict == "");
  REQUIRE(clean.a.retransmitted_packets == 0);
  std::vector<Hit> hits;
  for (const Way way : {Way::A_TO_B, Way::B_TO_A})
    for (std::uint32_t i = 0; i < clean.frames[static_cast<std::size_t>(way)]; ++i)
      for (const Fault fault : kFaults) hits.push_back({way, i, fault});
  return hits;
}

}  // namespace

TEST_CASE("each single fault at each packet heals", "[scenario][single]") {
  std::size_t runs = 0;
  for (const Subject& subject : subjects())
    for (const Hit& hit : hits_of(subject)) {
      judge(subject, {&hit, 1});
      ++runs;
    }
  WARN(runs << " schedules with one fault");
  CHECK(runs > 1000);
}

TEST_CASE("each pair of faults heals", "[scenario][pairs]") {
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t kStride = 37;  // a sample: the release build runs them all
#else
  constexpr std::size_t kStride = 1;
#endif
  std::size_t runs = 0, number = 0;
  for (const Subject& subject : subjects()) {
    std::vector<Hit> hits = hits_of(subject);
    // What is sent again can be hit too.
    for (const Fault fault : kFaults)
      for (std::uint32_t k = 0; k < 3; ++k) {
        const Outcome clean = play(subject, {}, false);
        hits.push_back({Way::A_TO_B, clean.frames[0] + k, fault});
        hits.push_back({Way::B_TO_A, clean.frames[1] + k, fault});
      }
    for (std::size_t i = 0; i < hits.size(); ++i)
      for (std::size_t j = i + 1; j < hits.size(); ++j) {
        if (hits[i].way == hits[j].way && hits[i].index == hits[j].index) continue;
        if (++number % kStride != 0) continue;
        const Hit both[] = {hits[i], hits[j]};
        judge(subject, both);
        ++runs;
      }
  }
  WARN(runs << " schedules with two faults");
  CHECK(runs > 1000);
}
