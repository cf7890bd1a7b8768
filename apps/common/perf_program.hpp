// roce-perf as a function of its options: opens the port, runs one or both ends, reports.
#pragma once

#include "traffic/perftest/options.hpp"

namespace roce::apps {

/// Returns the exit status: 0 passed, 1 failed, 2 set-up.
[[nodiscard]] int run_perf(traffic::perftest::PerfOptions options);

/// Prints "PROGRAM: ERROR" to stderr and returns 2.
int complain(const char* program, const Error& error);

}  // namespace roce::apps
