// Options: the command line of roce-perf and roce-endpoint, understood and checked.
//
// parse_perf_options() and parse_endpoint_options() take what follows the program's name. They
// read no files and touch no device; what is wrong comes back as an Error with place, reason and
// fix. perftest's own flags keep their names, values and defaults, except for two long names that
// mean the NIC here: --port (perftest's is -p or --tcp-port) and --mtu (perftest's is -m or
// --path-mtu).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/address.hpp"
#include "base/result.hpp"
#include "port/fault_rule.hpp"
#include "port/spec.hpp"
#include "traffic/perftest/meter.hpp"
#include "traffic/perftest/plan.hpp"

namespace roce::traffic::perftest {

inline constexpr std::uint16_t kDefaultTcpPort = 18515;

/// The NIC side, common to all programs.
struct PortSettings {
  std::vector<port::PortSpec> specs;  ///< empty: none given
  std::vector<IpPrefix> addresses;    ///< --ip; empty: those of the interface
  std::optional<MacAddress> mac;
  std::vector<IpAddress> gateways;
  std::optional<std::uint16_t> vlan_tci;
  std::optional<std::uint16_t> mtu;
  std::string eal;
  std::string capture_file;
  std::vector<port::FaultRule> faults;
};

enum class Verbosity : std::uint8_t { QUIET, NORMAL };
enum class AddressFamily : std::uint8_t { ANY, V6 };

/// How results are printed.
struct ReportSettings {
  RateUnit unit = RateUnit::MIB_PER_S;
  Switch histogram = Switch::OFF;  ///< -H: all latencies, sorted
  Switch unsorted = Switch::OFF;   ///< -U: in the order of time
  std::string only;                ///< --output: bandwidth, message_rate or latency; empty: all
  std::string json_file;           ///< --json: a file, or "-"
  std::string perftest_json_file;  ///< --out_json, in perftest's own layout
  Verbosity verbosity = Verbosity::NORMAL;
  std::optional<double> least_bandwidth;     ///< -w, in `unit`
  std::optional<double> least_message_rate;  ///< -y, in millions a second
};

struct PerfOptions {
  Plan plan;
  std::optional<verbs::Mtu> path_mtu;  ///< -m; without it the port decides, see fit_to_port()
  PortSettings port;
  ReportSettings report;
  std::string host;  ///< empty: server
  std::uint16_t tcp_port = kDefaultTcpPort;
  Switch persistent = Switch::OFF;  ///< a server that serves one client after the other
  Switch check_only = Switch::OFF;  ///< --check
  AddressFamily family = AddressFamily::ANY;
  std::optional<std::uint64_t> seed;
  std::vector<std::string>
      notes;         ///< flags that were taken and change nothing, each with the reason
  std::string show;  ///< not empty: print this and exit 0 (--help, --version)
};

/// What roce-endpoint serves: a TCP port for each test.
struct EndpointOptions {
  std::map<std::uint16_t, Plan> services;  ///< by TCP port
  std::optional<verbs::Mtu> path_mtu;
  PortSettings port;
  ReportSettings report;
  Switch check_only = Switch::OFF;
  AddressFamily family = AddressFamily::ANY;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> notes;
  std::string show;
};

[[nodiscard]] Result<PerfOptions> parse_perf_options(const std::vector<std::string>& arguments);
[[nodiscard]] Result<EndpointOptions> parse_endpoint_options(
    const std::vector<std::string>& arguments);

[[nodiscard]] std::string perf_help();
[[nodiscard]] std::string endpoint_help();

/// "65536", "64k" or "1M", as perftest's -s takes it; place: for the error.
[[nodiscard]] Result<std::uint64_t> parse_size(const std::string& place, const std::string& text);

}  // namespace roce::traffic::perftest
