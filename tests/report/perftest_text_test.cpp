// The tables stand here letter by letter: scripts that read perftest's read ours.
#include "report/perftest_text.hpp"

#include <catch2/catch.hpp>

using namespace roce;
using namespace roce::report;
using namespace roce::traffic::perftest;

TEST_CASE("a bandwidth table has perftest's columns in either unit", "[report][text]") {
  CHECK(bandwidth_heading(RateUnit::MIB_PER_S) ==
        " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n");
  CHECK(bandwidth_heading(RateUnit::GBIT_PER_S).find("BW average[Gb/sec]") != std::string::npos);
  BandwidthResult result;
  result.size = 65536;
  result.iterations = 5000;
  result.peak_bytes_per_s = 2e9;
  result.average_bytes_per_s = 1.25e9;
  result.messages_per_s = 19073.486;
  CHECK(bandwidth_row(result, RateUnit::GBIT_PER_S) ==
        " 65536      5000             16.00              10.00  \t\t   0.019073\n");
  CHECK(bandwidth_row(result, RateUnit::MIB_PER_S) ==
        " 65536      5000             1907.35            1192.09\t\t   0.019073\n");
  result.peak_bytes_per_s.reset();  // -N
  CHECK(bandwidth_row(result, RateUnit::GBIT_PER_S).find(" 0.00  ") != std::string::npos);
}

TEST_CASE("a latency table has all columns by iterations and few by duration", "[report][text]") {
  LatencyResult result;
  result.size = 2;
  result.iterations = 999;
  result.min_us = 1.5;
  result.max_us = 100;
  result.typical_us = 2;
  result.average_us = 2.25;
  result.stdev_us = 0.5;
  result.p99_us = 9;
  result.p999_us = 99;
  result.transactions_per_s = 222222.2;
  CHECK(latency_row(result, Until::ITERATIONS) ==
        " 2       999              1.50           100.00       2.00     \t       2.25        "
        "\t0.50   \t\t9.00    \t\t99.00  \n");
  CHECK(latency_row(result, Until::DURATION) ==
        " 2             999            2.25          222222.20\n");
  CHECK(latency_heading(Until::ITERATIONS).find("99.9% percentile[usec]") != std::string::npos);
  CHECK(latency_heading(Until::DURATION).find("tps average") != std::string::npos);
}

TEST_CASE("the addresses show what the verb needs of them", "[report][text]") {
  QpAddress address;
  address.qpn = Qpn{0x11};
  address.psn = Psn{0xabc};
  address.rkey = 0x2b0;
  address.vaddr = 0x7f0012345678;
  address.out_reads = 16;
  address.gid = IpAddress::v4(198, 18, 0, 1);
  CHECK(address_lines(Side::LOCAL, address, Verb::SEND) ==
        " local address: LID 0000 QPN 0x000011 PSN 0x000abc\n GID: 198.18.0.1\n");
  CHECK(address_lines(Side::REMOTE, address, Verb::WRITE) ==
        " remote address: LID 0000 QPN 0x000011 PSN 0x000abc RKey 0x0002b0 VAddr 0x7f0012345678\n"
        " GID: 198.18.0.1\n");
  CHECK(address_lines(Side::LOCAL, address, Verb::READ).find(" OUT 0x10 RKey") !=
        std::string::npos);
}

TEST_CASE("the heading names what is run, and nothing that does not apply", "[report][text]") {
  Plan plan = default_plan(Test::WRITE_BW, Role::CLIENT);
  const std::string one_way = run_heading(plan, "wire", 2);
  CHECK(one_way.find("RDMA_Write BW Test") != std::string::npos);
  CHECK(one_way.find("Number of qps   : 2") != std::string::npos);
  CHECK(one_way.find("Outstand reads") == std::string::npos);
  plan.direction = Direction::BOTH_WAYS;
  CHECK(run_heading(plan, "wire", 2).find("RDMA_Write Bidirectional BW Test") != std::string::npos);
}
