// KnobValue: a knob as a report shows it.
#pragma once

#include <string>
#include <string_view>

namespace roce::congestion {

struct KnobValue {
  std::string_view name;
  std::string_view unit;  ///< "us", "Mb/s", "1/1024", ...; empty for words and counts
  std::string text;
};

}  // namespace roce::congestion
