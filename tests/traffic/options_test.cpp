#include "traffic/perftest/options.hpp"

#include <catch2/catch.hpp>

#include <sstream>

#include "traffic/perftest/flag_table.hpp"

using namespace roce;
using namespace roce::traffic::perftest;

namespace {

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

PerfOptions parsed(const std::string& line) {
  auto options = parse_perf_options(words(line));
  INFO(line << ": " << (options ? "" : options.error().to_string()));
  REQUIRE(options);
  return *options;
}

std::string error_of(const std::string& line) {
  auto options = parse_perf_options(words(line));
  INFO(line);
  REQUIRE_FALSE(options);
  return options.error().to_string();
}

}  // namespace

TEST_CASE("A test without options has perftest's defaults", "[options]") {
  const PerfOptions write_bw = parsed("write_bw");
  CHECK(write_bw.plan.role == Role::SERVER);
  CHECK(write_bw.plan.size == 65536);
  CHECK(write_bw.plan.iterations == 5000);
  CHECK(write_bw.plan.tx_depth == 128);
  CHECK(write_bw.plan.cq_mod == 1);  // 65536 bytes are above the limit of moderation
  CHECK(write_bw.plan.inline_max == 0);
  CHECK(write_bw.plan.qp_timeout == 14);
  CHECK(write_bw.tcp_port == 18515);
  CHECK(write_bw.report.unit == RateUnit::MIB_PER_S);
  CHECK(write_bw.port.specs.empty());

  CHECK(parsed("read_bw").plan.iterations == 1000);
  CHECK(parsed("send_bw").plan.rx_depth == 512);
  CHECK(parsed("send_bw -s 64").plan.cq_mod == 100);
  const PerfOptions send_lat = parsed("send_lat 198.18.0.1");
  CHECK(send_lat.plan.role == Role::CLIENT);
  CHECK(send_lat.host == "198.18.0.1");
  CHECK(send_lat.plan.size == 2);
  CHECK(send_lat.plan.iterations == 1000);
  CHECK(send_lat.plan.inline_max == 220);
  CHECK(parsed("atomic_bw").plan.size == 8);
  CHECK(parsed("ib_read_lat").plan.test == Test::READ_LAT);
}

TEST_CASE("perftest's short and long names set the same values", "[options]") {
  for (const std::string line :
       {"write_bw -s 1M -n 10 -q 4 -t 16 -m 2048 -c UC -b -I 64 -Q 8 -u 18 -p 4000 -N -S 3 -L 7",
        "write_bw --size=1048576 --iters=10 --qp=4 --tx-depth=16 --path-mtu=2048 --connection=UC "
        "--bidirectional --inline_size=64 --cq-mod=8 --qp-timeout=18 --tcp-port=4000 --noPeak "
        "--sl=3 --hop_limit=7"}) {
    const PerfOptions options = parsed(line);
    CHECK(options.plan.size == 1'048'576);
    CHECK(options.plan.iterations == 10);
    CHECK(options.plan.qps == 4);
    CHECK(options.plan.tx_depth == 10);  // not more than the iterations
    CHECK(options.path_mtu == verbs::Mtu::MTU_2048);
    CHECK(options.plan.transport == verbs::QpType::UC);
    CHECK(options.plan.direction == Direction::BOTH_WAYS);
    CHECK(options.plan.inline_max == 64);
    CHECK(options.plan.cq_mod == 8);
    CHECK(options.plan.qp_timeout == 18);
    CHECK(options.tcp_port == 4000);
    CHECK(options.plan.peak == Switch::OFF);
    CHECK(options.plan.hop_limit == 7);
  }
}

TEST_CASE("Flags stick together and to their values as getopt takes them", "[options]") {
  const PerfOptions options = parsed("write_bw -q8 -bN -s64");
  CHECK(options.plan.qps == 8);
  CHECK(options.plan.direction == Direction::BOTH_WAYS);
  CHECK(options.plan.peak == Switch::OFF);
  CHECK(options.plan.size == 64);
}

