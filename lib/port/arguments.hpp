// Splitting text like a shell does, and counting hugepages: what both EAL and preflight need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace roce::port {

/// Splits at white space; "…" and '…' keep it. An unclosed quote ends with the text.
[[nodiscard]] std::vector<std::string> split_arguments(std::string_view text);

/// Bytes of hugepages that nobody has taken, over all page sizes.
[[nodiscard]] std::uint64_t free_hugepage_bytes();

/// Hugepages below this are not worth starting with: buffers of one port do not fit.
inline constexpr std::uint64_t kUsefulHugepageBytes = std::uint64_t{128} << 20;

}  // namespace roce::port
