// Pair: two workers on the ends of a memory wire, stepped in one thread by a clock that counts
// turns; and a run of one test over them without any TCP.
#pragma once

#include <catch2/catch.hpp>

#include <memory>
#include <optional>

#include "engine/worker.hpp"
#include "port/fault_port.hpp"
#include "port/memory/memory_wire.hpp"
#include "traffic/perftest/data_plane.hpp"

namespace roce::test {

using namespace roce::traffic::perftest;

class Pair {
 public:
  explicit Pair(std::vector<port::FaultRule> faults = {})
      : faulty_(wire_.first(), std::move(faults)),
        client_({.index = 0, .max_qps = 64, .seed = 1}, faulty_),
        server_({.index = 1, .max_qps = 64, .seed = 2}, wire_.second()) {
    const auto add = [](engine::Worker& worker, std::uint8_t last) {
      engine::InterfaceConfig config;
      config.mac = worker.port().info().mac;
      config.addresses = {{IpAddress::v4(198, 18, 0, last), 24}};
      return worker.add_interface(config);
    };
    client_interface_ = add(client_, 1);
    server_interface_ = add(server_, 2);
  }

  engine::Worker& client() { return client_; }
  engine::Worker& server() { return server_; }

  /// Makes and connects the QPs of a test.
  void connect(Plan plan) {
    plan.role = Role::CLIENT;
    client_qps_ = made(client_, client_interface_, plan, 11);
    plan.role = Role::SERVER;
    server_qps_ = made(server_, server_interface_, plan, 22);
    const auto addresses = [](QpSet& set) {
      std::vector<QpAddress> result;
      for (const Lane& lane : set.lanes()) result.push_back(lane.ours);
      return result;
    };
    const auto of_client = addresses(*client_qps_);
    const auto of_server = addresses(*server_qps_);
    REQUIRE(client_qps_->connect(of_server, server_.port().info().mac, plan.mtu));
    REQUIRE(server_qps_->connect(of_client, client_.port().info().mac, plan.mtu));
  }
  QpSet& client_qps() { return *client_qps_; }
  QpSet& server_qps() { return *server_qps_; }

  /// One turn of each worker, 1 us later.
  void turn() {
    now_ = now_ + Duration::microseconds(1);
    (void)client_.turn(now_);
    (void)server_.turn(now_);
  }
  [[nodiscard]] Instant now() const { return now_; }

  void disconnect() {
    client_qps_.reset();
    server_qps_.reset();
  }

 private:
  static std::unique_ptr<QpSet> made(engine::Worker& worker, engine::InterfaceId interface,
                                     const Plan& plan, std::uint64_t random) {
    auto set = std::make_unique<QpSet>(worker, interface, plan, plan.qps, random);
    for (std::uint32_t i = 0; i < plan.qps; ++i) {
      const auto added = set->add_lane();
      INFO((added ? "" : added.error().to_string()));
      REQUIRE(added);
    }
    return set;
  }

  port::MemoryWire wire_;
  port::FaultPort faulty_;
  engine::Worker client_, server_;
  engine::InterfaceId client_interface_ = 0, server_interface_ = 0;
  std::unique_ptr<QpSet> client_qps_, server_qps_;
  Instant now_ = Instant::from_ns(1'000'000);
};

/// Both ends of one run over one size.
struct Run {
  Run(Pair& p, Plan plan, std::uint64_t size)
      : pair(p),
        client(p.client_qps(), with_role(plan, Role::CLIENT), size),
        server(p.server_qps(), with_role(plan, Role::SERVER), size) {
    REQUIRE(client.prepare() == Step::RUNNING);
    REQUIRE(server.prepare() == Step::RUNNING);
  }

  /// Steps both until they are done or one fails; the server is told when the client has ended.
  void finish(std::uint64_t most_turns = 3'000'000) {
    Step of_client = Step::RUNNING, of_server = Step::RUNNING;
    for (std::uint64_t i = 0; i < most_turns; ++i) {
      pair.turn();
      if (of_client == Step::RUNNING) of_client = client.step(pair.now());
      if (of_client == Step::DONE) server.peer_ended();
      if (of_server == Step::RUNNING) of_server = server.step(pair.now());
      if (of_client == Step::FAILED || of_server == Step::FAILED) break;
      if (of_client == Step::DONE && of_server == Step::DONE) break;
    }
    client_end = of_client;
    server_end = of_server;
  }

  static Plan with_role(Plan plan, Role role) {
    plan.role = role;
    return plan;
  }

  Pair& pair;
  DataPlane client, server;
  Step client_end = Step::RUNNING, server_end = Step::RUNNING;
};

/// A plan with perftest's defaults, few iterations, and data validation.
inline Plan quick_plan(Test test, std::uint64_t size, std::uint64_t iterations) {
  Plan plan = default_plan(test, Role::CLIENT);
  plan.size = size;
  plan.iterations = iterations;
  plan.mtu = verbs::Mtu::MTU_1024;
  plan.validation = Switch::ON;
  return plan;
}

/// Runs a plan and requires that both ends pass, with all that should be checked.
inline void run_and_pass(Plan plan) {
  adjust(plan, Switch::OFF);
  REQUIRE(check(plan));
  Pair pair;
  pair.connect(plan);
  Run run(pair, plan, plan.size);
  run.finish();
  INFO(plan.info().name << " size " << plan.size << " qps " << plan.qps);
  INFO("client: " << (run.client.failure() ? run.client.failure()->to_string() : "no failure"));
  INFO("server: " << (run.server.failure() ? run.server.failure()->to_string() : "no failure"));
  REQUIRE(run.client_end == Step::DONE);
  REQUIRE(run.server_end == Step::DONE);
  run.client.check_exposed(plan.iterations);
  run.server.check_exposed(plan.iterations);
  INFO("client: " << run.client.verdict().to_string());
  INFO("server: " << run.server.verdict().to_string());
  CHECK(run.client.verdict().passed());
  CHECK(run.server.verdict().passed());
  CHECK(run.client.verdict().lost + run.server.verdict().lost == 0);
  CHECK(run.client.verdict().messages + run.server.verdict().messages > 0);
}

}  // namespace roce::test
