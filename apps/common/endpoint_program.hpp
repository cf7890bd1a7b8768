// roce-endpoint as a function of its options: one worker that serves any number of perftest's
// clients, several at a time, until it is told to stop.
#pragma once

#include "traffic/perftest/options.hpp"

namespace roce::apps {

/// Returns the exit status: 0 stopped by a signal, 2 set-up.
[[nodiscard]] int run_endpoint(traffic::perftest::EndpointOptions options);

}  // namespace roce::apps
