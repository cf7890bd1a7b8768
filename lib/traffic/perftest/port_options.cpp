#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "traffic/perftest/arguments.hpp"

namespace roce::traffic::perftest {
namespace {

using Done = Result<void>;

bool all_digits(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

Done apply_specs(const Arguments& arguments, PortSettings& port) {
  for (const std::string& text : arguments.texts("port")) {
    if (all_digits(text))
      return failure("--port " + text, "names a NIC here, not a TCP port",
                     fmt::format("-p {} or --tcp-port {}", text, text));
    auto spec = port::parse_port_spec(text);
    if (!spec) return tl::make_unexpected(spec.error());
    port.specs.push_back(*spec);
  }
  if (port.specs.size() > 1)
    return failure("--port " + port.specs[1].text, "is a second port, and a run uses one",
                   "give --port once");
  return {};
}

Done apply_addresses(const Arguments& arguments, PortSettings& port) {
  for (const std::string& text : arguments.texts("ip")) {
    auto prefix = IpPrefix::from_string(text);
    if (!prefix)
      return failure("--ip " + text, prefix.error().reason, "as in 198.18.0.1/24 or fd00::1/64");
    port.addresses.push_back(*prefix);
  }
  for (const std::string& text : arguments.texts("gateway")) {
    auto address = IpAddress::from_string(text);
    if (!address) return failure("--gateway " + text, address.error().reason, "as in 198.18.0.254");
    port.gateways.push_back(*address);
  }
  if (const auto text = arguments.text("mac")) {
    auto mac = MacAddress::from_string(*text);
    if (!mac) return failure("--mac " + *text, mac.error().reason, "as in 02:00:00:00:00:01");
    if (mac->is_multicast())
      return failure("--mac " + *text, "is a multicast address", "an even first byte");
    port.mac = *mac;
  }
  return {};
}

Result<unsigned> number_below(const std::string& text, unsigned bound) {
  unsigned value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || value >= bound) return failure("", "", "");
  return value;
}

Done apply_vlan(const Arguments& arguments, PortSettings& port) {
  const auto sl = arguments.number("sl", 0, 7);
  if (!sl) return tl::make_unexpected(sl.error());
  const auto text = arguments.text("vlan");
  if (!text) return {};
  const std::size_t colon = text->find(':');
  const auto id = number_below(text->substr(0, colon), 4095);
  const auto pcp = colon == std::string::npos
                       ? Result<unsigned>(static_cast<unsigned>(sl->value_or(0)))
                       : number_below(text->substr(colon + 1), 8);
  if (!id || !pcp || *id == 0)
    return failure("--vlan " + *text, "is no VLAN", "ID[:PCP] with ID 1 to 4094 and PCP 0 to 7");
  port.vlan_tci = static_cast<std::uint16_t>(*pcp << 13 | *id);
  return {};
}

Done apply_mtu(const Arguments& arguments, PortSettings& port) {
  const auto mtu = arguments.number("mtu", 0, 65'535);
  if (!mtu) return tl::make_unexpected(mtu.error());
  if (!*mtu) return {};
  if (**mtu < 1280)
    return failure(fmt::format("--mtu {}", **mtu), "is the MTU of the port, 1280 or more",
                   fmt::format("-m {} or --path-mtu {} for a path MTU", **mtu, **mtu));
  port.mtu = static_cast<std::uint16_t>(**mtu);
  return {};
}

Done apply_faults(const Arguments& arguments, PortSettings& port) {
  for (const std::string& text : arguments.texts("fault")) {
    auto rule = port::parse_fault_rule(text);
    if (!rule) return tl::make_unexpected(rule.error());
    port.faults.push_back(*rule);
  }
  return {};
}

/// The server's side of a client that we know nothing about: any size, any number of messages.
Plan service_plan(Test test) {
  Plan plan = default_plan(test, Role::SERVER);
  plan.until = Until::PEER_ENDS;
  plan.peak = Switch::OFF;
  const bool must_agree = test == Test::WRITE_LAT || plan.verb() == Verb::ATOMIC;
  if (!must_agree) plan.size = kMaxSize;
  return plan;
}

Done apply_service(const Arguments& arguments, const std::string& text, EndpointOptions& options,
                   ApplyPlan apply_plan) {
  const std::size_t equals = text.find('=');
  const TestInfo* info = find_test(text.substr(0, equals));
  if (info == nullptr)
    return failure("--serve " + text, "does not begin with a test",
                   "TEST=PORT, as in write_bw=18515,send_bw=18519");
  std::uint16_t tcp_port =
      static_cast<std::uint16_t>(kDefaultTcpPort + static_cast<unsigned>(info->test));
  if (equals != std::string::npos) {
    const auto number = number_below(text.substr(equals + 1), 65'536);
    if (!number || *number == 0)
      return failure("--serve " + text, "has no TCP port behind the =", "1 to 65535");
    tcp_port = static_cast<std::uint16_t>(*number);
  }
  Plan plan = service_plan(info->test);
  if (options.seed) plan.pattern_seed = static_cast<std::uint32_t>(*options.seed & 0xff);
  if (auto done = apply_plan(arguments, plan); !done) return done;
  if (!options.services.emplace(tcp_port, plan).second)
    return failure("--serve " + text, fmt::format("TCP port {} is taken twice", tcp_port),
                   "a port of its own for each test");
  return {};
}

}  // namespace

Result<void> apply_port(const Arguments& arguments, PortSettings& port) {
  port.eal = arguments.text("eal").value_or("");
  port.capture_file = arguments.text("capture").value_or("");
  return apply_specs(arguments, port)
      .and_then([&] { return apply_addresses(arguments, port); })
      .and_then([&] { return apply_vlan(arguments, port); })
      .and_then([&] { return apply_mtu(arguments, port); })
      .and_then([&] { return apply_faults(arguments, port); });
}

Result<void> apply_services(const Arguments& arguments, EndpointOptions& options,
                            ApplyPlan apply_plan) {
  std::string list = arguments.text("serve").value_or(
      "write_bw,write_lat,read_bw,read_lat,send_bw,send_lat,atomic_bw,atomic_lat");
  std::istringstream stream(list);
  for (std::string text; std::getline(stream, text, ',');)
    if (auto done = apply_service(arguments, text, options, apply_plan); !done) return done;
  if (options.services.empty())
    return failure("--serve", "names no test", "TEST=PORT, as in write_bw=18515");
  return {};
}

}  // namespace roce::traffic::perftest
