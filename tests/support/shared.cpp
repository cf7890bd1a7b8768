#include "support/shared.hpp"

#include <cstdlib>

#include "support/skip.hpp"

namespace roce::test {

std::optional<std::filesystem::path> shared(const std::string& relative) {
  const char* set = std::getenv("ROCE_SHARED");
  const std::filesystem::path root =
      set != nullptr ? std::filesystem::path{set}
                     : std::filesystem::path{ROCE_SOURCE_ROOT}.parent_path() / "shared";
  const auto path = root / relative;
  if (std::filesystem::exists(path)) return path;
  skip(path.string() + " is absent; ROCE_SHARED names the folder that holds it");
  return std::nullopt;
}

}  // namespace roce::test
