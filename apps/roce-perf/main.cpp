// roce-perf: perftest's counterpart. Reads the command line; the rest is in apps/common.
#include <cstdio>
#include <string>
#include <vector>

#include "common/perf_program.hpp"
#include "traffic/perftest/options.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  auto options = roce::traffic::perftest::parse_perf_options(arguments);
  if (!options) return roce::apps::complain("roce-perf", options.error());
  if (!options->show.empty()) {
    std::fputs(options->show.c_str(), stdout);
    return 0;
  }
  return roce::apps::run_perf(std::move(*options));
}
