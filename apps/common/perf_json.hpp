// The JSON reports of roce-perf and roce-endpoint: docs/json.md.
#pragma once

#include "common/nic.hpp"
#include "engine/worker.hpp"
#include "report/json.hpp"
#include "traffic/perftest/options.hpp"
#include "traffic/perftest/run.hpp"

namespace roce::apps {

/// One finished run: plan, peer, results, validation, outcome.
[[nodiscard]] report::Json run_json(const traffic::perftest::Run& run);
/// All counters of a worker and its port.
[[nodiscard]] report::Json counters_json(const engine::Worker& worker,
                                         const engine::PacketIo& port);
/// What each --fault rule did; an empty list without rules.
[[nodiscard]] report::Json faults_json(const port::OpenPort& port);
/// A client's results under the keys of perftest's --out_json (which in 4.5 writes no valid JSON).
[[nodiscard]] report::Json perftest_json(const traffic::perftest::Run& run,
                                         traffic::perftest::RateUnit unit);

}  // namespace roce::apps
