// roce-endpoint: a standing endpoint. Reads the command line; the rest is in apps/common.
#include <cstdio>
#include <string>
#include <vector>

#include "common/endpoint_program.hpp"
#include "common/perf_program.hpp"
#include "traffic/perftest/options.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  auto options = roce::traffic::perftest::parse_endpoint_options(arguments);
  if (!options) return roce::apps::complain("roce-endpoint", options.error());
  if (!options->show.empty()) {
    std::fputs(options->show.c_str(), stdout);
    return 0;
  }
  return roce::apps::run_endpoint(std::move(*options));
}
