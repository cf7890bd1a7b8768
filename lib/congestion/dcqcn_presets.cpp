// The presets, each from what was published about it; docs/dcqcn.md names the sources and says
// where a value is a reading of ours.
#include <fmt/format.h>

#include <algorithm>

#include "congestion/dcqcn_config.hpp"
#include "congestion/words.hpp"

namespace roce::congestion {
namespace {

constexpr Duration us(std::int64_t n) {
  return Duration::microseconds(n);
}

/// The vendor's documentation; the order of events within a period as public re-implementations
/// have it.
DcqcnConfig nvidia() {
  DcqcnConfig c;
  c.cut_rule = CutRule::PERIOD;
  c.rate_reduce_monitor_period = us(4);
  c.rt_on_cut = RtOnCut::AFTER_INCREASE;
  c.min_rate = Rate::mbps(1);
  c.alpha_rule = AlphaRule::PERIODIC;
  c.alpha_resolution = AlphaResolution::Q10;
  c.dce_tcp_g = 1019;
  c.dce_tcp_rtt = us(1);
  c.initial_alpha_value = c.alpha_cap = 1023;
  c.first_cnp_sets_alpha = true;
  c.time_reset = us(300);
  c.byte_reset = 32767 * 64;
  c.threshold = 1;
  c.count_first = false;
  c.fast_recovery = FastRecovery::BELOW;
  c.ai_rate = Rate::mbps(5);
  c.hai_rate = Rate::mbps(50);
  c.hai_scaled = false;
  return c;
}

/// ns3-rdma (Microsoft) with its shipped configuration.
DcqcnConfig ns3_rdma() {
  DcqcnConfig c;
  c.cut_alpha = CutAlpha::NEW;
  c.initial_alpha_value = 512;
  c.min_rate = Rate::mbps(100);
  c.time_reset = us(60);
  c.byte_reset = 300'000'000;
  c.fast_recovery = FastRecovery::BELOW;
  c.hyper_rule = HyperRule::BOTH_REACHED;
  c.hyper_halves = c.rt_eighths = true;
  c.cap_rt = false;
  return c;
}

/// The ns-3 of HPCC with run.py's "dcqcn", whose increments grow with the line.
DcqcnConfig ns3_hpcc(Rate line) {
  DcqcnConfig c;
  c.cut_rule = CutRule::PERIOD;
  c.rate_reduce_monitor_period = us(4);
  c.first_cut_extra = Duration::nanoseconds(1);
  c.rt_on_cut = RtOnCut::AFTER_INCREASE;
  c.min_rate = Rate::mbps(1000);
  c.alpha_rule = AlphaRule::PERIODIC;
  c.dce_tcp_rtt = us(1);
  c.first_cnp_sets_alpha = true;
  c.time_reset = us(300);
  c.byte_reset = 0;
  c.threshold = 1;
  c.count_first = false;
  c.fast_recovery = FastRecovery::BELOW;
  c.hyper_rule = HyperRule::EITHER_ABOVE;
  c.ai_rate = Rate::mbps(5 * line.gbps() / 25);
  c.hai_rate = Rate::mbps(50 * line.gbps() / 25);
  c.hai_scaled = false;
  return c;
}

/// irdma's tunables on the paper's machine. Its increments are 1 and 5 MSS of a window; here an MSS
/// is 1024 bytes and comes once per increase period.
DcqcnConfig intel_like() {
  DcqcnConfig c;
  c.cut_rule = CutRule::SPACED;
  c.rate_reduce_monitor_period = us(50);
  c.min_dec_fac = 1;
  c.min_rate = Rate::mbps(1);
  c.byte_reset = 150'000;
  constexpr double kMssPerPeriod = 1024 * 8 / 55.0;
  c.ai_rate = Rate::mbps(kMssPerPeriod);
  c.hai_rate = Rate::mbps(5 * kMssPerPeriod);
  c.hai_scaled = false;
  return c;
}

/// A published recipe for Pollara's timers and rates on the machine of a public NIC source tree of
/// the same family. The recipe's alpha values come without units, so alpha is the paper's.
DcqcnConfig amd_like() {
  DcqcnConfig c;
  c.cut_rule = CutRule::SPACED;
  c.rate_reduce_monitor_period = us(1);
  c.min_rate = Rate::mbps(1);
  c.alpha_rule = AlphaRule::PERIODIC;
  c.dce_tcp_rtt = us(1);
  c.first_cnp_sets_alpha = true;
  c.time_reset = us(1);
  c.byte_reset = 431'068;
  c.threshold = 1;
  c.ai_rate = Rate::mbps(160);
  c.hai_rate = Rate::mbps(300);
  c.hai_scaled = false;
  return c;
}

constexpr std::array<std::string_view, 6> kPresets = {"paper",    "nvidia",     "ns3_rdma",
                                                      "ns3_hpcc", "intel_like", "amd_like"};
constexpr std::array<std::string_view, 6> kPurposes = {
    "the algorithm of the SIGCOMM 2015 paper with its parameters",
    "ConnectX as documented, with default parameters",
    "the simulator of the paper's authors with its shipped configuration",
    "the simulator of HPCC (no byte counter, one additive step) with run.py's dcqcn",
    "irdma's default tunables on the paper's algorithm",
    "a published Pollara recipe; its alpha is the paper's"};

}  // namespace

std::span<const std::string_view> preset_names() {
  return kPresets;
}

std::string_view preset_purpose(std::string_view preset) {
  const auto* at = std::ranges::find(kPresets, preset);
  return at == kPresets.end() ? std::string_view{}
                              : kPurposes[static_cast<std::size_t>(at - kPresets.begin())];
}

Result<DcqcnConfig> make_preset(std::string_view preset, Rate line) {
  const auto* at = std::ranges::find(kPresets, preset);
  if (at == kPresets.end())
    return failure("preset", fmt::format("there is no preset '{}'", preset),
                   "take one of " + list_of(kPresets));
  DcqcnConfig c;
  switch (at - kPresets.begin()) {
    case 1:
      c = nvidia();
      break;
    case 2:
      c = ns3_rdma();
      break;
    case 3:
      c = ns3_hpcc(line);
      break;
    case 4:
      c = intel_like();
      break;
    case 5:
      c = amd_like();
      break;
    default:
      break;
  }
  c.preset = *at;
  return c;
}

}  // namespace roce::congestion
