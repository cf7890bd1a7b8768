#include "common/endpoint_program.hpp"

#include <fmt/format.h>

#include "common/endpoint_service.hpp"
#include "common/nic.hpp"
#include "common/perf_json.hpp"
#include "common/perf_program.hpp"
#include "common/stop.hpp"
#include "engine/clock.hpp"
#include "report/counter_line.hpp"

namespace roce::apps {

using namespace traffic::perftest;

namespace {

constexpr const char* kProgram = "roce-endpoint";
constexpr std::uint32_t kMostQps = 4096;

Result<void> prepare(EndpointOptions& options, const Nic& nic) {
  if (nic.peer())
    return failure("--port " + nic.spec(), "leads to nobody outside this process",
                   "--port SPEC, as in --port afpacket:eth1");
  for (auto& [tcp_port, plan] : options.services)
    if (auto done = fit_to_port(plan, options.path_mtu, nic.end().io->info().mtu); !done)
      return done;
  return {};
}

std::string listing(const EndpointOptions& options, const Nic& nic) {
  std::string text = fmt::format("serving on {} as", nic.spec());
  for (const IpPrefix& prefix : nic.end().interface.addresses)
    text += fmt::format(" {}", prefix.address.to_string());
  text.append(":\n");
  for (const auto& [tcp_port, plan] : options.services)
    text += fmt::format("  {:<10} TCP port {}\n", plan.info().name, tcp_port);
  return text;
}

/// One line a second while clients are served.
class CounterDisplay {
 public:
  explicit CounterDisplay(std::FILE* out) : out_(out) {}
  void step(Instant now, const Nic& nic, const engine::Worker& worker,
            const EndpointService& service) {
    if (out_ == nullptr || now < next_) return;
    next_ = now + Duration::seconds(1);
    const std::string line =
        line_.next(now, nic.end().io->counters(), worker.counters(), worker.worker_counters());
    const ServiceCounters& clients = service.counters();
    if (!line.empty())
      std::fprintf(out_, "clients %zu  passed %llu  failed %llu  peers_vanished %llu  %s\n",
                   service.clients(), static_cast<unsigned long long>(clients.passed),
                   static_cast<unsigned long long>(clients.failed),
                   static_cast<unsigned long long>(clients.peers_vanished), line.c_str());
  }

 private:
  std::FILE* out_;
  report::CounterLine line_;
  Instant next_;
};

Result<void> report_end(const EndpointOptions& options, const Nic& nic,
                        const engine::Worker& worker, const report::Json& clients) {
  report::Json json{
      {"schema", "rocinante/roce-endpoint/1"}, {"version", ROCE_VERSION}, {"port", nic.spec()}};
  json.update(clients);
  json["counters"] = counters_json(worker, *nic.end().io);
  json["faults"] = faults_json(nic.port());
  if (!options.report.json_file.empty()) return report::write_json(options.report.json_file, json);
  return {};
}

}  // namespace

int run_endpoint(EndpointOptions options) {
  if (options.check_only == Switch::ON) {
    const CheckReport check = check_port(options.port);
    std::fputs(check.text.c_str(), stdout);
    return check.status;
  }
  const bool quiet = options.report.verbosity == Verbosity::QUIET;
  std::FILE* out = options.report.json_file == "-" ? stderr : stdout;
  if (quiet) out = nullptr;
  for (const std::string& note : options.notes)
    if (!quiet) std::fprintf(stderr, "%s: note: %s\n", kProgram, note.c_str());
  const std::uint64_t random = random_or(options.seed);
  auto nic = Nic::open(options.port, options.family, random);
  if (!nic) return complain(kProgram, nic.error());
  if (auto done = prepare(options, *nic); !done) return complain(kProgram, done.error());
  engine::WorkerConfig config;
  config.max_qps = kMostQps;
  config.max_mrs = 2 * kMostQps;
  config.seed = random;
  EngineLoop loop(nic->end(), config);
  EndpointService service(loop, random, out);
  for (const auto& [tcp_port, plan] : options.services)
    if (auto done = service.listen(tcp_port, plan); !done) return complain(kProgram, done.error());
  catch_stop_signals();
  if (out != nullptr) {
    std::fputs(listing(options, *nic).c_str(), out);
    std::fflush(out);
  }
  CounterDisplay display(quiet ? nullptr : stderr);
  while (!stop_requested()) {
    const Instant now = loop.turn(service.busy() ? Idle::YIELD : Idle::SLEEP);
    service.step(now);
    display.step(now, *nic, loop.worker(), service);
  }
  const report::Json clients = service.json();
  const ServiceCounters& counters = service.counters();
  if (out != nullptr)
    std::fprintf(out, "stopped: %llu clients, %llu passed, %llu failed, %llu of them vanished\n",
                 static_cast<unsigned long long>(counters.accepted),
                 static_cast<unsigned long long>(counters.passed),
                 static_cast<unsigned long long>(counters.failed),
                 static_cast<unsigned long long>(counters.peers_vanished));
  service.stop();
  nic->flush_capture();
  if (auto done = report_end(options, *nic, loop.worker(), clients); !done)
    return complain(kProgram, done.error());
  return 0;
}

}  // namespace roce::apps
