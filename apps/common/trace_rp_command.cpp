#include "common/trace_rp_command.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>

#include "report/json.hpp"
#include "traffic/trace_rp.hpp"

namespace roce::apps {
namespace {

namespace po = boost::program_options;

struct Options {
  std::string file, preset, line_rate, json;
  std::vector<std::string> set;
  double until_us = 5000;
  bool help = false, quiet = false;
};

po::options_description describe(Options& o) {
  po::options_description description{"Options"};
  auto add = description.add_options();
  add("preset", po::value(&o.preset)->value_name("NAME"), "whose DCQCN; see below");
  add("line-rate", po::value(&o.line_rate)->value_name("RATE"), "of the port, such as 40Gbps");
  add("set", po::value(&o.set)->composing()->value_name("KNOB=VALUE"),
      "change a knob, such as rp_time_reset=120 (repeatable)");
  add("until", po::value(&o.until_us)->value_name("US")->default_value(5000, "5000"),
      "go on to this time, in us, when the last event is earlier");
  add("json", po::value(&o.json)->value_name("FILE"), "write JSON, - for standard output");
  add("quiet", po::bool_switch(&o.quiet), "no table");
  add("help,h", po::bool_switch(&o.help), "this text");
  return description;
}

std::string help_text(const po::options_description& description) {
  std::string text =
      R"(Usage: roce-gen trace-rp --preset NAME --line-rate RATE [options] EVENTS.json

What would a reaction point do? Replays CNPs and sent bytes through the one that roce-gen's own
QPs use, and prints each event with the state right after it: current rate Rc, target rate Rt,
alpha, and the stage counters T (timer) and BC (bytes).

EVENTS.json (- is standard input) is a list of [t_us, "cnp"] and [t_us, "sent", bytes].

)";
  text += fmt::format("{}", (std::ostringstream{} << description).str());
  text += "\nPresets:\n";
  for (const std::string_view preset : congestion::preset_names())
    text += fmt::format("  {:<11} {}\n", preset, congestion::preset_purpose(preset));
  text += R"(
Example: one CNP, and what follows within 600 us
  echo '[[0, "cnp"]]' | roce-gen trace-rp --preset paper --line-rate 40Gbps --until 600 -
)";
  return text;
}

Result<Options> parse(const std::vector<std::string>& arguments) {
  Options options;
  po::options_description all = describe(options);
  all.add_options()("events", po::value(&options.file));
  po::positional_options_description positional;
  positional.add("events", 1);
  try {
    po::variables_map map;
    po::store(po::command_line_parser(arguments).options(all).positional(positional).run(), map);
    po::notify(map);
  } catch (const po::error& error) {
    return failure("", error.what(), "see roce-gen trace-rp --help");
  }
  if (options.help) return options;
  if (options.preset.empty())
    return failure("--preset", "it is missing, and there is no default",
                   "see roce-gen trace-rp --help for the presets");
  if (options.line_rate.empty())
    return failure("--line-rate", "it is missing", "give the rate of the port, such as 40Gbps");
  if (options.file.empty())
    return failure("EVENTS.json", "no file is given", "give one, or - for standard input");
  if (!(options.until_us >= 0 && options.until_us <= 1e12))
    return failure("--until", "it is out of range", "give microseconds, 0 to 1e12");
  return options;
}

Result<congestion::DcqcnConfig> configure(const Options& options, Rate line) {
  auto config = congestion::make_preset(options.preset, line);
  if (!config) {
    config.error().place = "--preset";
    return config;
  }
  for (const std::string& setting : options.set) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos)
      return failure("--set " + setting, "it has no '='", "write KNOB=VALUE");
    auto set = congestion::set_knob(*config, setting.substr(0, equals), setting.substr(equals + 1));
    if (!set) {
      set.error().place = "--set " + set.error().place;
      return tl::make_unexpected(set.error());
    }
  }
  if (auto valid = congestion::validate(*config, line); !valid)
    return tl::make_unexpected(valid.error());
  return config;
}

Result<std::string> read(const std::string& file) {
  if (file == "-") return std::string(std::istreambuf_iterator<char>{std::cin}, {});
  std::ifstream stream{file, std::ios::binary};
  std::string text(std::istreambuf_iterator<char>{stream}, {});
  if (!stream.is_open() || stream.bad())
    return failure(file, "it cannot be read", "give a file of events");
  return text;
}

Result<void> run(const Options& options) {
  auto line = Rate::from_string(options.line_rate);
  if (!line) {
    line.error().place = "--line-rate";
    return tl::make_unexpected(line.error());
  }
  const auto config = configure(options, *line);
  if (!config) return tl::make_unexpected(config.error());
  const auto text = read(options.file);
  if (!text) return tl::make_unexpected(text.error());
  const auto events =
      traffic::read_rp_events(*text, options.file == "-" ? "<stdin>" : options.file);
  if (!events) return tl::make_unexpected(events.error());
  const auto until = Instant::from_ns(std::llrint(options.until_us * 1e3));
  const auto rows = traffic::trace_rp(*config, *line, *events, until);
  if (!options.quiet) {
    // The table goes where the JSON does not.
    std::FILE* out = options.json == "-" ? stderr : stdout;
    fmt::print(out, "preset {}{}, line rate {} Gb/s\n", config->preset,
               options.set.empty() ? "" : " (changed)", line->gbps());
    fmt::print(out, "{}", traffic::trace_rp_table(rows));
  }
  if (options.json.empty()) return {};
  return report::write_json(options.json, traffic::trace_rp_json(*config, *line, rows));
}

}  // namespace

int trace_rp_command(const std::vector<std::string>& arguments) {
  constexpr int kUsage = 2;
  const auto options = parse(arguments);
  if (options && options->help) {
    Options unused;
    std::fputs(help_text(describe(unused)).c_str(), stdout);
    return 0;
  }
  const Result<void> done = options ? run(*options) : tl::make_unexpected(options.error());
  if (done) return 0;
  fmt::print(stderr, "roce-gen trace-rp: {}\n", done.error().to_string());
  return kUsage;
}

int trace_rp_command(int argc, char** argv) {
  return trace_rp_command(std::vector<std::string>(argv + 1, argv + argc));
}

}  // namespace roce::apps
