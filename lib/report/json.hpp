// json: results and counters as JSON, under the keys of docs/json.md. Values only; the caller
// writes them out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/packet_io.hpp"
#include "engine/worker_counters.hpp"
#include "traffic/perftest/meter.hpp"
#include "traffic/perftest/pattern.hpp"
#include "traffic/perftest/plan.hpp"
#include "transport/counters.hpp"

namespace roce::report {

/// Keeps the order in which keys are added.
using Json = nlohmann::ordered_json;

/// All counters by their rxe and mlx5 names.
[[nodiscard]] Json to_json(const transport::Counters& counters);
/// Frames by verdict under "frames", rejects under "rejects" (only those that occurred), the rest
/// by name.
[[nodiscard]] Json to_json(const engine::WorkerCounters& counters);
[[nodiscard]] Json to_json(const engine::PortCounters& counters);

[[nodiscard]] Json to_json(const traffic::perftest::BandwidthResult& result);
/// histogram: nanoseconds; gives the percentiles, also where single samples are not kept.
[[nodiscard]] Json to_json(const traffic::perftest::LatencyResult& result,
                           const Histogram& histogram);
[[nodiscard]] Json to_json(const traffic::perftest::Verdict& verdict);
/// The parameters of a run.
[[nodiscard]] Json to_json(const traffic::perftest::Plan& plan);

/// Writes value with two spaces of indent and a line's end to a file, or to standard output for
/// "-".
[[nodiscard]] Result<void> write_json(const std::string& file, const Json& value);

}  // namespace roce::report
