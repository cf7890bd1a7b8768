#include "report/json.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace roce::report {

using namespace traffic::perftest;

Json to_json(const transport::Counters& counters) {
  Json json = Json::object();
  for (const auto& [name, member] : transport::counter_table())
    json[std::string{name}] = counters.*member;
  return json;
}

Json to_json(const engine::WorkerCounters& counters) {
  Json frames = Json::object(), rejects = Json::object();
  for (std::size_t i = 0; i < wire::kVerdicts; ++i) {
    const auto verdict = static_cast<wire::Verdict>(i);
    const std::string name{wire::verdict_name(verdict)};
    if (verdict < wire::kFirstReject)
      frames[name] = counters.verdicts[i];
    else if (counters.verdicts[i] > 0)
      rejects[name] = counters.verdicts[i];
  }
  return {{"frames", frames},
          {"rejects", rejects},
          {"unknown_qpn", counters.unknown_qpn},
          {"not_our_address", counters.not_our_address},
          {"tx_refused", counters.tx_refused},
          {"tx_no_buffer", counters.tx_no_buffer},
          {"arp_rx", counters.arp_rx},
          {"arp_tx", counters.arp_tx},
          {"nd_rx", counters.nd_rx},
          {"nd_tx", counters.nd_tx},
          {"icmp_echo_rx", counters.icmp_echo_rx},
          {"icmp_echo_tx", counters.icmp_echo_tx},
          {"control_drops", counters.control_drops},
          {"neighbours_displaced", counters.neighbours_displaced},
          {"async_events_dropped", counters.async_events_dropped},
          {"np_marks_suppressed", counters.np_marks_suppressed},
          {"np_intervals_cut_short", counters.np_intervals_cut_short},
          {"np_cnp_dropped", counters.np_cnp_dropped}};
}

Json to_json(const engine::PortCounters& counters) {
  return {{"ipackets", counters.ipackets}, {"ibytes", counters.ibytes},
          {"opackets", counters.opackets}, {"obytes", counters.obytes},
          {"imissed", counters.imissed},   {"ierrors", counters.ierrors},
          {"oerrors", counters.oerrors},   {"rx_nombuf", counters.rx_nombuf}};
}

Json to_json(const BandwidthResult& result) {
  Json json{{"size_bytes", result.size},
            {"iterations", result.iterations},
            {"messages", result.messages},
            {"elapsed_us", result.elapsed.us()},
            {"average_gbps", result.average_bytes_per_s * 8 / 1e9},
            {"average_mib_per_s", result.average_bytes_per_s / (1024.0 * 1024.0)},
            {"messages_per_s", result.messages_per_s}};
  if (result.peak_bytes_per_s)
    json["peak_gbps"] = *result.peak_bytes_per_s * 8 / 1e9;
  else
    json["peak_gbps"] = nullptr;
  return json;
}

Json to_json(const LatencyResult& result, const Histogram& histogram) {
  const auto us = [&](double share) {
    return static_cast<double>(histogram.quantile(share)) / 1e3;
  };
  return {{"size_bytes", result.size},
          {"iterations", result.iterations},
          {"min_us", static_cast<double>(histogram.min()) / 1e3},
          {"mean_us", histogram.mean() / 1e3},
          {"max_us", static_cast<double>(histogram.max()) / 1e3},
          {"typical_us", result.typical_us},
          {"stdev_us", result.stdev_us},
          {"p50_us", us(0.50)},
          {"p90_us", us(0.90)},
          {"p99_us", us(0.99)},
          {"p99_9_us", us(0.999)},
          {"p99_99_us", us(0.9999)},
          {"transactions_per_s", result.transactions_per_s}};
}

Json to_json(const Verdict& verdict) {
  Json json{{"passed", verdict.passed()},       {"messages", verdict.messages},
            {"bytes", verdict.bytes},           {"lost", verdict.lost},
            {"mismatches", verdict.mismatches}, {"first_mismatch", nullptr}};
  if (verdict.first)
    json["first_mismatch"] = {{"qp", verdict.first->lane},
                              {"message", verdict.first->message},
                              {"offset_bytes", verdict.first->offset},
                              {"expected", verdict.first->expected},
                              {"found", verdict.first->found},
                              {"what", verdict.first->what}};
  return json;
}

Json to_json(const Plan& plan) {
  Json json{{"test", std::string{plan.info().name}},
            {"role", plan.role == Role::CLIENT ? "client" : "server"},
            {"transport", std::string{verbs::name_of(plan.transport)}},
            {"direction", plan.direction == Direction::BOTH_WAYS ? "both_ways" : "one_way"},
            {"qps", plan.qps},
            {"mtu_bytes", verbs::bytes_of(plan.mtu)},
            {"tx_depth", plan.tx_depth},
            {"rx_depth", plan.rx_depth},
            {"cq_moderation", plan.cq_mod},
            {"post_list", plan.post_list},
            {"inline_bytes", plan.inline_max},
            {"traffic_class", plan.traffic_class},
            {"qp_timeout", plan.qp_timeout},
            {"data_validation", plan.validates()}};
  if (plan.until == Until::DURATION)
    json["duration_us"] = plan.duration.us();
  else
    json["iterations"] = plan.iterations;
  return json;
}

Result<void> write_json(const std::string& file, const Json& value) {
  // A file name or a peer's words need not be UTF-8; JSON must.
  const std::string text = value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  std::FILE* out = file == "-" ? stdout : std::fopen(file.c_str(), "w");
  if (out == nullptr)
    return failure(file, std::strerror(errno), "name a file in a folder that can be written");
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  const bool flushed = out == stdout ? std::fflush(out) == 0 : std::fclose(out) == 0;
  if (!written || !flushed)
    return failure(file, std::strerror(errno), "make room or name another file");
  return {};
}

}  // namespace roce::report
