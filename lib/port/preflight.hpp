// preflight: what stands between a port's spec and a running port, found before EAL starts, each
// with the command that mends it. Reads the system, changes nothing. No DPDK.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "port/spec.hpp"
#include "verbs/enums.hpp"

namespace roce::port {

enum class Severity : std::uint8_t {
  INFO,     ///< good to know
  WARNING,  ///< runs, but slower or less than it could
  ERROR,    ///< will not run, or not right
};
[[nodiscard]] std::string_view severity_name(Severity severity);

struct Finding {
  Severity severity = Severity::INFO;
  std::string what;     ///< what was found
  std::string why;      ///< why it matters
  std::string command;  ///< what mends it; empty when nothing needs to or no command can

  /// "warning: WHAT: WHY\n    COMMAND"
  [[nodiscard]] std::string to_string() const;
};

/// The file systems that tell about the machine; tests put others in their place.
struct PreflightRoots {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string dev = "/dev";
};

/// All findings, errors first. mtu: --mtu, when given.
[[nodiscard]] std::vector<Finding> check(const PortSpec& spec,
                                         std::optional<std::uint16_t> mtu = {},
                                         const PreflightRoots& roots = {});

/// The largest path MTU that fits an interface's, by Linux's rule of 80 bytes for headers; none
/// below 336.
[[nodiscard]] std::optional<verbs::Mtu> path_mtu_for(std::uint32_t interface_mtu);

}  // namespace roce::port
