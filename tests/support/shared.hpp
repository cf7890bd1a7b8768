// Captures and vectors that are not part of the repository.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace roce::test {

/// A file or folder below $ROCE_SHARED (default: "shared" beside the source tree), or nothing when
/// it is absent. Then the test case is marked as skipped, so return from it.
[[nodiscard]] std::optional<std::filesystem::path> shared(const std::string& relative);

}  // namespace roce::test
