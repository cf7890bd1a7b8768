// EndpointService: the listeners and the runs of roce-endpoint, on one worker and one thread.
//
// It accepts clients, steps their runs, counts how they end and frees what they held. It prints one
// line per finished run.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cm/tcp.hpp"
#include "common/engine_loop.hpp"
#include "report/json.hpp"
#include "traffic/perftest/options.hpp"
#include "traffic/perftest/run.hpp"

namespace roce::apps {

/// How clients have ended, free-running.
struct ServiceCounters {
  std::uint64_t accepted = 0;
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;          ///< of all that accepted, for whatever reason
  std::uint64_t peers_vanished = 0;  ///< of those failed: TCP gone or silent, packets unanswered
  std::uint64_t refused = 0;         ///< closed at once: most_clients were being served
};

class EndpointService {
 public:
  static constexpr std::size_t kMostClients = 256;

  EndpointService(EngineLoop& loop, std::uint64_t random, std::FILE* out)
      : loop_(loop), random_(random), out_(out) {}

  /// Listens for clients of a plan. Fails when the TCP port is taken.
  [[nodiscard]] Result<void> listen(std::uint16_t tcp_port, const traffic::perftest::Plan& plan);

  void step(Instant now);
  /// Ends all runs.
  void stop();

  [[nodiscard]] bool busy() const { return !clients_.empty(); }
  [[nodiscard]] std::size_t clients() const { return clients_.size(); }
  [[nodiscard]] const ServiceCounters& counters() const { return counters_; }
  [[nodiscard]] report::Json json() const;

 private:
  struct Service {
    cm::TcpListener listener;
    traffic::perftest::Plan plan;
    ServiceCounters counters;
  };
  struct Client {
    Client(EngineLoop& loop, cm::Socket socket, const traffic::perftest::RunConfig& config,
           Service& its_service, Instant now)
        : run(loop.worker(), loop.interface(), std::move(socket), config),
          service(&its_service),
          since(now) {}
    traffic::perftest::Run run;
    Service* service;
    Instant since;
  };

  void accept(Service& service, Instant now);
  void end(const Client& client, Instant now);

  EngineLoop& loop_;
  std::uint64_t random_;
  std::FILE* out_;
  std::map<std::uint16_t, Service> services_;
  std::list<Client> clients_;
  ServiceCounters counters_;
  Instant next_accept_;
};

}  // namespace roce::apps
