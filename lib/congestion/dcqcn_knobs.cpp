// Knobs by name: one table that parsing, printing and range checks share.
#include <fmt/format.h>

#include <algorithm>

#include "congestion/dcqcn_config.hpp"
#include "congestion/knob_table.hpp"

namespace roce::congestion {
namespace {

using Config = DcqcnConfig;

constexpr std::array<std::string_view, 3> kCutRules = {"at_cnp", "spaced", "period"};
constexpr std::array<std::string_view, 2> kAlphaRules = {"on_silence", "periodic"};
constexpr std::array<std::string_view, 2> kCutAlphas = {"old", "new"};
constexpr std::array<std::string_view, 2> kResolutions = {"real", "q10"};
constexpr std::array<std::string_view, 4> kRtOnCuts = {"always", "after_increase", "after_bytes",
                                                       "never"};
constexpr std::array<std::string_view, 2> kFastRecoveries = {"up_to", "below"};
constexpr std::array<std::string_view, 3> kHyperRules = {"both_above", "both_reached",
                                                         "either_above"};

constexpr double kMostUs = 1e6;
constexpr double kMostMbps = 1e7;

constexpr std::array kKnobs = {
    word<Config, &Config::cut_rule>("cut_rule", kCutRules),
    number<Config, &Config::rate_reduce_monitor_period>("rp_rate_reduce_monitor_period", "us", 0,
                                                        kMostUs),
    number<Config, &Config::first_cut_extra>("first_cut_extra", "us", 0, kMostUs),
    number<Config, &Config::gd>("rp_gd", "log2", 10, 20),
    number<Config, &Config::min_dec_fac>("rp_min_dec_fac", "%", 0, 100),
    word<Config, &Config::rt_on_cut>("rt_on_cut", kRtOnCuts),
    number<Config, &Config::rate_to_set_on_first_cnp>("rp_rate_to_set_on_first_cnp", "Mb/s", 0,
                                                      kMostMbps),
    word<Config, &Config::first_rate_replaces_cut>("first_rate_replaces_cut", kNoYes),
    number<Config, &Config::min_rate>("rp_min_rate", "Mb/s", 1e-3, kMostMbps),
    number<Config, &Config::max_rate>("rp_max_rate", "Mb/s", 0, kMostMbps),
    word<Config, &Config::alpha_rule>("alpha_rule", kAlphaRules),
    word<Config, &Config::cut_alpha>("cut_alpha", kCutAlphas),
    word<Config, &Config::alpha_resolution>("alpha_resolution", kResolutions),
    number<Config, &Config::dce_tcp_g>("rp_dce_tcp_g", "1/1024", 512, 1023),
    number<Config, &Config::dce_tcp_rtt>("rp_dce_tcp_rtt", "us", 1e-3, kMostUs),
    number<Config, &Config::initial_alpha_value>("rp_initial_alpha_value", "1/1024", 0, 1024),
    number<Config, &Config::alpha_cap>("alpha_cap", "1/1024", 1, 1024),
    word<Config, &Config::first_cnp_sets_alpha>("first_cnp_sets_alpha", kNoYes),
    number<Config, &Config::time_reset>("rp_time_reset", "us", 2e-3, kMostUs),
    number<Config, &Config::byte_reset>("byte_reset_bytes", "bytes", 0, 1e12),
    word<Config, &Config::hyper_halves>("hyper_halves", kNoYes),
    word<Config, &Config::rt_eighths>("rt_eighths", kNoYes),
    number<Config, &Config::threshold>("rp_threshold", "", 0, 1000),
    word<Config, &Config::count_first>("count_first", kNoYes),
    word<Config, &Config::fast_recovery>("fast_recovery", kFastRecoveries),
    word<Config, &Config::hyper_rule>("hyper_rule", kHyperRules),
    number<Config, &Config::ai_rate>("rp_ai_rate", "Mb/s", 0, kMostMbps),
    number<Config, &Config::hai_rate>("rp_hai_rate", "Mb/s", 0, kMostMbps),
    word<Config, &Config::hai_scaled>("hai_scaled", kNoYes),
    word<Config, &Config::cap_rt>("cap_rt", kNoYes),
    word<Config, &Config::release>("release", kNoYes),
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
    Knob<Config>{"rp_clamp_tgt_rate", "", 0, 1, kNoYes, nullptr, set_clamp},
    Knob<Config>{"rp_clamp_tgt_rate_ati", "", 0, 1, kNoYes, nullptr, set_clamp_ati},
    Knob<Config>{"rp_byte_reset", "64 bytes", 0, 32767, {}, nullptr, set_byte_reset, true},
    Knob<Config>{"rp_dce_tcp_g_new_weight", "1/1024", 1, 512, {}, nullptr, set_new_weight, true},
};

const Knob<Config>* find(std::string_view name) {
  constexpr std::string_view kPrefix = "rp_";
  const auto matches = [&](const Knob<Config>& knob) {
    return knob.name == name ||
           (knob.name.starts_with(kPrefix) && knob.name.substr(kPrefix.size()) == name);
  };
  if (const auto* at = std::ranges::find_if(kKnobs, matches); at != kKnobs.end()) return at;
  const auto* at = std::ranges::find_if(kOtherNames, matches);
  return at != kOtherNames.end() ? at : nullptr;
}

}  // namespace

Result<void> set_knob(DcqcnConfig& config, std::string_view name, std::string_view text) {
  const Knob<Config>* knob = find(name);
  if (knob == nullptr) {
    std::vector<std::string_view> names;
    for (const Knob<Config>& known : kKnobs) names.push_back(known.name);
    for (const Knob<Config>& known : kOtherNames) names.push_back(known.name);
    return no_such_knob(name, names);
  }
  const Result<double> value =
      parse(*knob, text,
            knob->name == "rp_dce_tcp_g"
                ? "early headers gave the weight of the new sample: that is rp_dce_tcp_g_new_weight"
                : "");
  if (!value) return tl::make_unexpected(value.error());
  knob->set(config, *value);
  return {};
}

std::vector<KnobValue> knob_values(const DcqcnConfig& config) {
  std::vector<KnobValue> values;
  for (const Knob<Config>& knob : kKnobs)
    values.push_back({knob.name, knob.unit, text_of(knob, knob.get(config))});
  return values;
}

Result<void> validate(const DcqcnConfig& config, Rate line) {
  for (const Knob<Config>& knob : kKnobs) {
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
