// What the benchmarks of roce_bench share.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace roce::bench {

/// Reports packets per second (items), payload bytes per second, and nanoseconds per packet.
inline void count_packets(benchmark::State& state, std::size_t packets_per_iteration,
                          std::size_t payload_bytes) {
  const auto packets = static_cast<std::int64_t>(state.iterations()) *
                       static_cast<std::int64_t>(packets_per_iteration);
  state.SetItemsProcessed(packets);
  state.SetBytesProcessed(packets * static_cast<std::int64_t>(payload_bytes));
  state.counters["packet"] = benchmark::Counter(
      static_cast<double>(packets), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// Adds the aggregate "best" over repetitions: the others had company on the core.
inline void report_best(benchmark::internal::Benchmark* b) {
  b->ComputeStatistics(
      "best", [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); });
}
/// The payload sizes of every benchmark, in bytes.
inline void payload_sizes(benchmark::internal::Benchmark* b) {
  for (const std::int64_t bytes : {64, 256, 1024, 4096}) b->Arg(bytes);
  report_best(b);
}

}  // namespace roce::bench
