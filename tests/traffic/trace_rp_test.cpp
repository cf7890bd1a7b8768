// The replay behind roce-gen trace-rp.
#include "traffic/trace_rp.hpp"

#include <catch2/catch.hpp>

namespace roce::test {
namespace {

using namespace traffic;

congestion::DcqcnConfig paper() {
  return congestion::make_preset("paper", Rate::gbps(40)).value();
}

std::string error_of(std::string_view text) {
  const auto events = read_rp_events(text, "events.json");
  return events ? "" : events.error().to_string();
}

}  // namespace

TEST_CASE("Events are read and put in the order of time") {
  const auto events = read_rp_events(R"([[5, "sent", 1000], [0.25, "cnp"], [5, "cnp"]])", "f");
  REQUIRE(events);
  REQUIRE(events->size() == 3);
  CHECK((*events)[0].at.ns() == 250);
  CHECK((*events)[0].cnp);
  CHECK((*events)[1].bytes == 1000);
  CHECK((*events)[2].cnp);
  CHECK(read_rp_events("[]", "f")->empty());
}

TEST_CASE("Wrong events are refused with the file, the element and the right form") {
  CHECK(error_of("[[0, \"cnp\"],\n[1, \"cnp\"").starts_with("events.json:2: "));
  CHECK(error_of("{}").starts_with("events.json: "));
  for (const std::string element :
       {R"("cnp")", R"([0])", R"(["0", "cnp"])", R"([-1, "cnp"])", R"([1e300, "cnp"])",
        R"([0, "cnp", 1])", R"([0, "CNP"])", R"([0, 7])", R"([0, "sent"])", R"([0, "sent", -1])",
        R"([0, "sent", 1.5])", R"([0, "sent", "1"])", R"([0, "sent", 1e300])",
        R"([0, "sent", 1, 2])"}) {
    CAPTURE(element);
    const std::string error = error_of("[[0, \"cnp\"], " + element + "]");
    CHECK(error.starts_with("events.json, element 1: "));
    CHECK(error.find("[t_us, \"cnp\"]") != std::string::npos);
  }
}

TEST_CASE("A trace is a row per event, up to the time asked for or the last event") {
  const auto events = read_rp_events(R"([[0, "cnp"]])", "f").value();
  const auto rows = trace_rp(paper(), Rate::gbps(40), events, Instant::from_ns(110'000));
  REQUIRE(rows.size() == 5);
  CHECK(trace_rp_table(rows) ==
        "        t_us  event             Rc Mb/s       Rt Mb/s     alpha     T    BC\n"
        "       0.000  CNP cut         20000.000     40000.000  1.000000     0     0\n"
        "      55.000  alpha           20000.000     40000.000  0.996094     0     0\n"
        "      55.000  FR (timer)      30000.000     40000.000  0.996094     1     0\n"
        "     110.000  alpha           30000.000     40000.000  0.992203     1     0\n"
        "     110.000  FR (timer)      35000.000     40000.000  0.992203     2     0\n");
  const auto later = read_rp_events(R"([[0, "cnp"], [110, "sent", 1]])", "f").value();
  CHECK(trace_rp(paper(), Rate::gbps(40), later, Instant::from_ns(0)).size() == 5);
}

TEST_CASE("More bytes at once than 32 bits hold are all counted") {
  const auto events = read_rp_events(R"([[0, "cnp"], [1, "sent", 10000000000]])", "f").value();
  const auto rows = trace_rp(paper(), Rate::gbps(40), events, Instant::from_ns(1'000));
  CHECK(rows.back().bc == 1000);
}

TEST_CASE("A trace as JSON says its schema, preset, knobs and rows") {
  const auto events = read_rp_events(R"([[0, "cnp"]])", "f").value();
  const auto rows = trace_rp(paper(), Rate::gbps(40), events, Instant::from_ns(0));
  const auto json = trace_rp_json(paper(), Rate::gbps(40), rows);
  CHECK(json["schema"] == "rocinante/roce-gen-trace-rp/1");
  CHECK(json["preset"] == "paper");
  CHECK(json["line_rate_gbps"] == 40.0);
  CHECK(json["knobs"].size() == congestion::knob_values(paper()).size());
  REQUIRE(json["rows"].size() == 1);
  CHECK(
      json["rows"][0].dump() ==
      R"({"t_us":0.0,"event":"CNP cut","rc_mbps":20000.0,"rt_mbps":40000.0,"alpha":1.0,"t":0,"bc":0})");
}

}  // namespace roce::test
