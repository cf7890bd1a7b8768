// trace_rp: replays CNPs and sent bytes through a reaction point and tells what it did. Control
// side; the engine's own reaction point, on the times of the events.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/rate.hpp"
#include "base/result.hpp"
#include "congestion/reaction_point.hpp"

namespace roce::traffic {

/// One element of an events file.
struct TraceRpEvent {
  Instant at;
  bool cnp = false;  ///< a CNP; else so many bytes were sent
  std::uint64_t bytes = 0;
};

/// Reads [[t_us, "cnp"], [t_us, "sent", bytes], ...] and puts it in the order of time; events of
/// one time keep theirs. file: what errors call it; they name the element too.
[[nodiscard]] Result<std::vector<TraceRpEvent>> read_rp_events(std::string_view text,
                                                               const std::string& file);

/// What the reaction point did up to until, or up to the last event when that is later.
[[nodiscard]] std::vector<congestion::RpEvent> trace_rp(const congestion::DcqcnConfig& config,
                                                        Rate line,
                                                        const std::vector<TraceRpEvent>& events,
                                                        Instant until);

/// A table with one line per row.
[[nodiscard]] std::string trace_rp_table(const std::vector<congestion::RpEvent>& rows);
/// An object of schema "rocinante/roce-gen-trace-rp/1".
[[nodiscard]] nlohmann::ordered_json trace_rp_json(const congestion::DcqcnConfig& config, Rate line,
                                                   const std::vector<congestion::RpEvent>& rows);

}  // namespace roce::traffic
