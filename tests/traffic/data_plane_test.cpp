#include "traffic/perftest/data_plane.hpp"

#include "traffic/pair.hpp"

using namespace roce;
using namespace roce::test;
using namespace roce::traffic::perftest;

namespace {

constexpr std::array kAllTests{Test::WRITE_BW, Test::WRITE_LAT, Test::READ_BW,   Test::READ_LAT,
                               Test::SEND_BW,  Test::SEND_LAT,  Test::ATOMIC_BW, Test::ATOMIC_LAT};
constexpr std::array kBwTests{Test::WRITE_BW, Test::READ_BW, Test::SEND_BW, Test::ATOMIC_BW};

}  // namespace

TEST_CASE("Each of the eight tests moves its data with perftest's defaults", "[data_plane]") {
  for (const Test test : kAllTests) {
    Plan plan = quick_plan(test, default_plan(test, Role::CLIENT).size, 200);
    run_and_pass(plan);
  }
}

TEST_CASE("Sizes around cache lines, MTUs and pages arrive whole", "[data_plane]") {
  constexpr std::array<std::uint64_t, 22> kSizes{1,    2,    3,    4,    5,    6,    7,    8,
                                                 9,    63,   64,   65,   1023, 1024, 1025, 2047,
                                                 2048, 2049, 4095, 4096, 4097, 65536};
  for (const std::uint64_t size : kSizes) {
    for (const Test test : kAllTests)
      if (info_of(test).verb != Verb::ATOMIC) run_and_pass(quick_plan(test, size, 70));
  }
}

TEST_CASE("Messages of a megabyte arrive whole", "[data_plane]") {
  for (const Test test : kAllTests)
    if (info_of(test).verb != Verb::ATOMIC) {
      Plan plan = quick_plan(test, 1 << 20, 6);
      plan.mtu = verbs::Mtu::MTU_4096;
      run_and_pass(plan);
    }
}

