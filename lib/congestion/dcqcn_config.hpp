// DcqcnConfig: the knobs of a DCQCN reaction point, and named sets of them.
//
// Where published programs that all call themselves DCQCN disagree, there is a knob. Knobs that
// NVIDIA's NICs have bear the names and units of debugfs cc_params; the others are words. Control
// side only: nothing here is called while packets flow. See docs/dcqcn.md.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/rate.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "congestion/knob_value.hpp"

namespace roce::congestion {

/// When a CNP cuts the rate.
enum class CutRule : std::uint8_t {
  AT_CNP,  ///< at each CNP
  SPACED,  ///< at a CNP when rp_rate_reduce_monitor_period has passed since the last cut
  PERIOD,  ///< at the end of each rp_rate_reduce_monitor_period in which a CNP came
};

/// How alpha is kept.
enum class AlphaRule : std::uint8_t {
  ON_SILENCE,  ///< grows at each CNP; decays after each rp_dce_tcp_rtt without one
  PERIODIC,    ///< each rp_dce_tcp_rtt decays, and grows when a CNP came within it
};

/// Which alpha a cut at a CNP uses (AlphaRule::ON_SILENCE).
enum class CutAlpha : std::uint8_t { OLD, NEW };

/// How finely alpha is kept.
enum class AlphaResolution : std::uint8_t {
  REAL,
  Q10,  ///< whole 1024ths, rounded down at each step, as the vendor's text has it; reaches 0
};

/// When a cut sets Rt to Rc. NVIDIA's rp_clamp_tgt_rate and rp_clamp_tgt_rate_ati select among the
/// first three; other vendors use the word "clamp" for the opposite.
enum class RtOnCut : std::uint8_t {
  ALWAYS,
  AFTER_INCREASE,  ///< when an increase event came since the last cut
  AFTER_BYTES,     ///< when one of the byte counter came
  NEVER,
};

/// The stage counters' bound for fast recovery.
enum class FastRecovery : std::uint8_t {
  UP_TO,  ///< while max(T, BC) <= rp_threshold
  BELOW,  ///< while max(T, BC) < rp_threshold
};

/// When hyper increase begins.
enum class HyperRule : std::uint8_t {
  BOTH_ABOVE,    ///< min(T, BC) > rp_threshold
  BOTH_REACHED,  ///< min(T, BC) >= rp_threshold
  EITHER_ABOVE,  ///< max(T, BC) > rp_threshold
};

/// The defaults are those of the preset "paper".
struct DcqcnConfig {
  std::string_view preset = "paper";  ///< where the other values come from, for reports

  // --- cut ---
  CutRule cut_rule = CutRule::AT_CNP;
  Duration rate_reduce_monitor_period{};
  Duration first_cut_extra{};  ///< PERIOD: the first cut comes that much later
  unsigned gd = 11;            ///< log2: a cut takes alpha * 2^(10 - gd) of the rate; 11 is alpha/2
  unsigned min_dec_fac = 50;   ///< percent of the rate that a cut leaves at least
  RtOnCut rt_on_cut = RtOnCut::ALWAYS;
  Rate rate_to_set_on_first_cnp{};      ///< 0: the first CNP only cuts
  bool first_rate_replaces_cut = true;  ///< the first CNP sets the rate above and does not cut
  Rate min_rate = Rate::mbps(10);
  Rate max_rate{};  ///< 0: the line rate

  // --- alpha ---
  AlphaRule alpha_rule = AlphaRule::ON_SILENCE;
  CutAlpha cut_alpha = CutAlpha::OLD;
  AlphaResolution alpha_resolution = AlphaResolution::REAL;
  unsigned dce_tcp_g = 1020;  ///< weight of the old alpha in 1024ths
  Duration dce_tcp_rtt = Duration::microseconds(55);
  unsigned initial_alpha_value = 1024;  ///< in 1024ths
  unsigned alpha_cap = 1024;            ///< in 1024ths
  bool first_cnp_sets_alpha = false;    ///< matters after a release only

  // --- increase ---
  Duration time_reset = Duration::microseconds(55);
  std::uint64_t byte_reset = 10'000'000;  ///< bytes; 0: no byte counter
  bool hyper_halves = false;              ///< QCN: both periods halve within hyper increase
  bool rt_eighths = false;                ///< QCN: at stage 1, an Rt above 10 Rc goes to an eighth
  unsigned threshold = 5;
  bool count_first = true;  ///< the stage counters move before they choose the phase, not after
  FastRecovery fast_recovery = FastRecovery::UP_TO;
  HyperRule hyper_rule = HyperRule::BOTH_ABOVE;
  Rate ai_rate = Rate::mbps(40);
  Rate hai_rate = Rate::mbps(200);
  bool hai_scaled = true;  ///< QCN: hai_rate times how far hyper increase has come
  bool cap_rt = true;      ///< Rt stops at the maximum, not only Rc
  bool release = false;    ///< at the maximum the limiter is given up, and the next CNP is a first
};

/// "paper", "nvidia", "ns3_rdma", "ns3_hpcc", "intel_like", "amd_like".
[[nodiscard]] std::span<const std::string_view> preset_names();
/// One line on what a preset stands for; empty for an unknown name.
[[nodiscard]] std::string_view preset_purpose(std::string_view preset);
/// line: of the port; some presets scale their increments by it. Fails on an unknown name.
[[nodiscard]] Result<DcqcnConfig> make_preset(std::string_view preset, Rate line);

/// Sets a knob by its name. text: a number in the knob's unit, or one of its words. NVIDIA's names
/// are taken with and without "rp_"; fails on unknown names, words and values out of range, naming
/// what would be right.
[[nodiscard]] Result<void> set_knob(DcqcnConfig& config, std::string_view name,
                                    std::string_view text);

/// All knobs of config in a fixed order; set_knob() takes each of them back.
[[nodiscard]] std::vector<KnobValue> knob_values(const DcqcnConfig& config);

/// Whether the knobs make sense together and at this line rate.
[[nodiscard]] Result<void> validate(const DcqcnConfig& config, Rate line);

}  // namespace roce::congestion
