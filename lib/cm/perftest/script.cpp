// The order of swaps of each test's exchange, as perftest 4.5 to 26.x has it.
#include "cm/perftest/session.hpp"

namespace roce::cm::perftest {

void Session::script_opening() {
  add(Step::VERSION);
  add(Step::SYSTEM_CYCLE);
  add(Step::SYSTEM_LINE);
  add(Step::MTU);
  add(Step::FIRST_KEYS);
  add(Step::CONNECT);
}

void Session::script_rest() {
  const bool sends = config_.shape == Shape::SEND_BW || config_.shape == Shape::SEND_LAT;
  // The one-sided latency tests swap once more before they bring the QPs up; doing it after serves
  // as well, as the peer waits for our half of it.
  if (sends || config_.shape == Shape::WRITE_LAT || config_.shape == Shape::ONE_SIDED_LAT)
    add(Step::SYNC);
  add(Step::KEYS);
  if (!sends) add(Step::SYNC);
  script_runs();
  if (config_.shape != Shape::WRITE_LAT) {
    add(Step::CLOSE);
    add(Step::DONE_TAIL);
  }
  add(Step::END);
}

void Session::script_runs() {
  const bool both = config_.direction == Direction::BOTH_WAYS;
  const bool server = config_.role == Role::SERVER;
  const bool reports = config_.measured == Measured::BY_ITERATIONS;
  switch (config_.shape) {
    case Shape::ONE_SIDED_BW:
      if (server && !both) {
        add(Step::PASSIVE_RUN);
      } else {
        for (std::uint32_t i = 0; i < config_.sizes; ++i) {
          if (both) add(Step::SYNC);
          add(Step::RUN);
          if (both && config_.all_sizes) add(Step::SYNC);
          if (both) add(Step::REPORT);
        }
      }
      if (!both) {
        add(Step::SYNC);
        add(Step::REPORT);
      }
      break;
    case Shape::SEND_BW:
      for (std::uint32_t i = 0; i < config_.sizes; ++i) {
        if (server || both) add(Step::POST_RECEIVES);
        add(Step::SYNC);
        add(Step::RUN);
        if (both && reports) add(Step::REPORT);
        if (config_.all_sizes) add(Step::SYNC);
      }
      break;
    case Shape::WRITE_LAT:
      for (std::uint32_t i = 0; i < config_.sizes; ++i) add(Step::RUN);
      break;
    case Shape::ONE_SIDED_LAT:
      if (server)
        add(Step::PASSIVE_RUN);
      else
        for (std::uint32_t i = 0; i < config_.sizes; ++i) add(Step::RUN);
      break;
    case Shape::SEND_LAT:
      for (std::uint32_t i = 0; i < config_.sizes; ++i) {
        add(Step::POST_RECEIVES);
        add(Step::SYNC);
        add(Step::RUN);
      }
      break;
  }
}

}  // namespace roce::cm::perftest