TEST_CASE("Every path MTU carries every test", "[data_plane]") {
  for (unsigned mtu = 1; mtu <= 5; ++mtu)
    for (const Test test : kAllTests) {
      Plan plan = quick_plan(test, 10'000, 20);
      plan.mtu = static_cast<verbs::Mtu>(mtu);
      run_and_pass(plan);
    }
}

TEST_CASE("Both ends send at once with -b", "[data_plane]") {
  for (const Test test : kBwTests) {
    Plan plan = quick_plan(test, 5000, 150);
    plan.direction = Direction::BOTH_WAYS;
    run_and_pass(plan);
  }
}

TEST_CASE("Eight QPs each move their own data", "[data_plane]") {
  for (const Test test : kBwTests) {
    for (const Direction direction : {Direction::ONE_WAY, Direction::BOTH_WAYS}) {
      Plan plan = quick_plan(test, 3000, 60);
      plan.qps = 8;
      plan.direction = direction;
      run_and_pass(plan);
    }
  }
}

TEST_CASE("UC carries WRITEs and SENDs", "[data_plane]") {
  for (const Test test : {Test::WRITE_BW, Test::WRITE_LAT, Test::SEND_BW, Test::SEND_LAT}) {
    Plan plan = quick_plan(test, 5000, 50);
    plan.transport = verbs::QpType::UC;
    // UC has no flow control: not more than the receiver posts, nor than the wire holds.
    plan.tx_depth = 16;
    run_and_pass(plan);
  }
}

TEST_CASE("UD carries SENDs of up to a path MTU", "[data_plane]") {
  for (const Test test : {Test::SEND_BW, Test::SEND_LAT}) {
    for (const unsigned size : {1U, 64U, 1024U}) {
      Plan plan = quick_plan(test, size, 100);
      plan.transport = verbs::QpType::UD;
      plan.tx_depth = 16;
      run_and_pass(plan);
    }
  }
}

TEST_CASE("Inline data, post lists and moderation change nothing in what arrives", "[data_plane]") {
  for (const Test test : {Test::WRITE_BW, Test::SEND_BW}) {
    for (const std::uint32_t cq_mod : {1U, 3U, 7U, 100U}) {
      Plan plan = quick_plan(test, 128, 333);
      plan.inline_max = 256;
      plan.cq_mod = cq_mod;
      plan.post_list = cq_mod == 7 ? 5 : 1;
      adjust(plan, Switch::ON);
      run_and_pass(plan);
    }
  }
}

TEST_CASE("Shallow queues work", "[data_plane]") {
  for (const Test test : kBwTests) {
    Plan plan = quick_plan(test, 4096, 40);
    plan.tx_depth = 1;
    plan.rx_depth = 1;
    run_and_pass(plan);
  }
}

TEST_CASE("Both kinds of atomics count without a gap", "[data_plane]") {
  for (const Test test : {Test::ATOMIC_BW, Test::ATOMIC_LAT}) {
    for (const AtomicType type : {AtomicType::FETCH_AND_ADD, AtomicType::CMP_AND_SWAP}) {
      Plan plan = quick_plan(test, 8, 300);
      plan.atomic = type;
      run_and_pass(plan);
    }
  }
}

TEST_CASE("A run over all sizes uses one set of QPs", "[data_plane]") {
  for (const Test test :
       {Test::WRITE_BW, Test::SEND_BW, Test::READ_LAT, Test::WRITE_LAT, Test::SEND_LAT}) {
    Plan plan = quick_plan(test, 65536, 5);
    plan.all_sizes = Switch::ON;
    adjust(plan, Switch::OFF);
    Pair pair;
    pair.connect(plan);
    for (const std::uint64_t size : sizes_of(plan)) {
      INFO(plan.info().name << " size " << size);
      Run run(pair, plan, size);
      run.finish();
      REQUIRE(run.client_end == Step::DONE);
      REQUIRE(run.server_end == Step::DONE);
      if (size == plan.size) run.server.check_exposed(plan.iterations);
      CHECK(run.client.verdict().passed());
      CHECK(run.server.verdict().passed());
    }
  }
}

TEST_CASE("A run by duration ends by the clock and counts what it sampled", "[data_plane]") {
  for (const Test test : kAllTests) {
    Plan plan = quick_plan(test, test == Test::ATOMIC_BW || test == Test::ATOMIC_LAT ? 8 : 2048, 5);
    plan.until = Until::DURATION;
    plan.duration = Duration::milliseconds(20);
    plan.margin = Duration::milliseconds(5);
    adjust(plan, Switch::OFF);
    Pair pair;
    pair.connect(plan);
    Run run(pair, plan, plan.size);
    run.finish(500'000);
    INFO(plan.info().name);
    INFO((run.client.failure() ? run.client.failure()->to_string() : ""));
    REQUIRE(run.client_end == Step::DONE);
    REQUIRE(run.server_end == Step::DONE);
    run.server.check_exposed({});
    CHECK(run.client.verdict().passed());
    CHECK(run.server.verdict().passed());
    if (plan.is_bw()) {
      CHECK(run.client.bandwidth()->messages > 100);
      CHECK(run.client.bandwidth()->elapsed == Duration::milliseconds(10));
    } else {
      CHECK(run.client.latency()->iterations > 100);
    }
  }
}

TEST_CASE("A server that knows no count serves until its peer ends", "[data_plane]") {
  for (const Test test : {Test::SEND_BW, Test::SEND_LAT, Test::WRITE_LAT}) {
    Plan plan = quick_plan(test, 64, 100);
    adjust(plan, Switch::OFF);
    Pair pair;
    pair.connect(plan);
    Plan server_plan = plan;
    server_plan.role = Role::SERVER;
    server_plan.until = Until::PEER_ENDS;
    DataPlane server(pair.server_qps(), server_plan, plan.size);
    DataPlane client(pair.client_qps(), plan, plan.size);
    REQUIRE(server.prepare() == Step::RUNNING);
    REQUIRE(client.prepare() == Step::RUNNING);
    Step of_client = Step::RUNNING, of_server = Step::RUNNING;
    for (int i = 0; i < 1'000'000 && of_server == Step::RUNNING; ++i) {
      pair.turn();
      if (of_client == Step::RUNNING) of_client = client.step(pair.now());
      if (of_client == Step::DONE) server.peer_ended();
      of_server = server.step(pair.now());
    }
    INFO(plan.info().name);
    CHECK(of_client == Step::DONE);
    CHECK(of_server == Step::DONE);
    CHECK(server.verdict().passed());
    CHECK(server.verdict().messages == 100);
  }
}

TEST_CASE("All resources of a run are given back", "[data_plane]") {
  Pair pair;
  for (int i = 0; i < 200; ++i) {  // far more QPs and regions than the worker holds at a time
    Plan plan = quick_plan(Test::WRITE_BW, 64, 5);
    plan.qps = 32;
    pair.connect(plan);
    pair.disconnect();
  }
  run_and_pass(quick_plan(Test::WRITE_BW, 64, 5));
}
