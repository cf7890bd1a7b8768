#include "port/arguments.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>

namespace roce::port {

std::vector<std::string> split_arguments(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) out.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) out.push_back(std::move(word));
  return out;
}

std::uint64_t free_hugepage_bytes() {
  constexpr std::string_view kPrefix = "hugepages-";
  std::uint64_t total = 0;
  std::error_code error;
  // Entries are named like "hugepages-2048kB".
  for (const auto& entry : std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    std::uint64_t kib = 0, pages = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), kib);
    std::ifstream(entry.path() / "free_hugepages") >> pages;
    total += pages * kib * 1024;
  }
  return total;
}

}  // namespace roce::port
