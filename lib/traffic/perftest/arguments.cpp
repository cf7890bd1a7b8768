#include "traffic/perftest/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <numeric>

namespace roce::traffic::perftest {
namespace {

namespace po = boost::program_options;

constexpr std::string_view kWords = "words";

bool belongs(const Flag& flag, Program program) {
  return flag.program == Program::BOTH || flag.program == program;
}

/// Boost's form of a name: "size,s".
std::string boost_name(std::string_view name, char letter) {
  return letter == 0 ? std::string(name) : fmt::format("{},{}", name, letter);
}

template <class F>
void add(po::options_description& description, const F& flag) {
  const std::string name = boost_name(flag.name, flag.letter);
  if (flag.argument.empty())
    description.add_options()(name.c_str(), "");
  else
    description.add_options()(name.c_str(), po::value<std::vector<std::string>>()->composing(), "");
}

const ForeignFlag* find_foreign(std::string_view name) {
  const auto all = foreign_flags();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const ForeignFlag& f) { return f.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const Flag* find_flag(std::string_view name) {
  const auto all = flags();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Flag& f) { return f.name == name; });
  return found == all.end() ? nullptr : &*found;
}

bool repeatable(std::string_view name) {
  return name == "port" || name == "ip" || name == "gateway" || name == "fault" || name == kWords;
}

/// Edits that turn a into b (Levenshtein).
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substituted}));
    }
  }
  return row.back();
}

Error unknown_flag(std::string name, Program program) {
  while (name.starts_with("-")) name.erase(0, 1);
  name = name.substr(0, name.find('='));
  std::string_view nearest;
  std::size_t least = 4;
  for (const Flag& flag : flags()) {
    const std::size_t distance = edits(name, flag.name);
    if (belongs(flag, program) && distance < least) {
      least = distance;
      nearest = flag.name;
    }
  }
  const std::string shown = (name.size() == 1 ? "-" : "--") + name;
  return {shown, "is no option",
          nearest.empty() || name.size() == 1 ? "--help lists all"
                                              : fmt::format("did you mean --{}?", nearest)};
}

Result<po::parsed_options> run_boost(const std::vector<std::string>& text,
                                     const po::options_description& description, Program program) {
  po::positional_options_description words;
  words.add(kWords.data(), -1);
  const int style = po::command_line_style::unix_style &
                    ~static_cast<int>(po::command_line_style::allow_guessing);
  try {
    return po::command_line_parser(text).options(description).positional(words).style(style).run();
  } catch (const po::unknown_option& error) {
    return tl::make_unexpected(unknown_flag(error.get_option_name(), program));
  } catch (const po::error_with_option_name& error) {
    std::string name = error.get_option_name();
    while (name.starts_with("-")) name.erase(0, 1);
    const Flag* flag = find_flag(name);
    const bool lacks = flag != nullptr && !flag->argument.empty();
    return failure(
        lacks ? shown_name(name) : error.get_option_name(),
        lacks ? fmt::format("needs a value: {}", flag->argument) : std::string("takes no value"),
        "--help lists all options");
  } catch (const po::error& error) {
    return failure("", error.what(), "--help lists all options");
  }
}

}  // namespace

std::string shown_name(const std::string& name) {
  const Flag* flag = find_flag(name);
  if (flag != nullptr && flag->letter != 0) return fmt::format("-{}", flag->letter);
  const ForeignFlag* foreign = find_foreign(name);
  if (foreign != nullptr && foreign->letter != 0) return fmt::format("-{}", foreign->letter);
  return "--" + name;
}

Result<Arguments> Arguments::parse(const std::vector<std::string>& text, Program program) {
  po::options_description description;
  for (const Flag& flag : flags())
    if (belongs(flag, program)) add(description, flag);
  for (const ForeignFlag& flag : foreign_flags()) add(description, flag);
  add(description, Flag{kWords, 0, "WORD", Group::GENERAL, Program::BOTH, ""});
  auto parsed = run_boost(text, description, program);
  if (!parsed) return tl::make_unexpected(parsed.error());
  Arguments arguments;
  for (const po::option& option : parsed->options) {
    const std::string& name = option.string_key;
    if (name == kWords) {
      arguments.positional_.insert(arguments.positional_.end(), option.value.begin(),
                                   option.value.end());
      continue;
    }
    if (const ForeignFlag* foreign = find_foreign(name)) {
      if (foreign->treatment == Treatment::REFUSED)
        return failure(shown_name(name), "cannot apply: " + std::string(foreign->reason), "");
      arguments.notes_.push_back(
          fmt::format("{} changes nothing: {}", shown_name(name), foreign->reason));
      continue;
    }
    auto& values = arguments.values_[name];
    const Flag* flag = find_flag(name);
    if (!values.empty() && !repeatable(name))
      return failure(shown_name(name), "is given twice", "give it once");
    if (flag->argument.empty())
      values.emplace_back();
    else
      values.insert(values.end(), option.value.begin(), option.value.end());
  }
  return arguments;
}

std::optional<std::string> Arguments::text(const std::string& flag) const {
  const auto found = values_.find(flag);
  if (found == values_.end()) return std::nullopt;
  return found->second.front();
}

std::vector<std::string> Arguments::texts(const std::string& flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

Result<std::optional<std::uint64_t>> Arguments::number(const std::string& flag, std::uint64_t least,
                                                       std::uint64_t most) const {
  const auto value = text(flag);
  if (!value) return std::nullopt;
  const std::string place = shown_name(flag) + " " + *value;
  const bool hex = value->starts_with("0x");
  const char* begin = value->data() + (hex ? 2 : 0);
  const char* end = value->data() + value->size();
  std::uint64_t result = 0;
  const auto [rest, error] = std::from_chars(begin, end, result, hex ? 16 : 10);
  if (error == std::errc::invalid_argument || rest != end)
    return failure(place, "is no number", "");
  if (error != std::errc{} || result < least || result > most)
    return failure(place, fmt::format("is outside {} to {}", least, most), "");
  return result;
}

Result<void> Arguments::set_real(const std::string& flag, std::optional<double>& target) const {
  const auto value = text(flag);
  if (!value) return {};
  double result = 0;
  const char* end = value->data() + value->size();
  const auto [rest, error] = std::from_chars(value->data(), end, result);
  if (error != std::errc{} || rest != end || result < 0)
    return failure(shown_name(flag) + " " + *value, "is no positive number", "");
  target = result;
  return {};
}

}  // namespace roce::traffic::perftest
