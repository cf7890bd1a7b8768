#include <fmt/format.h>

#include "port/fault_rule.hpp"
#include "port/spec.hpp"
#include "traffic/perftest/arguments.hpp"
#include "traffic/perftest/flag_table.hpp"

#ifndef ROCE_VERSION
#error "the build system defines ROCE_VERSION"
#endif

namespace roce::traffic::perftest {
namespace {

std::string list_flags(Program program) {
  std::string text;
  for (const Group group :
       {Group::TEST, Group::CONNECTION, Group::REPORT, Group::PORT, Group::GENERAL}) {
    text += fmt::format("\n{}:\n", title_of(group));
    for (const Flag& flag : flags()) {
      if (flag.group != group || (flag.program != Program::BOTH && flag.program != program))
        continue;
      const std::string letter = flag.letter == 0 ? "   " : fmt::format("-{},", flag.letter);
      const std::string argument = flag.argument.empty() ? "" : fmt::format(" {}", flag.argument);
      text += fmt::format("  {} {:<30} {}\n", letter, fmt::format("--{}{}", flag.name, argument),
                          flag.help);
    }
  }
  return text;
}

std::string port_help() {
  return fmt::format("\nSPEC of --port:\n{}\nRULE of --fault:\n{}\n", port::port_spec_help(),
                     port::fault_rule_help());
}

constexpr std::string_view kPerfHead = R"(usage: roce-perf TEST [options] [HOST]

The counterpart of perftest's ib_* programs: a server without HOST, a client with it. Either side
may be an unmodified ib_* program of the same test. TEST is write_bw, write_lat, read_bw, read_lat,
send_bw, send_lat, atomic_bw or atomic_lat.

Two long names differ from perftest's: --port names the NIC (the TCP port is -p or --tcp-port), and
--mtu is the MTU of the port (the path MTU is -m or --path-mtu). Without --port both ends run in
this process, joined by memory.

Examples:
  roce-perf write_bw                                   both ends here, over memory
  roce-perf write_bw --port afpacket:eth1              a server on eth1; then, on another host:
    ib_write_bw -x 1 198.18.0.1                        its address
  roce-perf send_lat --port 0000:81:00.0 --ip 198.18.0.2/24 -n 10000 198.18.0.1
  roce-perf read_bw -q 8 -s 1M --data_validation --json - --capture read.pcapng
  roce-perf write_bw --fault drop:rate=0.01            recovery from loss

Exit status: 0 passed, 1 failed or below a limit, 2 wrong usage or set-up.
)";

constexpr std::string_view kEndpointHead = R"(usage: roce-endpoint --port SPEC [options]

A standing endpoint: serves perftest's clients, several at a time, until SIGINT or SIGTERM. Each
test has a TCP port of its own; without --serve: write_bw 18515, write_lat 18516, read_bw 18517,
read_lat 18518, send_bw 18519, send_lat 18520, atomic_bw 18521, atomic_lat 18522. Clients choose
sizes and iterations freely; -s of write_lat and -c, -b and -q must be the same at both ends.

Examples:
  roce-endpoint --port afpacket:eth1
    ib_send_bw -x 1 -p 18519 198.18.0.1                on another host
  roce-endpoint --port 0000:81:00.0 --ip 198.18.0.1/24 --serve write_bw=18515,send_bw=18600 -q 4

Exit status: 0 stopped by a signal, 2 wrong usage or set-up.
)";

}  // namespace

std::string perf_help() {
  return std::string(kPerfHead) + list_flags(Program::PERF) + port_help();
}

std::string endpoint_help() {
  return std::string(kEndpointHead) + list_flags(Program::ENDPOINT) + port_help();
}

std::string version_text(const std::string& program) {
  return fmt::format("{} {} (compatible with perftest 4.5 and later)\n", program, ROCE_VERSION);
}

}  // namespace roce::traffic::perftest
