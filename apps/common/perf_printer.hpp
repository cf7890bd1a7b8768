// PerfPrinter: what roce-perf shows of a run as it goes: perftest's headings, addresses and rows.
//
// Given a Run after each step, it prints what has been added. It decides nothing.
#pragma once

#include <cstdio>
#include <string>

#include "report/perftest_text.hpp"
#include "traffic/perftest/options.hpp"
#include "traffic/perftest/run.hpp"

namespace roce::apps {

class PerfPrinter {
 public:
  /// out: null prints nothing.
  PerfPrinter(std::FILE* out, const traffic::perftest::ReportSettings& settings, std::string port)
      : out_(out), settings_(settings), port_(std::move(port)) {}

  void waiting(std::uint16_t tcp_port) const;
  /// Prints what is new of the run.
  void update(const traffic::perftest::Run& run);
  /// Prints what is left, and the verdict of data validation; the next run starts anew.
  void end(const traffic::perftest::Run& run);

 private:
  void heading(const traffic::perftest::Run& run);
  void row(const traffic::perftest::Run& run, const traffic::perftest::SizeResult& result) const;
  void only(const traffic::perftest::SizeResult& result) const;
  void samples(const traffic::perftest::LatencyResult& latency) const;
  void print(const std::string& text) const;

  std::FILE* out_;
  traffic::perftest::ReportSettings settings_;
  std::string port_;
  bool headed_ = false;
  std::size_t rows_ = 0;
};

/// "data validation, client side: ...\n"; empty when the run validates nothing.
[[nodiscard]] std::string validation_line(const traffic::perftest::Run& run);

}  // namespace roce::apps
