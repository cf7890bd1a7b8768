// Fuzzes perftest's TCP exchange: arbitrary bytes, split arbitrarily, at a session of either role.
// It must end or wait, never break, and never send more than the script has.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "cm/perftest/session.hpp"

using namespace roce::cm::perftest;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

/// Answers what the session asks of the application; false when it asks nothing.
bool answer(Session& session) {
  switch (session.phase()) {
    case Phase::NEED_KEYS:
      session.supply_keys({});
      return true;
    case Phase::CONNECT:
      require(!session.peer_keys().empty());
      session.connected();
      return true;
    case Phase::POST_RECEIVES:
      session.receives_posted();
      return true;
    case Phase::RUN:
      if (session.waits_for_peer()) return false;
      session.run_done();
      return true;
    default:
      return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  SessionConfig config;
  config.role = data[0] & 1 ? Role::CLIENT : Role::SERVER;
  config.shape = static_cast<Shape>((data[0] >> 1) % 5);
  config.direction = data[1] & 1 ? Direction::BOTH_WAYS : Direction::ONE_WAY;
  config.measured = data[1] & 2 ? Measured::BY_DURATION : Measured::BY_ITERATIONS;
  config.all_sizes = (data[1] & 4) != 0;
  config.sizes = config.all_sizes ? 23 : 1;
  config.qps = data[2] % 5;
  if (config.role == Role::CLIENT && config.qps == 0) config.qps = 1;
  const std::size_t chunk = 1 + data[3] % 120;

  Session session{config};
  std::size_t sent = 0;
  auto rest = std::as_bytes(std::span{data, size}).subspan(4);
  while (!rest.empty()) {
    while (answer(session)) {
    }
    sent += session.output().size();
    session.consume_output(session.output().size());
    const auto piece = rest.first(std::min(chunk, rest.size()));
    session.on_bytes(piece);
    rest = rest.subspan(piece.size());
    // In lock-step nothing is said that the peer's bytes did not call for.
    require(sent <= 4096 + 4 * size + 16 * 1024);
  }
  while (answer(session)) {
  }
  session.on_closed();
  for (int i = 0; i < 10'000 && answer(session); ++i) {
  }
  require(session.phase() == Phase::FAILED || session.phase() == Phase::DONE);
  return 0;
}
