// Knobs by name: one table that parsing, printing and range checks share.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "congestion/dcqcn_config.hpp"
#include "congestion/words.hpp"

namespace roce::congestion {
namespace {

using Config = DcqcnConfig;
using Words = std::span<const std::string_view>;

struct Knob {
  std::string_view name;
  std::string_view unit;
  double least, most;
  Words words;  ///< empty: a number; else what 0, 1, ... stand for
  double (*get)(const Config&);
  void (*set)(Config&, double);
};

constexpr std::array<std::string_view, 2> kNoYes = {"0", "1"};
constexpr std::array<std::string_view, 3> kCutRules = {"at_cnp", "spaced", "period"};
constexpr std::array<std::string_view, 2> kAlphaRules = {"on_silence", "periodic"};
constexpr std::array<std::string_view, 2> kCutAlphas = {"old", "new"};
constexpr std::array<std::string_view, 2> kResolutions = {"real", "q10"};
constexpr std::array<std::string_view, 4> kRtOnCuts = {"always", "after_increase", "after_bytes",
                                                       "never"};
constexpr std::array<std::string_view, 2> kFastRecoveries = {"up_to", "below"};
constexpr std::array<std::string_view, 3> kHyperRules = {"both_above", "both_reached",
                                                         "either_above"};

// Each reads and writes one member of any type that a knob may have.
double number_of(Duration d) {
  return d.us();
}
double number_of(Rate r) {
  return r.mbps();
}
template <class T>
double number_of(T value) {
  return static_cast<double>(value);
}
void assign(Duration& d, double us) {
  d = Duration::nanoseconds(std::llround(us * 1e3));
}
void assign(Rate& r, double mbps) {
  r = Rate::mbps(mbps);
}
template <class T>
void assign(T& value, double number) {
  value = static_cast<T>(number);
}
template <auto Member>
double get(const Config& c) {
  return number_of(c.*Member);
}
template <auto Member>
void set(Config& c, double number) {
  assign(c.*Member, number);
}
template <auto Member>
constexpr Knob number(std::string_view name, std::string_view unit, double least, double most) {
  return {name, unit, least, most, {}, get<Member>, set<Member>};
}
template <auto Member>
constexpr Knob word(std::string_view name, Words words) {
  return {name, "", 0, static_cast<double>(words.size() - 1), words, get<Member>, set<Member>};
}

constexpr double kMostUs = 1e6;
constexpr double kMostMbps = 1e7;

constexpr std::array kKnobs = {
    word<&Config::cut_rule>("cut_rule", kCutRules),
    number<&Config::rate_reduce_monitor_period>("rp_rate_reduce_monitor_period", "us", 0, kMostUs),
    number<&Config::first_cut_extra>("first_cut_extra", "us", 0, kMostUs),
    number<&Config::gd>("rp_gd", "log2", 10, 20),
    number<&Config::min_dec_fac>("rp_min_dec_fac", "%", 0, 100),
    word<&Config::rt_on_cut>("rt_on_cut", kRtOnCuts),
    number<&Config::rate_to_set_on_first_cnp>("rp_rate_to_set_on_first_cnp", "Mb/s", 0, kMostMbps),
    word<&Config::first_rate_replaces_cut>("first_rate_replaces_cut", kNoYes),
    number<&Config::min_rate>("rp_min_rate", "Mb/s", 1e-3, kMostMbps),
    number<&Config::max_rate>("rp_max_rate", "Mb/s", 0, kMostMbps),
    word<&Config::alpha_rule>("alpha_rule", kAlphaRules),
    word<&Config::cut_alpha>("cut_alpha", kCutAlphas),
    word<&Config::alpha_resolution>("alpha_resolution", kResolutions),
    number<&Config::dce_tcp_g>("rp_dce_tcp_g", "1/1024", 512, 1023),
    number<&Config::dce_tcp_rtt>("rp_dce_tcp_rtt", "us", 1e-3, kMostUs),
    number<&Config::initial_alpha_value>("rp_initial_alpha_value", "1/1024", 0, 1024),
    number<&Config::alpha_cap>("alpha_cap", "1/1024", 1, 1024),
    word<&Config::first_cnp_sets_alpha>("first_cnp_sets_alpha", kNoYes),
    number<&Config::time_reset>("rp_time_reset", "us", 2e-3, kMostUs),
    number<&Config::byte_reset>("byte_reset_bytes", "bytes", 0, 1e12),
    word<&Config::hyper_halves>("hyper_halves", kNoYes),
    word<&Config::rt_eighths>("rt_eighths", kNoYes),
    number<&Config::threshold>("rp_threshold", "", 0, 1000),
    word<&Config::count_first>("count_first", kNoYes),
    word<&Config::fast_recovery>("fast_recovery", kFastRecoveries),
    word<&Config::hyper_rule>("hyper_rule", kHyperRules),
    number<&Config::ai_rate>("rp_ai_rate", "Mb/s", 0, kMostMbps),
    number<&Config::hai_rate>("rp_hai_rate", "Mb/s", 0, kMostMbps),
    word<&Config::hai_scaled>("hai_scaled", kNoYes),
    word<&Config::cap_rt>("cap_rt", kNoYes),
    word<&Config::release>("release", kNoYes),
};

// Names under which NVIDIA's tools say what a knob above says in another way. Set only.
void set_clamp(Config& c, double on) {
  if (on != 0)
    c.rt_on_cut = RtOnCut::ALWAYS;
  else if (c.rt_on_cut == RtOnCut::ALWAYS || c.rt_on_cut == RtOnCut::NEVER)
    c.rt_on_cut = RtOnCut::AFTER_INCREASE;
}
void set_clamp_ati(Config& c, double on) {
  if (c.rt_on_cut != RtOnCut::ALWAYS)
    c.rt_on_cut = on != 0 ? RtOnCut::AFTER_INCREASE : RtOnCut::AFTER_BYTES;
}
void set_byte_reset(Config& c, double units) {
  constexpr std::uint64_t kUnit = 64;
  c.byte_reset = static_cast<std::uint64_t>(units) * kUnit;
}
void set_new_weight(Config& c, double weight) {
  c.dce_tcp_g = 1024 - static_cast<unsigned>(weight);
}
constexpr std::array kOtherNames = {
    Knob{"rp_clamp_tgt_rate", "", 0, 1, kNoYes, nullptr, set_clamp},
    Knob{"rp_clamp_tgt_rate_ati", "", 0, 1, kNoYes, nullptr, set_clamp_ati},
    Knob{"rp_byte_reset", "64 bytes", 0, 32767, {}, nullptr, set_byte_reset},
    Knob{"rp_dce_tcp_g_new_weight", "1/1024", 1, 512, {}, nullptr, set_new_weight},
};

const Knob* find(std::string_view name) {
  constexpr std::string_view kPrefix = "rp_";
  const auto matches = [&](const Knob& knob) {
    return knob.name == name ||
           (knob.name.starts_with(kPrefix) && knob.name.substr(kPrefix.size()) == name);
  };
  if (const auto* at = std::ranges::find_if(kKnobs, matches); at != kKnobs.end()) return at;
  const auto* at = std::ranges::find_if(kOtherNames, matches);
  return at != kOtherNames.end() ? at : nullptr;
}

std::string text_of(const Knob& knob, double value) {
  if (!knob.words.empty()) return std::string{knob.words[static_cast<std::size_t>(value)]};
  return fmt::format("{}", value);
}

Result<double> parse(const Knob& knob, std::string_view text) {
  if (!knob.words.empty()) {
    const auto at = std::ranges::find(knob.words, text);
    if (at != knob.words.end()) return static_cast<double>(at - knob.words.begin());
    return failure(std::string{knob.name}, fmt::format("'{}' is none of its words", text),
                   "take one of " + list_of(knob.words));
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (whole && value >= knob.least && value <= knob.most) return value;
  std::string fix = fmt::format("take a number from {} to {}", knob.least, knob.most);
  if (!knob.unit.empty()) fix += fmt::format(", in {}", knob.unit);
  if (whole && knob.name == "rp_dce_tcp_g" && value < knob.least)
    fix += "; early headers gave the weight of the new sample: that is rp_dce_tcp_g_new_weight";
  return failure(
      std::string{knob.name},
      whole ? fmt::format("{} is out of range", text) : fmt::format("'{}' is not a number", text),
      fix);
}

}  // namespace

Result<void> set_knob(DcqcnConfig& config, std::string_view name, std::string_view text) {
  const Knob* knob = find(name);
  if (knob == nullptr) {
    std::vector<std::string_view> names;
    for (const Knob& known : kKnobs) names.push_back(known.name);
    for (const Knob& known : kOtherNames) names.push_back(known.name);
    return failure(std::string{name}, "there is no such knob", "take one of " + list_of(names));
  }
  const Result<double> value = parse(*knob, text);
  if (!value) return tl::make_unexpected(value.error());
  knob->set(config, *value);
  return {};
}

std::vector<KnobValue> knob_values(const DcqcnConfig& config) {
  std::vector<KnobValue> values;
  for (const Knob& knob : kKnobs)
    values.push_back({knob.name, knob.unit, text_of(knob, knob.get(config))});
  return values;
}

Result<void> validate(const DcqcnConfig& config, Rate line) {
  for (const Knob& knob : kKnobs) {
    if (const auto ok = parse(knob, text_of(knob, knob.get(config))); !ok)
      return tl::make_unexpected(ok.error());
  }
  if (!(line.mbps() > 0) || line.mbps() > kMostMbps)
    return failure("line rate", fmt::format("{} Mb/s is no rate of a port", line.mbps()),
                   "give the rate of the port");
  if (config.min_rate > line)
    return failure("rp_min_rate", "it is above the line rate", "lower it");
  if (config.cut_rule == CutRule::PERIOD && config.rate_reduce_monitor_period.ns() == 0)
    return failure("rp_rate_reduce_monitor_period", "cut_rule period needs one", "4 is common");
  return {};
}

}  // namespace roce::congestion
