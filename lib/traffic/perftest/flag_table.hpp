// The flags as tables: those that do something, and those of perftest that do not apply here.
// Read by options.cpp alone.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace roce::traffic::perftest {

enum class Group : std::uint8_t { TEST, CONNECTION, REPORT, PORT, GENERAL };
enum class Program : std::uint8_t { BOTH, PERF, ENDPOINT };

/// A flag that does something.
struct Flag {
  std::string_view name;      ///< long name
  char letter = 0;            ///< short name, or 0
  std::string_view argument;  ///< name of its argument; empty: a switch
  Group group{};
  Program program{};
  std::string_view help;
};
[[nodiscard]] std::span<const Flag> flags();
[[nodiscard]] std::string_view title_of(Group group);

enum class Treatment : std::uint8_t {
  REFUSED,  ///< it would change what is measured: exit 2 with the reason
  IGNORED,  ///< nothing depends on it: a note
};

/// A flag of perftest that does not apply.
struct ForeignFlag {
  std::string_view name;
  char letter = 0;
  std::string_view argument;
  Treatment treatment{};
  std::string_view reason;
};
[[nodiscard]] std::span<const ForeignFlag> foreign_flags();

}  // namespace roce::traffic::perftest
