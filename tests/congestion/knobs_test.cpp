// Presets and knobs by name.
#include <catch2/catch.hpp>

#include "congestion/dcqcn_config.hpp"
#include "congestion/notification_point.hpp"

namespace roce::test {
namespace {

using namespace congestion;

std::string text_of(const DcqcnConfig& config, std::string_view name) {
  for (const KnobValue& knob : knob_values(config))
    if (knob.name == name) return knob.text;
  return "absent";
}

}  // namespace

TEST_CASE("Each preset is valid, says its purpose and is rebuilt from its knobs") {
  for (const std::string_view name : preset_names()) {
    CAPTURE(name);
    const DcqcnConfig config = make_preset(name, Rate::gbps(100)).value();
    CHECK(config.preset == name);
    CHECK_FALSE(preset_purpose(name).empty());
    CHECK(validate(config, Rate::gbps(100)));
    DcqcnConfig other = make_preset(name == "paper" ? "nvidia" : "paper", Rate::gbps(100)).value();
    for (const KnobValue& knob : knob_values(config)) CHECK(set_knob(other, knob.name, knob.text));
    const auto ours = knob_values(config), theirs = knob_values(other);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      CAPTURE(ours[i].name);
      CHECK(ours[i].text == theirs[i].text);
    }
  }
}

TEST_CASE("An unknown preset is refused by a message that lists the known ones") {
  const auto preset = make_preset("nvdia", Rate::gbps(100));
  REQUIRE_FALSE(preset);
  CHECK(preset.error().to_string().find("nvidia") != std::string::npos);
  CHECK(preset_purpose("nvdia").empty());
}

TEST_CASE("Knobs take the names and units of debugfs and of sysfs") {
  DcqcnConfig config = make_preset("nvidia", Rate::gbps(100)).value();
  REQUIRE(set_knob(config, "rp_time_reset", "120"));
  CHECK(config.time_reset == Duration::microseconds(120));
  REQUIRE(set_knob(config, "ai_rate", "7"));
  CHECK(config.ai_rate == Rate::mbps(7));
  REQUIRE(set_knob(config, "rp_byte_reset", "150"));
  CHECK(config.byte_reset == 9600);
  REQUIRE(set_knob(config, "rp_clamp_tgt_rate_ati", "0"));
  CHECK(config.rt_on_cut == RtOnCut::AFTER_BYTES);
  REQUIRE(set_knob(config, "rp_clamp_tgt_rate", "1"));
  CHECK(config.rt_on_cut == RtOnCut::ALWAYS);
  REQUIRE(set_knob(config, "rp_clamp_tgt_rate", "0"));
  CHECK(config.rt_on_cut == RtOnCut::AFTER_INCREASE);
  CHECK(text_of(config, "rt_on_cut") == "after_increase");
}

TEST_CASE("The gain of early headers is refused unless it is named as such") {
  DcqcnConfig config = make_preset("nvidia", Rate::gbps(100)).value();
  const auto refused = set_knob(config, "rp_dce_tcp_g", "64");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().to_string().find("rp_dce_tcp_g_new_weight") != std::string::npos);
  REQUIRE(set_knob(config, "rp_dce_tcp_g_new_weight", "64"));
  CHECK(config.dce_tcp_g == 960);
}

TEST_CASE("Wrong knobs are refused with what would be right, and change nothing") {
  DcqcnConfig config = make_preset("paper", Rate::gbps(40)).value();
  for (const auto& [name, text, hint] :
       std::vector<std::array<std::string, 3>>{{"rp_tiem_reset", "55", "rp_time_reset"},
                                               {"rp_time_reset", "55us", "in us"},
                                               {"rp_time_reset", "", "in us"},
                                               {"rp_min_dec_fac", "101", "0 to 100"},
                                               {"rt_on_cut", "sometimes", "after_increase"},
                                               {"rp_threshold", "nan", "0 to 1000"},
                                               {"rp_threshold", "1.5", "whole number"},
                                               {"rp_byte_reset", "1.5", "whole number"},
                                               {"rp_gd", "inf", "10 to 20"},
                                               {"cap_rt", "true", "0, 1"}}) {
    CAPTURE(name, text);
    const auto before = knob_values(config);
    const auto set = set_knob(config, name, text);
    REQUIRE_FALSE(set);
    CHECK(set.error().place == name);
    CHECK(set.error().to_string().find(hint) != std::string::npos);
    const auto after = knob_values(config);
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(before[i].text == after[i].text);
  }
}

TEST_CASE("Knobs that do not fit together or the line are refused") {
  DcqcnConfig config = make_preset("paper", Rate::gbps(40)).value();
  CHECK(validate(config, Rate::gbps(40)));
  CHECK_FALSE(validate(config, Rate::mbps(5)));
  CHECK_FALSE(validate(config, Rate::mbps(0)));
  config.cut_rule = CutRule::PERIOD;
  CHECK_FALSE(validate(config, Rate::gbps(40)));
  config.rate_reduce_monitor_period = Duration::microseconds(4);
  CHECK(validate(config, Rate::gbps(40)));
  config.dce_tcp_rtt = Duration{};
  CHECK_FALSE(validate(config, Rate::gbps(40)));
}

TEST_CASE("The notification point's knobs are set by name and refused with what would be right") {
  NpConfig config;
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"scope", "ip_pair"},
                                                        {"rule", "window"},
                                                        {"np_min_time_between_cnps", "50"},
                                                        {"cnp_dscp", "46"},
                                                        {"np_cnp_prio", "3"},
                                                        {"cnp_on_nak", "1"},
                                                        {"max_keys", "64"}}) {
    CAPTURE(name);
    CHECK(set_knob(config, name, text));
  }
  CHECK(config.scope == NpScope::IP_PAIR);
  CHECK(config.rule == NpRule::WINDOW);
  CHECK(config.min_time_between_cnps == Duration::microseconds(50));
  CHECK(config.cnp_dscp == 46);
  CHECK(config.cnp_on_nak);
  NpConfig copy;
  for (const KnobValue& knob : knob_values(config)) CHECK(set_knob(copy, knob.name, knob.text));
  const auto ours = knob_values(config), theirs = knob_values(copy);
  for (std::size_t i = 0; i < ours.size(); ++i) CHECK(ours[i].text == theirs[i].text);
  CHECK(set_knob(config, "scope", "host").error().to_string().find("source_ip") !=
        std::string::npos);
  CHECK(set_knob(config, "np_cnp_dscp", "64").error().place == "np_cnp_dscp");
  CHECK(set_knob(config, "np_cnp_dcsp", "6").error().to_string().find("np_cnp_dscp") !=
        std::string::npos);
}

}  // namespace roce::test