TEST_CASE("Own flags describe the port", "[options]") {
  const PerfOptions options = parsed(
      "send_bw --port afpacket:eth0 --ip 198.18.0.1/24 --ip fd00::1/64 --mac 02:00:00:00:00:07 "
      "--gateway 198.18.0.254 --vlan 12:5 --mtu 4200 --eal --in-memory --capture x.pcapng "
      "--fault drop:rate=0.01 --fault delay:by=1ms --seed 7 --json - --quiet --tclass 0x62");
  REQUIRE(options.port.specs.size() == 1);
  CHECK(options.port.specs[0].interface == "eth0");
  REQUIRE(options.port.addresses.size() == 2);
  CHECK(options.port.addresses[1].length == 64);
  CHECK(options.port.mac->to_string() == "02:00:00:00:00:07");
  CHECK(options.port.gateways.size() == 1);
  CHECK(options.port.vlan_tci == std::uint16_t{5 << 13 | 12});
  CHECK(options.port.mtu == 4200);
  CHECK(options.port.eal == "--in-memory");
  CHECK(options.port.capture_file == "x.pcapng");
  CHECK(options.port.faults.size() == 2);
  CHECK(options.seed == 7);
  CHECK(options.plan.pattern_seed == 7);
  CHECK(options.report.json_file == "-");
  CHECK(options.report.verbosity == Verbosity::QUIET);
  CHECK(options.plan.traffic_class == 0x62);
}

TEST_CASE("The service level becomes the VLAN's PCP unless that is given", "[options]") {
  CHECK(parsed("send_bw --vlan 12 -S 3").port.vlan_tci == std::uint16_t{3 << 13 | 12});
  CHECK(parsed("send_bw --vlan 12:1 -S 3").port.vlan_tci == std::uint16_t{1 << 13 | 12});
}

TEST_CASE("A run by duration measures no peak and needs room for its margins", "[options]") {
  const PerfOptions options = parsed("write_bw -D 10");
  CHECK(options.plan.until == Until::DURATION);
  CHECK(options.plan.duration == Duration::seconds(10));
  CHECK(options.plan.peak == Switch::OFF);
  CHECK(parsed("write_bw -D 1 -f 0").plan.margin == Duration::seconds(0));
  CHECK_THAT(error_of("write_bw -D 4"), Catch::Contains("twice the margin"));
}

TEST_CASE("Each wrong use is refused with its place and a fix", "[options]") {
  const std::vector<std::pair<std::string, std::string>> table{
      {"", "no test is named"},
      {"frobnicate", "frobnicate: is no test"},
      {"write_bw host another", "another: comes after the host"},
      {"write_bw --siez 8", "did you mean --size?"},
      {"write_bw -Y", "-Y: is no option"},
      {"write_bw -s", "-s: needs a value: BYTES"},
      {"write_bw -s 0", "outside 1 to 8388608"},
      {"write_bw -s 9M", "outside 1 to 8388608"},
      {"write_bw -s 1q", "is no size"},
      {"write_bw -n 4", "-n 4: is outside 5 to"},
      {"write_bw -n ten", "-n ten: is no number"},
      {"write_bw -n -5", "-n"},
      {"write_bw -n 10 -n 11", "-n: is given twice"},
      {"write_bw -n 10 -D 10", "-D: does not go with -n"},
      {"write_bw -a -s 8", "-a: does not go with -s"},
      {"write_bw -a -D 10", "-a: does not go with -D"},
      {"atomic_bw -a", "-a: atomics are always 8 bytes"},
      {"atomic_bw -s 16", "-s 16: atomics are always 8 bytes"},
      {"atomic_bw -A ADD", "FETCH_AND_ADD or CMP_AND_SWAP"},
      {"write_bw -A FETCH_AND_ADD", "-A: write_bw does no atomics"},
      {"write_bw -c DC", "-c DC: is no transport of ours; RC, UC or UD"},
      {"read_bw -c UC", "read_bw needs RC"},
      {"atomic_lat -c UD", "atomic_lat needs RC"},
      {"write_bw -c UD", "only carries SENDs"},
      {"send_lat -b", "-b: a latency test is a ping-pong already"},
      {"send_lat -q 2", "-q: a latency test runs on one QP"},
      {"send_lat -l 2", "-l: a latency test posts one message"},
      {"send_lat -w 3", "measures no rate"},
      {"write_bw -H", "-H: a bandwidth test records no latencies"},
      {"write_bw --output latency", "bandwidth or message_rate"},
      {"write_bw -r 5", "-r: write_bw posts no receives"},
      {"write_bw -o 5", "-o: write_bw has no READs"},
      {"read_bw -o 129", "-o 129: is outside 1 to 128"},
      {"write_bw -m 1000", "-m 1000: is no path MTU"},
      {"write_bw -u 32", "-u 32: is outside 0 to 31"},
      {"write_bw -q 0", "-q 0: is outside 1 to 16384"},
      {"write_bw -p 70000", "-p 70000: is outside 1 to 65535"},
      {"write_bw --persistent somewhere", "--persistent: is for servers"},
      {"write_bw --port 18515", "-p 18515 or --tcp-port 18515"},
      {"write_bw --port nosuch:thing", "--port nosuch:thing"},
      {"write_bw --port null --port null", "is a second port"},
      {"write_bw --mtu 1024", "-m 1024 or --path-mtu 1024"},
      {"write_bw --ip 300.0.0.1/8", "--ip 300.0.0.1/8"},
      {"write_bw --mac 01:00:00:00:00:00", "is a multicast address"},
      {"write_bw --gateway x", "--gateway x"},
      {"write_bw --vlan 4095", "is no VLAN"},
      {"write_bw --vlan 5:9", "is no VLAN"},
      {"write_bw --fault explode", "--fault explode"},
      {"write_bw --seed x", "--seed x: is no number"},
      {"write_bw -w fast", "-w fast: is no positive number"},
  };
  for (const auto& [line, message] : table) CHECK_THAT(error_of(line), Catch::Contains(message));
}

