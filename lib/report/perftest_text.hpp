// perftest_text: results in the columns of perftest's own tables, so that scripts which read those
// read ours. Text only; nothing is printed here.
#pragma once

#include <string>

#include "traffic/perftest/meter.hpp"
#include "traffic/perftest/options.hpp"
#include "traffic/perftest/qp_set.hpp"

namespace roce::report {

using traffic::perftest::RateUnit;

/// Column heads of a bandwidth test: BW in MiB/s or Gb/s, message rate in millions a second.
[[nodiscard]] std::string bandwidth_heading(RateUnit unit);
[[nodiscard]] std::string bandwidth_row(const traffic::perftest::BandwidthResult& result,
                                        RateUnit unit);

/// Column heads of a latency test, in microseconds; by duration there are fewer columns.
[[nodiscard]] std::string latency_heading(traffic::perftest::Until until);
[[nodiscard]] std::string latency_row(const traffic::perftest::LatencyResult& result,
                                      traffic::perftest::Until until);

/// The block in front of the results: what is run, with what depths and MTU.
[[nodiscard]] std::string run_heading(const traffic::perftest::Plan& plan, const std::string& port,
                                      std::uint64_t listed_qps);

enum class Side : std::uint8_t { LOCAL, REMOTE };
/// " local address: LID 0000 QPN 0x000011 PSN 0x761bc7 ..." and a GID line below it.
[[nodiscard]] std::string address_lines(Side side, const traffic::perftest::QpAddress& address,
                                        traffic::perftest::Verb verb);

/// The dashes between blocks.
[[nodiscard]] std::string rule();

}  // namespace roce::report
