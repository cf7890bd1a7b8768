// The notification point's knobs by name.
#include <algorithm>
#include <array>

#include "congestion/knob_table.hpp"
#include "congestion/notification_point.hpp"

namespace roce::congestion {
namespace {

using Config = NpConfig;

constexpr std::array<std::string_view, 4> kScopes = {"qp", "source_ip", "ip_pair", "port"};
constexpr std::array<std::string_view, 2> kRules = {"gate", "window"};

constexpr std::array kKnobs = {
    word<Config, &Config::enabled>("enabled", kNoYes),
    word<Config, &Config::scope>("scope", kScopes),
    word<Config, &Config::rule>("rule", kRules),
    number<Config, &Config::min_time_between_cnps>("np_min_time_between_cnps", "us", 0, 1e6),
    number<Config, &Config::cnp_dscp>("np_cnp_dscp", "", 0, 63),
    number<Config, &Config::cnp_ecn>("cnp_ecn", "", 0, 3),
    number<Config, &Config::cnp_prio>("np_cnp_prio", "", 0, 7),
    word<Config, &Config::cnp_prio_of_packet>("cnp_prio_of_packet", kNoYes),
    word<Config, &Config::cnp_on_nak>("cnp_on_nak", kNoYes),
    number<Config, &Config::max_keys>("max_keys", "", 1, 1 << 20),
};

bool matches(std::string_view knob, std::string_view name) {
  constexpr std::string_view kPrefix = "np_";
  return knob == name || (knob.starts_with(kPrefix) && knob.substr(kPrefix.size()) == name);
}

}  // namespace

Result<void> set_knob(NpConfig& config, std::string_view name, std::string_view text) {
  std::vector<std::string_view> names;
  for (const Knob<Config>& knob : kKnobs) {
    names.push_back(knob.name);
    if (!matches(knob.name, name)) continue;
    const Result<double> value = parse(knob, text);
    if (!value) return tl::make_unexpected(value.error());
    knob.set(config, *value);
    return {};
  }
  return no_such_knob(name, names);
}

std::vector<KnobValue> knob_values(const NpConfig& config) {
  std::vector<KnobValue> values;
  for (const Knob<Config>& knob : kKnobs)
    values.push_back({knob.name, knob.unit, text_of(knob, knob.get(config))});
  return values;
}

Result<void> validate(const NpConfig& config) {
  for (const Knob<Config>& knob : kKnobs) {
    if (const auto ok = parse(knob, fmt::format("{}", knob.get(config))); knob.words.empty() && !ok)
      return tl::make_unexpected(ok.error());
  }
  if (config.rule == NpRule::WINDOW && config.min_time_between_cnps.ns() == 0)
    return failure("np_min_time_between_cnps", "the window rule needs an interval", "50 is common");
  return {};
}

}  // namespace roce::congestion
