// PerfSide: one end of roce-perf: a worker on one end of a port, and runs on it, one after the
// other. Used by one thread.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cm/tcp.hpp"
#include "common/engine_loop.hpp"
#include "common/perf_json.hpp"
#include "common/perf_printer.hpp"
#include "report/counter_line.hpp"
#include "traffic/perftest/run.hpp"

namespace roce::apps {

struct PerfSideConfig {
  traffic::perftest::Plan plan;
  traffic::perftest::ReportSettings report;
  std::uint8_t worker_index = 0;
  std::uint64_t random = 1;
  bool persistent = false;
  bool progress = false;  ///< a line a second on stderr, from the third second on
  /// Looked at beside the stop signals: the other end in this process has given up.
  const std::atomic<bool>* abandoned = nullptr;
};

class PerfSide {
 public:
  PerfSide(const NicEnd& end, const PerfSideConfig& config, PerfPrinter& printer);

  /// Serves one client, or one after the other. Returns the exit status.
  [[nodiscard]] int serve(cm::TcpListener listener);
  /// Runs the test as client.
  [[nodiscard]] int connect(const std::string& host, std::uint16_t tcp_port);

  /// What ended badly, one line each.
  [[nodiscard]] const std::vector<std::string>& errors() const { return errors_; }
  /// The JSON of this side, with all its runs.
  [[nodiscard]] report::Json json() const;
  [[nodiscard]] const report::Json& perftest_json() const { return perftest_json_; }
  /// What data validation found in the last run; empty without it.
  [[nodiscard]] const std::string& validation() const { return validation_; }

 private:
  [[nodiscard]] std::optional<cm::Socket> accept(cm::TcpListener& listener);
  [[nodiscard]] bool run(cm::Socket socket);
  void check_limits(const traffic::perftest::Run& run);
  void show_progress(Instant now);
  [[nodiscard]] bool stopped() const;

  NicEnd end_;
  PerfSideConfig config_;
  PerfPrinter& printer_;
  EngineLoop loop_;
  report::Json runs_ = report::Json::array();
  report::Json perftest_json_;
  std::string validation_;
  std::vector<std::string> errors_;
  report::CounterLine line_;
  std::optional<Instant> run_began_, next_line_;
};

}  // namespace roce::apps
