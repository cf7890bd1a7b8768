// Knobs by name, for any configuration struct: what dcqcn_knobs.cpp and np_knobs.cpp share. Control
// side; known to the sources of this folder only.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/rate.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "congestion/words.hpp"

namespace roce::congestion {

using Words = std::span<const std::string_view>;

inline constexpr std::array<std::string_view, 2> kNoYes = {"0", "1"};

template <class Config>
struct Knob {
  std::string_view name;
  std::string_view unit;
  double least, most;
  Words words;  ///< empty: a number; else what 0, 1, ... stand for
  double (*get)(const Config&);
  void (*set)(Config&, double);
  bool whole = false;  ///< takes whole numbers only
};

// Each reads and writes one member of any type that a knob may have.
inline double number_of(Duration d) {
  return d.us();
}
inline double number_of(Rate r) {
  return r.mbps();
}
template <class T>
double number_of(T value) {
  return static_cast<double>(value);
}
inline void assign(Duration& d, double us) {
  d = Duration::nanoseconds(std::llround(us * 1e3));
}
inline void assign(Rate& r, double mbps) {
  r = Rate::mbps(mbps);
}
template <class T>
void assign(T& value, double number) {
  value = static_cast<T>(number);
}
template <class Config, auto Member>
double get(const Config& c) {
  return number_of(c.*Member);
}
template <class Config, auto Member>
void set(Config& c, double number) {
  assign(c.*Member, number);
}
template <class Config, auto Member>
constexpr Knob<Config> number(std::string_view name, std::string_view unit, double least,
                              double most) {
  constexpr bool kWhole = std::is_integral_v<std::remove_cvref_t<decltype(Config{}.*Member)>>;
  return {name, unit, least, most, {}, get<Config, Member>, set<Config, Member>, kWhole};
}
template <class Config, auto Member>
constexpr Knob<Config> word(std::string_view name, Words words) {
  return {name,
          "",
          0,
          static_cast<double>(words.size() - 1),
          words,
          get<Config, Member>,
          set<Config, Member>};
}

template <class Config>
std::string text_of(const Knob<Config>& knob, double value) {
  if (!knob.words.empty()) return std::string{knob.words[static_cast<std::size_t>(value)]};
  return fmt::format("{}", value);
}

/// The number that text stands for; hint goes behind the message for a number out of range.
template <class Config>
Result<double> parse(const Knob<Config>& knob, std::string_view text, std::string_view hint = {}) {
  if (!knob.words.empty()) {
    const auto at = std::ranges::find(knob.words, text);
    if (at != knob.words.end()) return static_cast<double>(at - knob.words.begin());
    return failure(std::string{knob.name}, fmt::format("'{}' is none of its words", text),
                   "take one of " + list_of(knob.words));
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  const bool fits = !knob.whole || value == std::floor(value);
  if (is_number && fits && value >= knob.least && value <= knob.most) return value;
  std::string fix = fmt::format("take a {}number from {} to {}", knob.whole ? "whole " : "",
                                knob.least, knob.most);
  if (!knob.unit.empty()) fix += fmt::format(", in {}", knob.unit);
  if (is_number && !hint.empty()) fix += fmt::format("; {}", hint);
  return failure(std::string{knob.name},
                 !fits       ? fmt::format("{} is no whole number", text)
                 : is_number ? fmt::format("{} is out of range", text)
                             : fmt::format("'{}' is not a number", text),
                 fix);
}

/// The error for a name that is in none of the tables.
[[nodiscard]] inline tl::unexpected<Error> no_such_knob(std::string_view name,
                                                        std::span<const std::string_view> names) {
  return failure(std::string{name}, "there is no such knob", "take one of " + list_of(names));
}

}  // namespace roce::congestion
