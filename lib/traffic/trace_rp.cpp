#include "traffic/trace_rp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace roce::traffic {
namespace {

using congestion::RpEvent;
using nlohmann::json;

constexpr std::string_view kForm = R"(write [t_us, "cnp"] or [t_us, "sent", bytes])";
constexpr double kMostUs = 1e12;
constexpr double kMostBytes = 1e15;

/// What is wrong with an element, or nothing.
std::string fault_of(const json& element) {
  if (!element.is_array() || element.size() < 2) return "it is no list of a time and an event";
  if (!element[0].is_number()) return "its time is no number";
  const double us = element[0].get<double>();
  if (!(us >= 0 && us <= kMostUs)) return fmt::format("its time is not within 0 to {} us", kMostUs);
  if (element[1] == "cnp") return element.size() == 2 ? "" : "a cnp has nothing behind it";
  if (element[1] != "sent")
    return fmt::format("there is no event {}",
                       element[1].dump(-1, ' ', true, json::error_handler_t::replace));
  if (element.size() != 3) return "sent needs a number of bytes and nothing behind it";
  if (!element[2].is_number_unsigned() || element[2].get<double>() > kMostBytes)
    return fmt::format("its bytes are no whole number within 0 to {}", kMostBytes);
  return "";
}

}  // namespace

Result<std::vector<TraceRpEvent>> read_rp_events(std::string_view text, const std::string& file) {
  json list;
  try {
    list = json::parse(text);
  } catch (const json::parse_error& error) {
    const std::size_t at = std::min(error.byte, text.size());
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return failure(fmt::format("{}:{}", file, line), "it is not JSON there", std::string{kForm});
  }
  if (!list.is_array()) return failure(file, "it is no list", fmt::format("within [], {}", kForm));
  std::vector<TraceRpEvent> events;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json& element = list[i];
    if (const std::string fault = fault_of(element); !fault.empty())
      return failure(fmt::format("{}, element {}", file, i), fault, std::string{kForm});
    const auto at = Instant::from_ns(std::llrint(element[0].get<double>() * 1e3));
    const bool cnp = element.size() == 2;
    events.push_back({at, cnp, cnp ? 0 : element[2].get<std::uint64_t>()});
  }
  std::ranges::stable_sort(events, {}, &TraceRpEvent::at);
  return events;
}

std::vector<RpEvent> trace_rp(const congestion::DcqcnConfig& config, Rate line,
                              const std::vector<TraceRpEvent>& events, Instant until) {
  congestion::ReactionPoint rp{config, line};
  std::vector<RpEvent> rows;
  rp.observe({[](void* context, const RpEvent& event) {
                static_cast<std::vector<RpEvent>*>(context)->push_back(event);
              },
              &rows});
  for (const TraceRpEvent& event : events) {
    if (event.cnp) {
      rp.on_cnp(event.at);
      continue;
    }
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    std::uint64_t left = event.bytes;
    do {
      const std::uint64_t bytes = std::min(left, kMost);
      rp.on_sent(event.at, static_cast<std::uint32_t>(bytes));
      left -= bytes;
    } while (left > 0);
  }
  rp.settle(std::max(until, events.empty() ? until : events.back().at));
  return rows;
}

std::string trace_rp_table(const std::vector<RpEvent>& rows) {
  std::string text = fmt::format("{:>12}  {:<11} {:>13} {:>13}  {:>8} {:>5} {:>5}\n", "t_us",
                                 "event", "Rc Mb/s", "Rt Mb/s", "alpha", "T", "BC");
  for (const RpEvent& row : rows)
    text += fmt::format("{:12.3f}  {:<11} {:13.3f} {:13.3f}  {:.6f} {:5} {:5}\n",
                        static_cast<double>(row.at.ns()) / 1e3, name_of(row.kind), row.rc_mbps,
                        row.rt_mbps, row.alpha, row.t, row.bc);
  return text;
}

nlohmann::ordered_json trace_rp_json(const congestion::DcqcnConfig& config, Rate line,
                                     const std::vector<RpEvent>& rows) {
  nlohmann::ordered_json result{{"schema", "rocinante/roce-gen-trace-rp/1"},
                                {"preset", std::string{config.preset}},
                                {"line_rate_gbps", line.gbps()}};
  nlohmann::ordered_json& knobs = result["knobs"] = nlohmann::ordered_json::array();
  for (const congestion::KnobValue& knob : congestion::knob_values(config))
    knobs.push_back(
        {{"name", std::string{knob.name}}, {"unit", std::string{knob.unit}}, {"value", knob.text}});
  nlohmann::ordered_json& list = result["rows"] = nlohmann::ordered_json::array();
  for (const RpEvent& row : rows)
    list.push_back({{"t_us", static_cast<double>(row.at.ns()) / 1e3},
                    {"event", std::string{name_of(row.kind)}},
                    {"rc_mbps", row.rc_mbps},
                    {"rt_mbps", row.rt_mbps},
                    {"alpha", row.alpha},
                    {"t", row.t},
                    {"bc", row.bc}});
  return result;
}

}  // namespace roce::traffic
