#include "base/rate.hpp"

#include <array>
#include <charconv>
#include <string>

namespace roce {

Result<Rate> Rate::from_string(std::string_view text) {
  struct Unit {
    std::string_view name;
    double times, over;  // to get Mb/s; a division where a factor would not be exact
  };
  constexpr std::array<Unit, 5> kUnits = {
      {{"bps", 1, 1e6}, {"kbps", 1, 1e3}, {"Mbps", 1, 1}, {"Gbps", 1e3, 1}, {"Tbps", 1e6, 1}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const bool finite = error == std::errc{} && number >= 0 && number <= 1e15;
  for (const Unit& known : kUnits)
    if (finite && unit == known.name) return Rate{number * known.times / known.over};
  return failure("", '\'' + std::string{text} + "' is no rate",
                 "write a number and bps, kbps, Mbps, Gbps or Tbps, such as 40Gbps");
}

}  // namespace roce
