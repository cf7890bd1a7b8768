#include "common/perf_program.hpp"

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "common/nic.hpp"
#include "common/perf_side.hpp"
#include "common/stop.hpp"

namespace roce::apps {

using namespace traffic::perftest;

namespace {

constexpr const char* kProgram = "roce-perf";

/// Tables go to stderr when the JSON takes stdout.
std::FILE* table_of(const ReportSettings& report) {
  return report.json_file == "-" ? stderr : stdout;
}

PerfSideConfig side_config(const PerfOptions& options, Role role, std::uint64_t random) {
  PerfSideConfig config;
  config.plan = options.plan;
  config.plan.role = role;
  if (role == Role::CLIENT) config.plan.qps = std::max(config.plan.qps, 1U);
  config.report = options.report;
  config.worker_index = role == Role::CLIENT ? 0 : 1;
  config.random = random + (role == Role::CLIENT ? 0 : 1);
  config.persistent = options.persistent == Switch::ON;
  config.progress = options.report.verbosity == Verbosity::NORMAL;
  return config;
}

struct Ends {
  int status = 0;
  report::Json sides = report::Json::array();
  report::Json perftest;
  std::vector<std::string> errors;

  void add(const PerfSide& side, int side_status) {
    status = std::max(status, side_status);
    sides.push_back(side.json());
    errors.insert(errors.end(), side.errors().begin(), side.errors().end());
  }
};

/// Both ends in this process, over a port with two ends; the client prints.
Ends run_joined(const PerfOptions& options, const Nic& nic, std::uint64_t random) {
  Ends ends;
  auto listener = cm::TcpListener::open(0);
  if (!listener) {
    ends.status = 2;
    ends.errors.push_back(listener.error().to_string());
    return ends;
  }
  const std::uint16_t tcp_port = listener->port();
  std::atomic<bool> client_gave_up{false};
  PerfPrinter printer(table_of(options.report), options.report, nic.spec());
  PerfPrinter silent(nullptr, options.report, nic.spec());
  PerfSideConfig server_config = side_config(options, Role::SERVER, random);
  server_config.abandoned = &client_gave_up;
  server_config.progress = server_config.persistent = false;
  PerfSide client(nic.end(), side_config(options, Role::CLIENT, random), printer);
  PerfSide server(*nic.peer(), server_config, silent);
  int server_status = 0;
  std::thread thread([&] { server_status = server.serve(std::move(*listener)); });
  const int client_status = client.connect("127.0.0.1", tcp_port);
  if (client_status != 0) client_gave_up.store(true, std::memory_order_release);
  thread.join();
  if (options.report.only.empty())
    std::fputs(server.validation().c_str(), table_of(options.report));
  ends.add(client, client_status);
  ends.add(server, server_status);
  ends.perftest = client.perftest_json();
  return ends;
}

Ends run_single(const PerfOptions& options, const Nic& nic, std::uint64_t random) {
  Ends ends;
  PerfPrinter printer(table_of(options.report), options.report, nic.spec());
  PerfSide side(nic.end(), side_config(options, options.plan.role, random), printer);
  int status = 0;
  if (options.plan.role == Role::CLIENT) {
    status = side.connect(options.host, options.tcp_port);
  } else {
    auto listener = cm::TcpListener::open(options.tcp_port);
    if (!listener) {
      ends.status = 2;
      ends.errors.push_back(listener.error().to_string());
      return ends;
    }
    status = side.serve(std::move(*listener));
  }
  ends.add(side, status);
  ends.perftest = side.perftest_json();
  return ends;
}

Result<void> write_reports(const PerfOptions& options, const Ends& ends, const Nic& nic) {
  const ReportSettings& report = options.report;
  if (!report.perftest_json_file.empty())
    if (auto done = report::write_json(report.perftest_json_file, ends.perftest); !done)
      return done;
  if (report.json_file.empty()) return {};
  report::Json json{{"schema", "rocinante/roce-perf/1"},
                    {"version", ROCE_VERSION},
                    {"test", std::string(options.plan.info().name)},
                    {"port", nic.spec()},
                    {"passed", ends.status == 0},
                    {"errors", ends.errors},
                    {"sides", ends.sides},
                    {"faults", faults_json(nic.port())}};
  return report::write_json(report.json_file, json);
}

Result<void> check_ends(const PerfOptions& options, const Nic& nic) {
  if (!nic.peer()) return {};
  if (!options.host.empty())
    return failure(options.host, "names a server, but no --port leads to it",
                   options.port.specs.empty()
                       ? "--port SPEC, as in --port afpacket:eth1"
                       : "leave the host away: " + nic.spec() + " joins both ends in this process");
  if (options.persistent == Switch::ON)
    return failure("--persistent", "both ends run in this process and end together",
                   "--port SPEC, or leave it away");
  return {};
}

}  // namespace

int complain(const char* program, const Error& error) {
  std::fprintf(stderr, "%s: %s\n", program, error.to_string().c_str());
  return 2;
}

int run_perf(PerfOptions options) {
  if (options.check_only == Switch::ON) {
    const CheckReport check = check_port(options.port);
    std::fputs(check.text.c_str(), stdout);
    return check.status;
  }
  const bool quiet = options.report.verbosity == Verbosity::QUIET;
  for (const std::string& note : options.notes)
    if (!quiet) std::fprintf(stderr, "%s: note: %s\n", kProgram, note.c_str());
  const std::uint64_t random = random_or(options.seed);
  auto nic = Nic::open(options.port, options.family, random);
  if (!nic) return complain(kProgram, nic.error());
  if (auto done = check_ends(options, *nic); !done) return complain(kProgram, done.error());
  if (auto done = fit_to_port(options.plan, options.path_mtu, nic->end().io->info().mtu); !done)
    return complain(kProgram, done.error());
  if (options.port.specs.empty() && !quiet)
    std::fprintf(stderr, "%s: no --port given: both ends run here, over --port wire\n", kProgram);
  catch_stop_signals();
  const Ends ends =
      nic->peer() ? run_joined(options, *nic, random) : run_single(options, *nic, random);
  nic->flush_capture();
  for (const std::string& error : ends.errors)
    std::fprintf(stderr, "%s: %s\n", kProgram, error.c_str());
  if (auto done = write_reports(options, ends, *nic); !done)
    return complain(kProgram, done.error());
  return ends.status;
}

}  // namespace roce::apps
