#include "common/perf_printer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace roce::apps {

using namespace traffic::perftest;

void PerfPrinter::print(const std::string& text) const {
  if (out_ == nullptr) return;
  std::fputs(text.c_str(), out_);
  std::fflush(out_);
}

void PerfPrinter::waiting(std::uint16_t tcp_port) const {
  if (!settings_.only.empty() || settings_.verbosity == Verbosity::QUIET) return;
  print(
      fmt::format("\n************************************\n"
                  "* Waiting for client to connect... * (TCP port {})\n"
                  "************************************\n",
                  tcp_port));
}

void PerfPrinter::heading(const Run& run) {
  headed_ = true;
  if (!settings_.only.empty()) return;
  const Plan& plan = run.plan();
  if (settings_.verbosity == Verbosity::NORMAL) {
    print(report::run_heading(plan, port_, plan.qps));
    for (const Lane& lane : run.lanes())
      print(report::address_lines(report::Side::LOCAL, lane.ours, plan.verb()));
    for (const Lane& lane : run.lanes())
      print(report::address_lines(report::Side::REMOTE, lane.theirs, plan.verb()));
    print(report::rule());
  }
  print(plan.is_bw() ? report::bandwidth_heading(settings_.unit)
                     : report::latency_heading(plan.until));
}

void PerfPrinter::update(const Run& run) {
  if (!headed_ && run.connected()) heading(run);
  const Plan& plan = run.plan();
  // A row of a two-way run is the sum of both sides, and waits for the other's report.
  const bool needs_both =
      plan.is_bw() && plan.direction == Direction::BOTH_WAYS && plan.until != Until::DURATION;
  while (rows_ < run.results().size()) {
    const SizeResult& result = run.results()[rows_];
    if (needs_both && !result.peer_bandwidth && !run.finished()) return;
    row(run, result);
    ++rows_;
  }
}

void PerfPrinter::row(const Run& run, const SizeResult& result) const {
  if (!settings_.only.empty()) return only(result);
  if (const auto shown = result.shown()) print(report::bandwidth_row(*shown, settings_.unit));
  if (!result.latency) return;
  print(report::latency_row(*result.latency, run.plan().until));
  if (settings_.histogram == Switch::ON) samples(*result.latency);
}

void PerfPrinter::only(const SizeResult& result) const {
  if (settings_.only == "latency" && result.latency)
    print(fmt::format("{:.2f}\n", result.latency->average_us));
  const auto shown = result.shown();
  if (!shown) return;
  if (settings_.only == "bandwidth")
    print(fmt::format("{:.2f}\n", in_rate_unit(shown->average_bytes_per_s, settings_.unit)));
  if (settings_.only == "message_rate") print(fmt::format("{:.6f}\n", shown->messages_per_s / 1e6));
}

void PerfPrinter::samples(const LatencyResult& latency) const {
  std::vector<double> us = latency.samples_us;
  if (settings_.unsorted == Switch::OFF) std::sort(us.begin(), us.end());
  std::string text = "#, usec\n";
  for (std::size_t i = 0; i < us.size(); ++i) text += fmt::format("{}, {:.3f}\n", i + 1, us[i]);
  print(text);
}

void PerfPrinter::end(const Run& run) {
  update(run);
  if (settings_.only.empty()) {
    if (headed_ && settings_.verbosity == Verbosity::NORMAL) print(report::rule());
    print(validation_line(run));
  }
  headed_ = false;
  rows_ = 0;
}

std::string validation_line(const Run& run) {
  if (!run.plan().validates() || !run.connected()) return "";
  return fmt::format(" data validation, {} side: {}\n",
                     run.plan().role == Role::CLIENT ? "client" : "server",
                     run.verdict().to_string());
}

}  // namespace roce::apps
