#include "congestion/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "support/shared.hpp"
#include "support/skip.hpp"

namespace roce::test {

using congestion::RpEvent;
using nlohmann::json;

std::vector<json> recorded(const std::string& arguments) {
  const auto model = shared("oracles/dcqcn_oracle.py");
  if (!model) return {};
  if (std::system("python3 -c '' >/dev/null 2>&1") != 0) {
    skip("python3 is absent");
    return {};
  }
  const std::string command =
      fmt::format("python3 '{}/tests/congestion/record_trajectories.py' '{}' {}", ROCE_SOURCE_ROOT,
                  model->string(), arguments);
  const auto close = [](std::FILE* file) { pclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe{popen(command.c_str(), "r"), close};
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string text;
  std::vector<char> block(1 << 20);
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), pipe.get()))
    text.append(block.data(), n);
  std::vector<json> recordings;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    recordings.push_back(json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  if (recordings.empty()) throw std::runtime_error("nothing was recorded by " + command);
  return recordings;
}

congestion::DcqcnConfig config_of(const json& recording) {
  const Rate line = Rate::mbps(recording["line_mbps"]);
  auto config = congestion::make_preset(recording["preset"].get<std::string>(), line).value();
  for (const auto& [name, text] : recording["knobs"].items())
    if (const auto set = congestion::set_knob(config, name, text.get<std::string>()); !set)
      throw std::runtime_error(set.error().to_string());
  if (const auto valid = congestion::validate(config, line); !valid)
    throw std::runtime_error(valid.error().to_string());
  return config;
}

std::vector<RpEvent> replay(const json& recording) {
  congestion::ReactionPoint rp{config_of(recording), Rate::mbps(recording["line_mbps"])};
  std::vector<RpEvent> events;
  rp.observe({[](void* context, const RpEvent& event) {
                static_cast<std::vector<RpEvent>*>(context)->push_back(event);
              },
              &events});
  const auto instant = [](double us) { return Instant::from_ns(std::llround(us * 1e3)); };
  std::vector<json> sorted = recording["events"];
  std::ranges::stable_sort(sorted, {}, [](const json& event) { return event[0].get<double>(); });
  for (const json& event : sorted) {
    if (event[1] == "cnp")
      rp.on_cnp(instant(event[0]));
    else
      rp.on_sent(instant(event[0]), event[2].get<std::uint32_t>());
  }
  rp.settle(instant(recording["until_us"]));
  return events;
}

std::string difference(const json& recording, const std::vector<RpEvent>& ours, double tolerance) {
  const json& rows = recording["rows"];
  const auto same = [&](double a, double b) {
    return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
  };
  for (std::size_t i = 0; i < std::min(rows.size(), ours.size()); ++i) {
    const json& row = rows[i];
    const RpEvent& event = ours[i];
    const bool equal = row[1] == name_of(event.kind) &&
                       std::llround(row[0].get<double>() * 1e3) == event.at.ns() &&
                       same(row[2], event.rc_mbps) && same(row[3], event.rt_mbps) &&
                       same(row[4], event.alpha) && row[5] == event.t && row[6] == event.bc;
    if (!equal)
      return fmt::format("{}, row {}: the model has {}, we have [{},{},{},{},{},{},{}]",
                         recording["name"].get<std::string>(), i, row.dump(),
                         static_cast<double>(event.at.ns()) / 1e3, name_of(event.kind),
                         event.rc_mbps, event.rt_mbps, event.alpha, event.t, event.bc);
  }
  if (rows.size() != ours.size())
    return fmt::format("{}: the model has {} rows, we have {}",
                       recording["name"].get<std::string>(), rows.size(), ours.size());
  return {};
}

}  // namespace roce::test
