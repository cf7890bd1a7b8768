#include "common/perf_side.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/stop.hpp"
#include "engine/clock.hpp"

namespace roce::apps {

using namespace traffic::perftest;

namespace {

/// A persistent server keeps the reports of that many runs.
constexpr std::size_t kMostRuns = 1000;
/// A run of that length shows that it is alive.
constexpr Duration kQuietTime = Duration::seconds(2);

engine::WorkerConfig worker_config(const PerfSideConfig& config) {
  engine::WorkerConfig worker;
  worker.index = config.worker_index;
  worker.max_qps = std::max(config.plan.qps, RunConfig{}.most_learnt_qps) + 8;
  worker.max_mrs = 2 * worker.max_qps;
  worker.seed = config.random;
  return worker;
}

}  // namespace

PerfSide::PerfSide(const NicEnd& end, const PerfSideConfig& config, PerfPrinter& printer)
    : end_(end), config_(config), printer_(printer), loop_(end, worker_config(config)) {}

bool PerfSide::stopped() const {
  return stop_requested() ||
         (config_.abandoned != nullptr && config_.abandoned->load(std::memory_order_acquire));
}

std::optional<cm::Socket> PerfSide::accept(cm::TcpListener& listener) {
  while (!stopped()) {
    (void)loop_.turn(Idle::SLEEP);
    if (auto socket = listener.accept()) return socket;
  }
  return std::nullopt;
}

int PerfSide::serve(cm::TcpListener listener) {
  bool passed = true;
  do {
    printer_.waiting(listener.port());
    auto socket = accept(listener);
    if (!socket) {
      if (config_.persistent) break;
      if (config_.abandoned == nullptr) errors_.emplace_back("interrupted before a client came");
      return 1;
    }
    passed = run(std::move(*socket)) && passed;
  } while (config_.persistent && !stop_requested());
  return passed ? 0 : 1;
}

int PerfSide::connect(const std::string& host, std::uint16_t tcp_port) {
  auto connector = cm::TcpConnector::open(host, tcp_port);
  if (!connector) {
    errors_.push_back(connector.error().to_string());
    return 2;
  }
  while (!stopped()) {
    const Instant now = loop_.turn(Idle::SLEEP);
    auto socket = connector->step(now);
    if (!socket) {
      errors_.push_back(socket.error().to_string());
      return 2;
    }
    if (*socket) return run(std::move(**socket)) ? 0 : 1;
  }
  errors_.emplace_back("interrupted before the server answered");
  return 1;
}

bool PerfSide::run(cm::Socket socket) {
  RunConfig config;
  config.plan = config_.plan;
  config.unit = config_.report.unit;
  config.random = config_.random + runs_.size() * 0x9e37'79b9;
  Run run(loop_.worker(), loop_.interface(), std::move(socket), config);
  run_began_ = next_line_ = std::nullopt;
  while (!run.finished()) {
    if (stopped()) {
      run.interrupt();
      break;
    }
    const Instant now = loop_.turn(Idle::YIELD);
    run.step(now);
    printer_.update(run);
    if (config_.progress) show_progress(now);
  }
  // The last acknowledgements of ours are still to be sent, or the peer would wait for them.
  const Instant until = engine::SteadyClock::now() + Duration::milliseconds(20);
  while (loop_.turn(Idle::YIELD) < until) {
  }
  printer_.end(run);
  validation_ = validation_line(run);
  if (runs_.size() == kMostRuns) runs_.erase(runs_.begin());
  runs_.push_back(run_json(run));
  perftest_json_ = apps::perftest_json(run, config_.report.unit);
  const std::size_t errors_before = errors_.size();
  if (run.state() == Run::State::FAILED) errors_.push_back(run.error().to_string());
  check_limits(run);
  if (config_.persistent && errors_.size() > errors_before)
    std::fprintf(stderr, "roce-perf: %s\n", errors_.back().c_str());
  return errors_.size() == errors_before;
}

void PerfSide::check_limits(const Run& run) {
  if (config_.plan.role != Role::CLIENT || run.state() != Run::State::PASSED) return;
  const ReportSettings& report = config_.report;
  for (const SizeResult& result : run.results()) {
    const auto shown = result.shown();
    if (!shown) continue;
    const double rate = in_rate_unit(shown->average_bytes_per_s, report.unit);
    if (report.least_bandwidth && rate < *report.least_bandwidth)
      errors_.push_back(fmt::format("size {}: the average of {:.2f} is below the limit of -w {}",
                                    result.size, rate, *report.least_bandwidth));
    const double mpps = shown->messages_per_s / 1e6;
    if (report.least_message_rate && mpps < *report.least_message_rate)
      errors_.push_back(fmt::format("size {}: the rate of {:.6f} Mpps is below the limit of -y {}",
                                    result.size, mpps, *report.least_message_rate));
  }
}

void PerfSide::show_progress(Instant now) {
  if (!run_began_) {
    run_began_ = now;
    next_line_ = now + kQuietTime;
  }
  if (now < *next_line_) return;
  next_line_ = now + Duration::seconds(1);
  const std::string line = line_.next(now, end_.io->counters(), loop_.worker().counters(),
                                      loop_.worker().worker_counters());
  if (!line.empty()) std::fprintf(stderr, "%.0f s: %s\n", (now - *run_began_).s(), line.c_str());
}

report::Json PerfSide::json() const {
  return {{"role", config_.plan.role == Role::CLIENT ? "client" : "server"},
          {"runs", runs_},
          {"counters", counters_json(loop_.worker(), *end_.io)}};
}

}  // namespace roce::apps
