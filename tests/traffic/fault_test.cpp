// What goes wrong must be found: damaged memory by data validation, loss by UC and UD counts, a
// vanished peer by a completion status, wrong use of both ends by a clear error.
#include "traffic/pair.hpp"
#include "traffic/perftest/data_plane.hpp"

using namespace roce;
using namespace roce::test;
using namespace roce::traffic::perftest;

namespace {

port::FaultRule rule(const std::string& text) {
  auto parsed = port::parse_fault_rule(text);
  REQUIRE(parsed);
  return *parsed;
}

}  // namespace

TEST_CASE("A byte that changes after it was written fails the WRITE's verdict", "[validation]") {
  for (const std::uint64_t at : {0ULL, 63ULL, 64ULL, 100ULL, 4095ULL}) {
    Plan plan = quick_plan(Test::WRITE_BW, 48, 200);
    adjust(plan, Switch::OFF);
    Pair pair;
    pair.connect(plan);
    Run run(pair, plan, plan.size);
    run.finish();
    REQUIRE(run.server_end == Step::DONE);
    pair.server_qps().lanes()[0].exposed[at] ^= std::byte{1};
    run.server.check_exposed(plan.iterations);
    CHECK(run.server.verdict().mismatches == 1);
    CHECK(run.server.verdict().first->offset == at);
  }
}

TEST_CASE("A WRITE that never arrived fails the verdict", "[validation]") {
  Plan plan = quick_plan(Test::WRITE_BW, 48, 10);
  adjust(plan, Switch::OFF);
  Pair pair;
  pair.connect(plan);
  Run run(pair, plan, plan.size);
  run.finish();
  run.server.check_exposed(plan.iterations + 1);
  CHECK_FALSE(run.server.verdict().passed());
}

TEST_CASE("Damaged source data fails at the reader and at the receiver", "[validation]") {
  for (const Test test :
       {Test::READ_BW, Test::READ_LAT, Test::SEND_BW, Test::SEND_LAT, Test::WRITE_LAT}) {
    Plan plan = quick_plan(test, 300, 20);
    adjust(plan, Switch::OFF);
    Pair pair;
    pair.connect(plan);
    Run run(pair, plan, plan.size);
    const bool read = info_of(test).verb == Verb::READ;
    auto& lane = read ? pair.server_qps().lanes()[0] : pair.client_qps().lanes()[0];
    (read ? lane.exposed : lane.local)[77] ^= std::byte{0x80};
    run.finish();
    INFO(plan.info().name);
    const Verdict& verdict = read ? run.client.verdict() : run.server.verdict();
    REQUIRE_FALSE(verdict.passed());
    CHECK(verdict.first->offset == 77);
    CHECK(verdict.first->message == 0);
  }
}

TEST_CASE("A word that somebody else changes fails the atomics' verdict", "[validation]") {
  Plan plan = quick_plan(Test::ATOMIC_BW, 8, 20);
  adjust(plan, Switch::OFF);
  Pair pair;
  pair.connect(plan);
  pair.server_qps().lanes()[0].exposed[0] = std::byte{1};
  Run run(pair, plan, plan.size);
  run.finish();
  run.server.check_exposed(plan.iterations);
  CHECK_FALSE(run.client.verdict().passed());
  CHECK_FALSE(run.server.verdict().passed());
}

TEST_CASE("RC recovers from loss, and the data is whole", "[fault]") {
  for (const Test test : {Test::WRITE_BW, Test::READ_BW, Test::SEND_BW, Test::ATOMIC_BW,
                          Test::WRITE_LAT, Test::READ_LAT, Test::SEND_LAT, Test::ATOMIC_LAT}) {
    const bool atomic = info_of(test).verb == Verb::ATOMIC;
    Plan plan = quick_plan(test, atomic ? 8 : 5000, 200);
    plan.qp_timeout = 8;  // about a millisecond
    adjust(plan, Switch::OFF);
    Pair pair({rule("drop:rate=0.01"), rule("drop:rate=0.01,dir=rx")});
    pair.connect(plan);
    Run run(pair, plan, plan.size);
    run.finish();
    INFO(plan.info().name << ": "
                          << (run.client.failure() ? run.client.failure()->to_string() : ""));
    REQUIRE(run.client_end == Step::DONE);
    REQUIRE(run.server_end == Step::DONE);
    run.server.check_exposed(plan.iterations);
    CHECK(run.client.verdict().passed());
    CHECK(run.server.verdict().passed());
    CHECK(pair.client().counters().retransmitted_packets +
              pair.server().counters().retransmitted_packets +
              pair.client().counters().implied_nak_seq_err >
          0);
  }
}

