// Trajectories recorded by the reference model, which is no part of the repository.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "congestion/reaction_point.hpp"

namespace roce::test {

/// What record_trajectories.py prints for these arguments, one object each; empty (and the test
/// case marked as skipped) when the model or python3 is absent.
[[nodiscard]] std::vector<nlohmann::json> recorded(const std::string& arguments);

/// The preset and knobs of a recording.
[[nodiscard]] congestion::DcqcnConfig config_of(const nlohmann::json& recording);

/// Our own trajectory for a recording's events.
[[nodiscard]] std::vector<congestion::RpEvent> replay(const nlohmann::json& recording);

/// Compares both, event by event: the same events, times and counters, and rates and alpha within
/// tolerance (relative). Returns what differs first, or nothing.
[[nodiscard]] std::string difference(const nlohmann::json& recording,
                                     const std::vector<congestion::RpEvent>& ours,
                                     double tolerance);

}  // namespace roce::test
