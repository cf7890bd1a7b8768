// Arguments: a command line split into flags and words by the flag table, and the readers of single
// flags. Read by options.cpp and port_options.cpp; the programs see options.hpp only.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "traffic/perftest/flag_table.hpp"
#include "traffic/perftest/options.hpp"

namespace roce::traffic::perftest {

class Arguments {
 public:
  /// Fails on unknown, refused, incomplete and repeated flags.
  [[nodiscard]] static Result<Arguments> parse(const std::vector<std::string>& text,
                                               Program program);

  [[nodiscard]] bool has(const std::string& flag) const { return values_.contains(flag); }
  [[nodiscard]] std::optional<std::string> text(const std::string& flag) const;
  [[nodiscard]] std::vector<std::string> texts(const std::string& flag) const;
  /// None when the flag is not given; fails when it is no number or outside the range.
  [[nodiscard]] Result<std::optional<std::uint64_t>> number(const std::string& flag,
                                                            std::uint64_t least,
                                                            std::uint64_t most) const;
  /// Overwrites target when the flag is given.
  template <class T>
  [[nodiscard]] Result<void> set(const std::string& flag, std::uint64_t least, std::uint64_t most,
                                 T& target) const {
    static_assert(std::numeric_limits<T>::is_integer);
    const auto value = number(flag, least, most);
    if (!value) return tl::make_unexpected(value.error());
    if (*value) target = static_cast<T>(**value);
    return {};
  }
  [[nodiscard]] Result<void> set_real(const std::string& flag, std::optional<double>& target) const;

  [[nodiscard]] const std::vector<std::string>& positional() const { return positional_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positional_;
  std::vector<std::string> notes_;
};

/// "-s" where there is a letter, else "--size".
[[nodiscard]] std::string shown_name(const std::string& flag);

[[nodiscard]] Result<void> apply_port(const Arguments& arguments, PortSettings& port);
using ApplyPlan = Result<void> (*)(const Arguments&, Plan&);
/// Reads --serve and makes a plan of each service by apply_plan.
[[nodiscard]] Result<void> apply_services(const Arguments& arguments, EndpointOptions& options,
                                          ApplyPlan apply_plan);
[[nodiscard]] std::string version_text(const std::string& program);

}  // namespace roce::traffic::perftest
