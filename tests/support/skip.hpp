// Skipping a Catch2 test case (version 2 has no word for it).
#pragma once

#include <string>

namespace roce::test {

/// Marks the running test case as skipped; return from it right after. reason: what is missing.
void skip(const std::string& reason);

}  // namespace roce::test
