// roce-gen trace-rp as its main() calls it.
#include "common/trace_rp_command.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "congestion/model.hpp"
#include "support/skip.hpp"

namespace roce::test {
namespace {

namespace fs = std::filesystem;

/// A folder that goes with the test, and the command run in it with its output caught.
class Command {
 public:
  Command() { fs::create_directories(folder_); }
  ~Command() { fs::remove_all(folder_); }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream{folder_ / name} << text;
    return (folder_ / name).string();
  }
  int run(const std::vector<std::string>& arguments) {
    std::fflush(nullptr);
    const int out = dup(1), err = dup(2);
    const std::string out_file = (folder_ / "out").string(), err_file = (folder_ / "err").string();
    REQUIRE(std::freopen(out_file.c_str(), "w", stdout) != nullptr);
    REQUIRE(std::freopen(err_file.c_str(), "w", stderr) != nullptr);
    const int code = apps::trace_rp_command(arguments);
    std::fflush(nullptr);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    output = read(out_file);
    errors = read(err_file);
    return code;
  }
  static std::string read(const fs::path& path) {
    std::ifstream stream{path};
    return {std::istreambuf_iterator<char>{stream}, {}};
  }

  std::string output, errors;

 private:
  fs::path folder_ = fs::temp_directory_path() / ("trace_rp." + std::to_string(getpid()));
};

}  // namespace

TEST_CASE("trace-rp prints the table, and JSON where it is asked for") {
  Command command;
  const std::string events = command.file("events.json", R"([[0, "cnp"]])");
  CHECK(command.run({"--preset", "paper", "--line-rate", "40Gbps", "--until", "60", events}) == 0);
  CHECK(command.output.starts_with("preset paper, line rate 40 Gb/s\n"));
  CHECK(command.output.find("20000.000") != std::string::npos);
  CHECK(command.errors.empty());
  CHECK(command.run({"--preset", "nvidia", "--line-rate", "100Gbps", "--set", "ai_rate=7", "--json",
                     "-", events}) == 0);
  const auto json = nlohmann::json::parse(command.output);
  CHECK(json["schema"] == "rocinante/roce-gen-trace-rp/1");
  CHECK(json["rows"][1]["rc_mbps"] == 51025.390625);
  CHECK(command.errors.starts_with("preset nvidia (changed), "));
  CHECK(command.run({"--help"}) == 0);
  CHECK(command.output.find("ns3_hpcc") != std::string::npos);
}

TEST_CASE("trace-rp refuses what is wrong in one line that says what and how to mend it") {
  Command command;
  const std::string good = command.file("good.json", "[]");
  const std::string bad = command.file("bad.json", R"([[0, "cnp"], [1, "boo"]])");
  using Arguments = std::vector<std::string>;
  for (const auto& [arguments, hint] : std::vector<std::pair<Arguments, std::string>>{
           {{"--line-rate", "40Gbps", good}, "--preset: it is missing"},
           {{"--preset", "paper", good}, "--line-rate: it is missing"},
           {{"--preset", "paper", "--line-rate", "40Gbps"}, "EVENTS.json"},
           {{"--preset", "papre", "--line-rate", "40Gbps", good}, "ns3_rdma"},
           {{"--preset", "paper", "--line-rate", "40", good}, "--line-rate: '40' is no rate"},
           {{"--preset", "paper", "--line-rate", "1Mbps", good}, "rp_min_rate"},
           {{"--preset", "paper", "--line-rate", "40Gbps", "--set", "x", good}, "KNOB=VALUE"},
           {{"--preset", "paper", "--line-rate", "40Gbps", "--set", "x=1", good},
            "--set x: there is no such"},
           {{"--preset", "paper", "--line-rate", "40Gbps", "--until", "-1", good}, "--until"},
           {{"--preset", "paper", "--line-rate", "40Gbps", "/nonexistent.json"},
            "/nonexistent.json"},
           {{"--preset", "paper", "--line-rate", "40Gbps", bad}, "bad.json, element 1"},
           {{"--preset", "paper", "--line-rate", "40Gbps", "--wat", good}, "--help"}}) {
    CHECK(command.run(arguments) == 2);
    CHECK(command.output.empty());
    CAPTURE(command.errors);
    CHECK(command.errors.find(hint) != std::string::npos);
    CHECK(std::count(command.errors.begin(), command.errors.end(), '\n') == 1);
  }
}

TEST_CASE("trace-rp's JSON is the trajectory of the reference model") {
  Command command;
  int compared = 0;
  const auto recordings = recorded("tables");
  for (const auto& recording : recordings) {
    const std::string name = recording["name"];
    if (!name.starts_with("H2 ") && !name.starts_with("H5 ")) continue;
    const std::string events = command.file("events.json", recording["events"].dump());
    const std::string json_file = events + ".out";
    REQUIRE(command.run({"--preset", recording["preset"].get<std::string>(), "--line-rate",
                         std::to_string(recording["line_mbps"].get<int>()) + "Mbps", "--until",
                         recording["until_us"].dump(), "--quiet", "--json", json_file, events}) ==
            0);
    const auto rows = nlohmann::json::parse(Command::read(json_file))["rows"];
    REQUIRE(rows.size() == recording["rows"].size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& row = recording["rows"][i];
      CHECK(rows[i]["t_us"] == row[0]);
      CHECK(rows[i]["event"] == row[1]);
      CHECK(rows[i]["rc_mbps"].get<double>() == Approx(row[2].get<double>()).epsilon(1e-12));
      CHECK(rows[i]["t"] == row[5]);
    }
    ++compared;
  }
  CHECK((compared == 2 || recordings.empty()));
}

TEST_CASE("trace-rp's JSON keeps to its schema for each preset") {
  if (std::system("python3 -c 'import jsonschema' >/dev/null 2>&1") != 0)
    return skip("python3-jsonschema is absent");
  Command command;
  const std::string events =
      command.file("events.json", R"([[0, "cnp"], [7, "sent", 100000000], [50.5, "cnp"]])");
  const std::string schema = ROCE_SOURCE_ROOT "/docs/schemas/roce-gen-trace-rp-1.schema.json";
  const std::string check = command.file(
      "check.py",
      "import json, jsonschema, sys\n"
      "jsonschema.Draft7Validator.check_schema(json.load(open(sys.argv[1])))\n"
      "jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))\n");
  for (const std::string_view preset : congestion::preset_names()) {
    CAPTURE(preset);
    const std::string json = events + "." + std::string{preset};
    REQUIRE(command.run({"--preset", std::string{preset}, "--line-rate", "100Gbps", "--quiet",
                         "--json", json, events}) == 0);
    const std::string line = "python3 '" + check + "' '" + schema + "' '" + json + "'";
    CHECK(std::system(line.c_str()) == 0);
  }
}

}  // namespace roce::test
