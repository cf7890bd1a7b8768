// Run: one perftest conversation from an accepted or connected TCP socket to the verdict: exchange,
// QPs, neighbours, data planes, reports.
//
// Owns the socket, the session and the QPs. Its owner calls step() between turns of the worker, all
// on one thread; many Runs may share a worker. It never blocks and never prints: the owner looks at
// what has been added to results().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cm/tcp.hpp"
#include "engine/worker.hpp"
#include "traffic/perftest/data_plane.hpp"
#include "traffic/perftest/plan.hpp"
#include "traffic/perftest/qp_set.hpp"

namespace roce::traffic::perftest {

/// What one message size has brought on this side.
struct SizeResult {
  std::uint64_t size = 0;
  std::optional<BandwidthResult> bandwidth;
  std::optional<BandwidthResult> peer_bandwidth;  ///< as the peer reports it
  std::optional<LatencyResult> latency;
  Histogram histogram;  ///< of latency, nanoseconds
  /// What a table shows: the peer's figures where this side has none, the sum of both with -b.
  [[nodiscard]] std::optional<BandwidthResult> shown() const;
};

struct RunConfig {
  Plan plan;  ///< qps 0: a server that takes as many as the client has
  RateUnit unit = RateUnit::MIB_PER_S;
  std::uint64_t random = 1;            ///< fixes the first PSNs
  std::uint32_t most_learnt_qps = 64;  ///< when plan.qps is 0
  Duration resolve_limit = Duration::seconds(5);
};

class Run {
 public:
  enum class State : std::uint8_t { RUNNING, PASSED, FAILED };
  /// How a failed run failed.
  enum class Cause : std::uint8_t {
    NONE,
    LOCAL,          ///< here: no memory, no neighbour, wrong data, a limit
    PEER_VANISHED,  ///< TCP closed or silent, or nobody answers packets
    PEER_REFUSED,   ///< the peer answered with an error, or does not speak perftest
    INTERRUPTED,
  };

  Run(engine::Worker& worker, engine::InterfaceId interface, cm::Socket socket,
      const RunConfig& config);

  void step(Instant now);
  /// Ends at once and keeps what was measured so far.
  void interrupt();

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool finished() const { return state_ != State::RUNNING; }
  [[nodiscard]] Cause cause() const { return cause_; }
  [[nodiscard]] const Error& error() const { return error_; }
  /// "198.18.0.2:40312"
  [[nodiscard]] const std::string& peer() const { return carrier_.peer(); }
  [[nodiscard]] const std::string& peer_version() const {
    return carrier_.session().peer_version();
  }
  /// With the number of QPs and the MTU that both ends agreed on, once connected().
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] std::span<const Lane> lanes() const { return qps_.lanes(); }
  [[nodiscard]] std::span<const SizeResult> results() const { return results_; }
  [[nodiscard]] const Verdict& verdict() const { return verdict_; }

 private:
  void supply_keys();
  void connect(Instant now);
  [[nodiscard]] std::optional<MacAddress> resolve(Instant now);
  [[nodiscard]] bool begin_plane();
  void run(Instant now);
  void end_plane();
  void conclude();
  void check_exposed();
  void fail(Cause cause, Error error);
  void take_peer_report();

  engine::Worker& worker_;
  engine::InterfaceId interface_;
  RunConfig config_;
  Plan plan_;
  std::vector<std::uint64_t> sizes_;
  QpSet qps_;
  cm::TcpCarrier carrier_;
  std::unique_ptr<DataPlane> plane_;
  std::vector<SizeResult> results_;
  Verdict verdict_;
  State state_ = State::RUNNING;
  Cause cause_ = Cause::NONE;
  Error error_;
  bool connected_ = false;
  std::optional<Instant> resolving_since_;
  Instant next_tcp_;
};

}  // namespace roce::traffic::perftest
