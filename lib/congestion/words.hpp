// Lists of names in error messages. Known to the control-side sources of this folder only.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace roce::congestion {

/// "a, b, c". (fmt::join of string views trips g++ 12's overflow warning.)
[[nodiscard]] inline std::string list_of(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

}  // namespace roce::congestion
