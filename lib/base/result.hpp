// Result: how functions answer a caller, a profile or a command line that is wrong.
// Never used for what comes from the wire (that gets a verdict and a counter).
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace roce {

/// What is wrong, where, and how to mend it.
struct Error {
  std::string place;   ///< file:line:column, option, key or object; may be empty
  std::string reason;  ///< one sentence without a full stop
  std::string fix;     ///< what to do about it; may be empty

  /// "place: reason; fix", leaving out empty parts.
  [[nodiscard]] std::string to_string() const;
};

template <class T>
using Result = tl::expected<T, Error>;

/// Shorthand for the failing return of a function that yields a Result.
[[nodiscard]] inline tl::unexpected<Error> failure(std::string place, std::string reason,
                                                   std::string fix = {}) {
  return tl::make_unexpected(Error{std::move(place), std::move(reason), std::move(fix)});
}

}  // namespace roce
