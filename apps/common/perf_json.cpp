#include "common/perf_json.hpp"

#include <fmt/format.h>

namespace roce::apps {

using namespace traffic::perftest;
using report::Json;

namespace {

std::string_view name_of(Run::Cause cause) {
  switch (cause) {
    case Run::Cause::NONE:
      return "none";
    case Run::Cause::LOCAL:
      return "local";
    case Run::Cause::PEER_VANISHED:
      return "peer_vanished";
    case Run::Cause::PEER_REFUSED:
      return "peer_refused";
    case Run::Cause::INTERRUPTED:
      break;
  }
  return "interrupted";
}

Json size_json(const SizeResult& result) {
  Json json = Json::object();
  json["size_bytes"] = result.size;
  if (result.bandwidth) json["local"] = report::to_json(*result.bandwidth);
  if (result.peer_bandwidth) json["peer"] = report::to_json(*result.peer_bandwidth);
  if (result.latency) json["latency"] = report::to_json(*result.latency, result.histogram);
  return json;
}

}  // namespace

Json run_json(const Run& run) {
  Json results = Json::array();
  for (const SizeResult& result : run.results()) results.push_back(size_json(result));
  Json json{{"passed", run.state() == Run::State::PASSED},
            {"error", nullptr},
            {"cause", std::string(name_of(run.cause()))},
            {"peer", run.peer()},
            {"peer_version", run.peer_version()},
            {"plan", report::to_json(run.plan())},
            {"results", results},
            {"validation", nullptr}};
  if (run.state() == Run::State::FAILED) json["error"] = run.error().to_string();
  if (run.plan().validates()) json["validation"] = report::to_json(run.verdict());
  return json;
}

Json counters_json(const engine::Worker& worker, const engine::PacketIo& port) {
  return {{"transport", report::to_json(worker.counters())},
          {"worker", report::to_json(worker.worker_counters())},
          {"port", report::to_json(port.counters())}};
}

Json faults_json(const port::OpenPort& port) {
  Json json = Json::array();
  if (port.faults() == nullptr) return json;
  for (std::size_t i = 0; i < port.faults()->rule_count(); ++i)
    json.push_back({{"rule", port.faults()->rule(i).text},
                    {"picked", port.faults()->counts(i).picked},
                    {"no_room", port.faults()->counts(i).no_room}});
  return json;
}

Json perftest_json(const Run& run, RateUnit unit) {
  const Plan& plan = run.plan();
  Json info{{"test", std::string(plan.info().title)},
            {"Number_of_qps", plan.qps},
            {"Transport_type", "RoCEv2"},
            {"Connection_type", std::string(verbs::name_of(plan.transport))},
            {"Using_SRQ", "OFF"},
            {"Mtu", verbs::bytes_of(plan.mtu)},
            {"Link_type", "Ethernet"}};
  Json results = Json::array();
  for (const SizeResult& result : run.results()) {
    Json json{{"MsgSize", result.size}};
    if (const auto shown = result.shown()) {
      json["n_iterations"] = shown->iterations;
      json["BW_peak"] = in_rate_unit(shown->peak_bytes_per_s.value_or(0), unit);
      json["BW_average"] = in_rate_unit(shown->average_bytes_per_s, unit);
      json["MsgRate"] = shown->messages_per_s / 1e6;
    }
    if (const auto& latency = result.latency) {
      json["n_iterations"] = latency->iterations;
      json["t_min"] = latency->min_us;
      json["t_max"] = latency->max_us;
      json["t_typical"] = latency->typical_us;
      json["t_avg"] = latency->average_us;
      json["t_stdev"] = latency->stdev_us;
      json["percentile_99"] = latency->p99_us;
      json["percentile_99.9"] = latency->p999_us;
    }
    results.push_back(json);
  }
  if (results.size() == 1) results = Json(results.front());
  return {{"test_info", info}, {"results", results}};
}

}  // namespace roce::apps