TEST_CASE("UD counts the messages that were lost and is content", "[fault]") {
  Plan plan = quick_plan(Test::SEND_BW, 100, 500);
  plan.transport = verbs::QpType::UD;
  adjust(plan, Switch::OFF);
  Pair pair({rule("drop:nth=7"), rule("drop:nth=100")});
  pair.connect(plan);
  Run run(pair, plan, plan.size);
  run.finish();
  REQUIRE(run.server_end == Step::DONE);
  CHECK(run.server.verdict().lost == 2);
  CHECK(run.server.verdict().passed());
  CHECK(run.server.verdict().messages == 498);
}

TEST_CASE("UC WRITEs that were lost show as bytes that never came", "[fault]") {
  Plan plan = quick_plan(Test::WRITE_BW, 64, 64);  // as many as the ring has places
  plan.transport = verbs::QpType::UC;
  adjust(plan, Switch::OFF);
  Pair pair({rule("drop:nth=7")});
  pair.connect(plan);
  Run run(pair, plan, plan.size);
  run.finish();
  REQUIRE(run.server_end == Step::DONE);
  for (int i = 0; i < 100; ++i) pair.turn();
  run.server.check_exposed(plan.iterations);
  CHECK(run.server.verdict().passed());
  // The pattern has a zero among 64 bytes now and then, which counts as come.
  CHECK(run.server.verdict().lost > 60);
  CHECK(run.server.verdict().lost <= 64);
}

TEST_CASE("A peer that vanishes ends the client with status 12 and advice", "[fault]") {
  for (const Test test : {Test::WRITE_BW, Test::READ_BW, Test::SEND_BW, Test::ATOMIC_BW,
                          Test::WRITE_LAT, Test::READ_LAT, Test::SEND_LAT}) {
    const bool atomic = info_of(test).verb == Verb::ATOMIC;
    Plan plan = quick_plan(test, atomic ? 8 : 5000, 200);
    plan.qp_timeout = 5;
    adjust(plan, Switch::OFF);
    // Nothing that the client sends arrives. In write_lat the server, which begins, may notice
    // first.
    Pair pair({rule("drop:opcode=RC_")});
    pair.connect(plan);
    Run run(pair, plan, plan.size);
    run.finish(2'000'000);
    INFO(plan.info().name);
    const bool server_first = test == Test::WRITE_LAT && run.server_end == Step::FAILED;
    REQUIRE((server_first || run.client_end == Step::FAILED));
    const DataPlane& failed = server_first ? run.server : run.client;
    CHECK_THAT(failed.failure()->to_string(), Catch::Contains("status 12"));
    CHECK_THAT(failed.failure()->to_string(), Catch::Contains("UDP port 4791"));
  }
}

TEST_CASE("A message longer than the receive buffer is an error with advice", "[fault]") {
  Plan plan = quick_plan(Test::SEND_BW, 256, 20);
  adjust(plan, Switch::OFF);
  Pair pair;
  pair.connect(plan);
  Plan server_plan = plan;
  server_plan.role = Role::SERVER;
  DataPlane server(pair.server_qps(), server_plan, 128);
  DataPlane client(pair.client_qps(), plan, 256);
  REQUIRE(server.prepare() == Step::RUNNING);
  Step of_client = Step::RUNNING, of_server = Step::RUNNING;
  for (int i = 0; i < 100'000; ++i) {
    pair.turn();
    if (of_client == Step::RUNNING) of_client = client.step(pair.now());
    if (of_server == Step::RUNNING) of_server = server.step(pair.now());
  }
  REQUIRE(of_server == Step::FAILED);
  CHECK_THAT(server.failure()->to_string(), Catch::Contains("same -s"));
  REQUIRE(of_client == Step::FAILED);
  CHECK_THAT(client.failure()->to_string(), Catch::Contains("REM_INV_REQ_ERR"));
}

TEST_CASE("A client that sends fewer messages than the server expects is found out", "[fault]") {
  Plan plan = quick_plan(Test::SEND_BW, 64, 20);
  adjust(plan, Switch::OFF);
  Pair pair;
  pair.connect(plan);
  Plan server_plan = plan;
  server_plan.role = Role::SERVER;
  server_plan.iterations = 30;
  DataPlane server(pair.server_qps(), server_plan, 64);
  DataPlane client(pair.client_qps(), plan, 64);
  REQUIRE(server.prepare() == Step::RUNNING);
  Step of_client = Step::RUNNING, of_server = Step::RUNNING;
  for (int i = 0; i < 500'000 && of_server == Step::RUNNING; ++i) {
    pair.turn();
    if (of_client == Step::RUNNING) of_client = client.step(pair.now());
    if (of_client == Step::DONE) server.peer_ended();
    of_server = server.step(pair.now());
  }
  REQUIRE(of_server == Step::FAILED);
  CHECK_THAT(server.failure()->to_string(), Catch::Contains("20 of 30") && Catch::Contains("-n"));
}