TEST_CASE("Flags of perftest that cannot apply are refused with the reason", "[options]") {
  for (const ForeignFlag& flag : foreign_flags()) {
    const std::string line =
        "write_bw --" + std::string(flag.name) + (flag.argument.empty() ? "" : "=1");
    INFO(line);
    const auto options = parse_perf_options(words(line));
    if (flag.treatment == Treatment::REFUSED) {
      REQUIRE_FALSE(options);
      CHECK_THAT(options.error().to_string(), Catch::Contains(std::string(flag.reason)));
    } else {
      REQUIRE(options);
      REQUIRE(options->notes.size() == 1);
      CHECK_THAT(options->notes[0], Catch::Contains(std::string(flag.reason)));
    }
  }
  CHECK_THAT(error_of("write_bw -R"), Catch::Contains("-R"));
  CHECK(parsed("write_bw -d mlx5_0 -i 1 -x 3 -F").notes.size() == 4);
}

TEST_CASE("Help and version are shown whatever else is there", "[options]") {
  CHECK_THAT(parsed("--help").show, Catch::Contains("usage: roce-perf"));
  CHECK_THAT(parsed("write_bw -h").show, Catch::Contains("afpacket:IFACE"));
  CHECK_THAT(parsed("-V").show, Catch::Contains("roce-perf 0."));
  for (const Flag& flag : flags()) {
    if (flag.program == Program::ENDPOINT) continue;
    CHECK_THAT(perf_help(), Catch::Contains("--" + std::string(flag.name)));
  }
}

TEST_CASE("The endpoint serves the eight tests in the order of the documentation", "[options]") {
  const auto options = parse_endpoint_options(words("--port null --ip 198.18.0.1/24"));
  REQUIRE(options);
  REQUIRE(options->services.size() == 8);
  std::uint16_t port = 18515;
  for (const Test test : {Test::WRITE_BW, Test::WRITE_LAT, Test::READ_BW, Test::READ_LAT,
                          Test::SEND_BW, Test::SEND_LAT, Test::ATOMIC_BW, Test::ATOMIC_LAT}) {
    const Plan& plan = options->services.at(port++);
    CHECK(plan.test == test);
    CHECK(plan.until == Until::PEER_ENDS);
    CHECK(plan.role == Role::SERVER);
  }
  CHECK(options->services.at(18515).size == kMaxSize);
  CHECK(options->services.at(18516).size == 2);
}

TEST_CASE("The endpoint serves what --serve names, where it says", "[options]") {
  const auto options =
      parse_endpoint_options(words("--port null --serve send_bw=4000,write_bw -q 2"));
  REQUIRE(options);
  REQUIRE(options->services.size() == 2);
  CHECK(options->services.at(4000).test == Test::SEND_BW);
  CHECK(options->services.at(4000).qps == 2);
  CHECK(options->services.at(18515).test == Test::WRITE_BW);

  const std::vector<std::pair<std::string, std::string>> table{
      {"--serve nothing=3", "does not begin with a test"},
      {"--serve write_bw=", "has no TCP port"},
      {"--serve write_bw=0", "has no TCP port"},
      {"--serve write_bw=5,send_bw=5", "TCP port 5 is taken twice"},
      {"--serve=", "--serve"},
      {"write_bw", "write_bw: is not expected here"},
      {"-n 5", "is no option"},
      {"--persistent", "is no option"},
  };
  for (const auto& [line, message] : table) {
    INFO(line);
    const auto wrong = parse_endpoint_options(words(line));
    REQUIRE_FALSE(wrong);
    CHECK_THAT(wrong.error().to_string(), Catch::Contains(message));
  }
}
