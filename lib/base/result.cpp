#include "base/result.hpp"

namespace roce {

std::string Error::to_string() const {
  std::string text = place;
  if (!text.empty() && !reason.empty()) text += ": ";
  text += reason;
  if (!fix.empty()) text += "; " + fix;
  return text;
}

}  // namespace roce
