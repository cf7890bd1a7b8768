#include "common/endpoint_service.hpp"

#include <fmt/format.h>

namespace roce::apps {

using namespace traffic::perftest;

namespace {

constexpr Duration kAcceptPeriod = Duration::milliseconds(1);

report::Json to_json(const ServiceCounters& counters) {
  return {{"accepted", counters.accepted},
          {"passed", counters.passed},
          {"failed", counters.failed},
          {"peers_vanished", counters.peers_vanished},
          {"refused", counters.refused}};
}

}  // namespace

Result<void> EndpointService::listen(std::uint16_t tcp_port, const Plan& plan) {
  auto listener = cm::TcpListener::open(tcp_port);
  if (!listener) return tl::make_unexpected(listener.error());
  services_.emplace(tcp_port, Service{std::move(*listener), plan, {}});
  return {};
}

void EndpointService::step(Instant now) {
  if (now >= next_accept_) {
    for (auto& [port, service] : services_) accept(service, now);
    next_accept_ = now + kAcceptPeriod;
  }
  for (auto client = clients_.begin(); client != clients_.end();) {
    client->run.step(now);
    if (!client->run.finished()) {
      ++client;
      continue;
    }
    end(*client, now);
    client = clients_.erase(client);
  }
}

void EndpointService::accept(Service& service, Instant now) {
  while (auto socket = service.listener.accept()) {
    if (clients_.size() >= kMostClients) {
      ++counters_.refused;
      ++service.counters.refused;
      continue;  // the socket closes
    }
    ++counters_.accepted;
    ++service.counters.accepted;
    RunConfig config;
    config.plan = service.plan;
    config.random = random_++;
    clients_.emplace_back(loop_, std::move(*socket), config, service, now);
  }
}

void EndpointService::end(const Client& client, Instant now) {
  const Run& run = client.run;
  const bool passed = run.state() == Run::State::PASSED;
  for (ServiceCounters* counters : {&counters_, &client.service->counters}) {
    ++(passed ? counters->passed : counters->failed);
    if (run.cause() == Run::Cause::PEER_VANISHED) ++counters->peers_vanished;
  }
  if (out_ == nullptr) return;
  std::string text = fmt::format("{} from {}: ", run.plan().info().name, run.peer());
  text += passed ? "done" : run.error().to_string();
  if (passed && !run.results().empty())
    if (const auto shown = run.results().back().shown())
      text += fmt::format(", {} messages of {} bytes, {:.3f} Gb/s", shown->iterations, shown->size,
                          in_rate_unit(shown->average_bytes_per_s, RateUnit::GBIT_PER_S));
  if (run.plan().validates() && passed) text += ", data: " + run.verdict().to_string();
  std::fprintf(out_, "%s (%.1f s)\n", text.c_str(), (now - client.since).s());
  std::fflush(out_);
}

void EndpointService::stop() {
  clients_.clear();
  services_.clear();
}

report::Json EndpointService::json() const {
  report::Json services = report::Json::array();
  for (const auto& [port, service] : services_)
    services.push_back({{"test", std::string(service.plan.info().name)},
                        {"tcp_port", port},
                        {"clients", to_json(service.counters)}});
  return {{"clients", to_json(counters_)}, {"services", services}};
}

}  // namespace roce::apps
