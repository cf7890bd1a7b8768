#include "traffic/perftest/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>

#include "traffic/perftest/arguments.hpp"
#include "traffic/perftest/flag_table.hpp"

namespace roce::traffic::perftest {
namespace {

using Done = Result<void>;

Done apply_extent(const Arguments& arguments, Plan& plan) {
  if (arguments.has("duration")) {
    const auto seconds = arguments.number("duration", 1, 100'000'000);
    if (!seconds) return tl::make_unexpected(seconds.error());
    if (arguments.has("iters")) return failure("-D", "does not go with -n", "give one of them");
    plan.until = Until::DURATION;
    plan.duration = Duration::seconds(static_cast<std::int64_t>(**seconds));
  }
  if (arguments.has("all")) {
    if (arguments.has("size")) return failure("-a", "does not go with -s", "give one of them");
    if (plan.verb() == Verb::ATOMIC)
      return failure("-a", "atomics are always 8 bytes", "leave -a away");
    plan.all_sizes = Switch::ON;
    plan.size = kMaxSize;
  }
  return arguments.set("iters", 5, 100'000'000, plan.iterations).and_then([&]() -> Done {
    const auto margin = arguments.number("margin", 0, 1000);
    if (!margin) return tl::make_unexpected(margin.error());
    if (*margin) plan.margin = Duration::seconds(static_cast<std::int64_t>(**margin));
    return {};
  });
}

Done apply_transport(const Arguments& arguments, Plan& plan) {
  const std::string type = arguments.text("connection").value_or("RC");
  if (type == "RC")
    plan.transport = verbs::QpType::RC;
  else if (type == "UC")
    plan.transport = verbs::QpType::UC;
  else if (type == "UD")
    plan.transport = verbs::QpType::UD;
  else
    return failure("-c " + type, "is no transport of ours", "RC, UC or UD");
  return {};
}

Done apply_atomic(const Arguments& arguments, Plan& plan) {
  const auto type = arguments.text("atomic_type");
  if (!type) return {};
  if (plan.verb() != Verb::ATOMIC)
    return failure("-A", fmt::format("{} does no atomics", plan.info().name), "leave -A away");
  if (*type == "FETCH_AND_ADD")
    plan.atomic = AtomicType::FETCH_AND_ADD;
  else if (*type == "CMP_AND_SWAP")
    plan.atomic = AtomicType::CMP_AND_SWAP;
  else
    return failure("-A " + *type, "is no atomic operation", "FETCH_AND_ADD or CMP_AND_SWAP");
  return {};
}

Done apply_size(const Arguments& arguments, Plan& plan) {
  const auto text = arguments.text("size");
  if (!text) return {};
  const auto size = parse_size("-s " + *text, *text);
  if (!size) return tl::make_unexpected(size.error());
  if (plan.verb() == Verb::ATOMIC && *size != sizeof(std::uint64_t))
    return failure("-s " + *text, "atomics are always 8 bytes", "leave -s away");
  plan.size = *size;
  return {};
}

Done apply_depths(const Arguments& arguments, Plan& plan) {
  if (arguments.has("rx-depth") && plan.verb() != Verb::SEND)
    return failure("-r", fmt::format("{} posts no receives", plan.info().name), "leave -r away");
  if (arguments.has("outs") && plan.verb() != Verb::READ && plan.verb() != Verb::ATOMIC)
    return failure("-o", fmt::format("{} has no READs or atomics", plan.info().name),
                   "leave -o away");
  return arguments.set("qp", 1, 16'384, plan.qps)
      .and_then([&] { return arguments.set("tx-depth", 1, 16'384, plan.tx_depth); })
      .and_then([&] { return arguments.set("rx-depth", 1, 16'384, plan.rx_depth); })
      .and_then([&] { return arguments.set("cq-mod", 1, 1024, plan.cq_mod); })
      .and_then([&] { return arguments.set("post_list", 1, 1024, plan.post_list); })
      .and_then([&] { return arguments.set("inline_size", 0, 1024, plan.inline_max); })
      .and_then([&] { return arguments.set("outs", 1, 128, plan.out_reads); })
      .and_then([&] { return arguments.set("qp-timeout", 0, 31, plan.qp_timeout); })
      .and_then([&] { return arguments.set("hop_limit", 0, 255, plan.hop_limit); })
      .and_then([&] { return arguments.set("tclass", 0, 255, plan.traffic_class); });
}

Done apply_plan(const Arguments& arguments, Plan& plan) {
  const std::uint64_t default_size = plan.size;
  if (arguments.has("bidirectional")) plan.direction = Direction::BOTH_WAYS;
  if (arguments.has("data_validation")) plan.validation = Switch::ON;
  if (arguments.has("noPeak")) plan.peak = Switch::OFF;
  auto done = apply_transport(arguments, plan)
                  .and_then([&] { return apply_atomic(arguments, plan); })
                  .and_then([&] { return apply_size(arguments, plan); })
                  .and_then([&] { return apply_depths(arguments, plan); })
                  .and_then([&] { return apply_extent(arguments, plan); });
  if (!done) return done;
  if (plan.size != default_size && plan.size > kMaxSize)
    return failure("-s", fmt::format("{} is more than {}", plan.size, kMaxSize));
  adjust(plan, arguments.has("cq-mod") ? Switch::ON : Switch::OFF);
  done = check(plan);
  // A server takes as many QPs as its client brings, unless it is told otherwise.
  if (plan.role == Role::SERVER && plan.is_bw() && !arguments.has("qp")) plan.qps = 0;
  return done;
}

Result<std::optional<verbs::Mtu>> path_mtu(const Arguments& arguments) {
  const auto bytes = arguments.number("path-mtu", 0, 65'535);
  if (!bytes) return tl::make_unexpected(bytes.error());
  if (!*bytes) return std::nullopt;
  for (unsigned code = 1; code <= 5; ++code)
    if (bytes_of(static_cast<verbs::Mtu>(code)) == **bytes) return static_cast<verbs::Mtu>(code);
  return failure(fmt::format("-m {}", **bytes), "is no path MTU", "256, 512, 1024, 2048 or 4096");
}

Done apply_seed(const Arguments& arguments, std::optional<std::uint64_t>& seed, Plan* plan) {
  const auto number = arguments.number("seed", 0, ~std::uint64_t{0});
  if (!number) return tl::make_unexpected(number.error());
  seed = *number;
  if (seed && plan != nullptr) plan->pattern_seed = static_cast<std::uint32_t>(*seed & 0xff);
  return {};
}

Done apply_report(const Arguments& arguments, const Plan& plan, ReportSettings& report) {
  if (arguments.has("report_gbits")) report.unit = RateUnit::GBIT_PER_S;
  if (arguments.has("report-histogram")) report.histogram = Switch::ON;
  if (arguments.has("report-unsorted")) report.histogram = report.unsorted = Switch::ON;
  if (report.histogram == Switch::ON && plan.is_bw())
    return failure("-H", "a bandwidth test records no latencies", "leave -H and -U away");
  if (arguments.has("quiet")) report.verbosity = Verbosity::QUIET;
  report.json_file = arguments.text("json").value_or("");
  if (arguments.has("out_json") || arguments.has("out_json_file"))
    report.perftest_json_file = arguments.text("out_json_file").value_or("perftest_out.json");
  report.only = arguments.text("output").value_or("");
  const bool known = plan.is_bw() ? report.only == "bandwidth" || report.only == "message_rate"
                                  : report.only == "latency";
  if (!report.only.empty() && !known)
    return failure("--output " + report.only, "is nothing this test measures",
                   plan.is_bw() ? "bandwidth or message_rate" : "latency");
  if (!plan.is_bw() && (arguments.has("limit_bw") || arguments.has("limit_msgrate")))
    return failure("-w", "a latency test measures no rate", "leave -w and -y away");
  return arguments.set_real("limit_bw", report.least_bandwidth).and_then([&] {
    return arguments.set_real("limit_msgrate", report.least_message_rate);
  });
}

Done apply_perf(const Arguments& arguments, PerfOptions& options) {
  const auto& words = arguments.positional();
  if (words.empty())
    return failure("", "no test is named",
                   "roce-perf TEST, where TEST is write_bw, write_lat, read_bw, read_lat, send_bw, "
                   "send_lat, atomic_bw or atomic_lat");
  const TestInfo* info = find_test(words[0]);
  if (info == nullptr)
    return failure(words[0], "is no test",
                   "write_bw, write_lat, read_bw, read_lat, send_bw, send_lat, atomic_bw or "
                   "atomic_lat");
  if (words.size() > 2)
    return failure(words[2], "comes after the host, where nothing is expected",
                   "roce-perf TEST [options] [HOST]");
  if (words.size() == 2) options.host = words[1];
  options.plan = default_plan(info->test, options.host.empty() ? Role::SERVER : Role::CLIENT);
  if (arguments.has("persistent")) options.persistent = Switch::ON;
  if (options.persistent == Switch::ON && !options.host.empty())
    return failure("--persistent", "is for servers", "leave HOST away");
  return apply_plan(arguments, options.plan)
      .and_then([&] { return apply_seed(arguments, options.seed, &options.plan); })
      .and_then([&] { return arguments.set("tcp-port", 1, 65'535, options.tcp_port); })
      .and_then([&] { return apply_report(arguments, options.plan, options.report); });
}

}  // namespace

Result<std::uint64_t> parse_size(const std::string& place, const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  std::uint64_t factor = 1;
  const std::string suffix(rest, end);
  if (suffix == "k" || suffix == "K") factor = 1024;
  if (suffix == "m" || suffix == "M") factor = 1024 * 1024;
  if (error != std::errc{} || (!suffix.empty() && factor == 1))
    return failure(place, "is no size", "a number of bytes, or one with k or M behind it");
  if (value == 0 || value > kMaxSize / factor)
    return failure(place, fmt::format("is outside 1 to {}", kMaxSize));
  return value * factor;
}

Result<PerfOptions> parse_perf_options(const std::vector<std::string>& text) {
  PerfOptions options;
  auto arguments = Arguments::parse(text, Program::PERF);
  if (!arguments) return tl::make_unexpected(arguments.error());
  if (arguments->has("help")) options.show = perf_help();
  if (arguments->has("version")) options.show = version_text("roce-perf");
  if (!options.show.empty()) return options;
  options.notes = arguments->notes();
  if (arguments->has("check")) options.check_only = Switch::ON;
  if (arguments->has("ipv6")) options.family = AddressFamily::V6;
  auto mtu = path_mtu(*arguments);
  if (!mtu) return tl::make_unexpected(mtu.error());
  options.path_mtu = *mtu;
  const bool port_only = options.check_only == Switch::ON && arguments->positional().empty();
  auto done = apply_port(*arguments, options.port).and_then([&]() -> Done {
    return port_only ? Done{} : apply_perf(*arguments, options);
  });
  if (!done) return tl::make_unexpected(done.error());
  return options;
}

Result<EndpointOptions> parse_endpoint_options(const std::vector<std::string>& text) {
  EndpointOptions options;
  auto arguments = Arguments::parse(text, Program::ENDPOINT);
  if (!arguments) return tl::make_unexpected(arguments.error());
  if (arguments->has("help")) options.show = endpoint_help();
  if (arguments->has("version")) options.show = version_text("roce-endpoint");
  if (!options.show.empty()) return options;
  options.notes = arguments->notes();
  if (arguments->has("check")) options.check_only = Switch::ON;
  if (arguments->has("ipv6")) options.family = AddressFamily::V6;
  if (arguments->has("quiet")) options.report.verbosity = Verbosity::QUIET;
  options.report.json_file = arguments->text("json").value_or("");
  if (!arguments->positional().empty())
    return failure(arguments->positional().front(), "is not expected here",
                   "roce-endpoint takes options only; tests go into --serve");
  auto mtu = path_mtu(*arguments);
  if (!mtu) return tl::make_unexpected(mtu.error());
  options.path_mtu = *mtu;
  auto done = apply_port(*arguments, options.port)
                  .and_then([&] { return apply_seed(*arguments, options.seed, nullptr); })
                  .and_then([&] { return apply_services(*arguments, options, apply_plan); });
  if (!done) return tl::make_unexpected(done.error());
  return options;
}

}  // namespace roce::traffic::perftest
