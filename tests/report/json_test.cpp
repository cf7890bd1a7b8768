#include "report/json.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <unistd.h>

using namespace roce;
using namespace roce::report;

namespace {

/// A file that goes with the test.
struct TemporaryFile {
  ~TemporaryFile() { std::filesystem::remove(path); }
  [[nodiscard]] std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
  std::string path =
      (std::filesystem::temp_directory_path() / ("report-" + std::to_string(::getpid()) + ".json"))
          .string();
};

}  // namespace

TEST_CASE("every counter of the transport stands in the JSON under its name", "[report][json]") {
  transport::Counters counters;
  std::uint64_t value = 1;
  for (const auto& info : transport::counter_table()) counters.*info.member = value++;
  const Json json = to_json(counters);
  CHECK(json.size() == transport::counter_table().size());
  value = 1;
  for (const auto& info : transport::counter_table())
    CHECK(json.at(std::string{info.name}) == value++);
}

TEST_CASE("rejects that never occurred are left out, the others are named", "[report][json]") {
  engine::WorkerCounters counters;
  counters.verdicts[static_cast<std::size_t>(wire::Verdict::ROCE)] = 7;
  counters.verdicts[static_cast<std::size_t>(wire::Verdict::ICRC)] = 3;
  const Json json = to_json(counters);
  CHECK(json["frames"]["roce"] == 7);
  CHECK(json["frames"]["arp"] == 0);
  CHECK(json["rejects"] == Json{{"icrc", 3}});
}

TEST_CASE("rates are in the units of their names, and no peak is null", "[report][json]") {
  traffic::perftest::BandwidthResult result;
  result.average_bytes_per_s = 1.25e9;
  const Json json = to_json(result);
  CHECK(json["average_gbps"] == 10.0);
  CHECK(json["average_mib_per_s"].get<double>() == Approx(1192.0929));
  CHECK(json["peak_gbps"].is_null());
}

TEST_CASE("latency percentiles come from the samples", "[report][json]") {
  Histogram histogram;
  for (std::uint64_t ns = 1; ns <= 1000; ++ns) histogram.record(ns * 1000);
  const Json json = to_json(traffic::perftest::LatencyResult{}, histogram);
  CHECK(json["min_us"] == 1.0);
  CHECK(json["max_us"] == 1000.0);
  CHECK(json["p50_us"].get<double>() == Approx(500).epsilon(0.02));
  CHECK(json["p99_us"].get<double>() == Approx(990).epsilon(0.02));
  CHECK(json["p99_9_us"].get<double>() == Approx(999).epsilon(0.02));
}

TEST_CASE("what is written is JSON, whatever bytes the words had", "[report][json]") {
  const TemporaryFile file;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  REQUIRE(write_json(file.path, {{"name", "a\xff z\n"}, {"nan", nan}}));
  const Json back = Json::parse(file.text());
  CHECK(back["name"] == "a\xef\xbf\xbd z\n");
  CHECK(back["nan"].is_null());
}

TEST_CASE("a file that cannot be written is named with the reason", "[report][json]") {
  const auto done = write_json("/no/such/folder/x.json", Json::object());
  REQUIRE_FALSE(done);
  CHECK(done.error().to_string().find("/no/such/folder/x.json") != std::string::npos);
  if (std::FILE* full = std::fopen("/dev/full", "w")) {
    std::fclose(full);
    CHECK_FALSE(write_json("/dev/full", Json::object()));
  }
}
