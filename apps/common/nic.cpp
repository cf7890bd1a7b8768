#include "common/nic.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "port/preflight.hpp"

namespace roce::apps {
namespace {

using traffic::perftest::AddressFamily;
using traffic::perftest::PortSettings;

port::PortSpec spec_of(const PortSettings& settings) {
  if (!settings.specs.empty()) return settings.specs.front();
  return *port::parse_port_spec("wire");
}

/// Both ends of a port within this process need addresses that nobody has to invent.
constexpr IpPrefix first_v4() {
  return {IpAddress::v4(198, 18, 0, 1), 24};
}
IpPrefix next_address(IpPrefix prefix) {
  auto& last = prefix.address.bytes[15];
  last = static_cast<std::uint8_t>(last == 254 ? 1 : last + 1);
  return prefix;
}

Result<std::vector<IpPrefix>> addresses_of(const PortSettings& settings, const port::OpenPort& port,
                                           AddressFamily family) {
  std::vector<IpPrefix> addresses = settings.addresses;
  if (addresses.empty()) addresses = port.kernel_addresses();
  if (addresses.empty() && port.peer() != nullptr) {
    addresses = {first_v4()};
    if (family == AddressFamily::V6) addresses = {*IpPrefix::from_string("fd00::1/64")};
  }
  if (addresses.empty())
    return failure("--ip", fmt::format("{} has no address", port.io().info().name),
                   "give it one: --ip 198.18.0.1/24");
  if (family == AddressFamily::V6) {
    const auto found = std::stable_partition(addresses.begin(), addresses.end(),
                                             [](const IpPrefix& p) { return !p.address.is_v4(); });
    if (found == addresses.begin())
      return failure("--ipv6", "the port has no IPv6 address", "give it one: --ip fd00::1/64");
  }
  return addresses;
}

engine::NeighbourDuty duty_of(const port::OpenPort& port, const std::vector<IpPrefix>& addresses) {
  if (!port.io().info().kernel_has_address) return engine::NeighbourDuty::OURS;
  const auto& kernel = port.kernel_addresses();
  const bool all_known = std::all_of(addresses.begin(), addresses.end(), [&](const IpPrefix& ours) {
    return std::any_of(kernel.begin(), kernel.end(),
                       [&](const IpPrefix& k) { return k.address == ours.address; });
  });
  return all_known ? engine::NeighbourDuty::KERNEL : engine::NeighbourDuty::OURS;
}

}  // namespace

Result<Nic> Nic::open(const PortSettings& settings, AddressFamily family,
                      std::uint64_t fault_seed) {
  port::PortOptions options;
  options.spec = spec_of(settings);
  options.mtu = settings.mtu;
  options.capture_file = settings.capture_file;
  options.faults = settings.faults;
  options.fault_seed = fault_seed;
  options.eal = settings.eal;
  auto opened = port::open_port(options);
  if (!opened) return tl::make_unexpected(opened.error());
  auto addresses = addresses_of(settings, *opened, family);
  if (!addresses) return tl::make_unexpected(addresses.error());

  Nic nic(std::move(*opened), options.spec.text);
  nic.end_.io = &nic.port_.io();
  engine::InterfaceConfig& interface = nic.end_.interface;
  interface.mac = settings.mac.value_or(nic.end_.io->info().mac);
  interface.addresses = *addresses;
  interface.gateways = settings.gateways;
  interface.vlan_tci = settings.vlan_tci;
  interface.duty = duty_of(nic.port_, *addresses);
  if (nic.port_.peer() != nullptr) {
    nic.peer_ = NicEnd{nic.port_.peer(), interface};
    nic.peer_->interface.mac = nic.port_.peer()->info().mac;
    nic.peer_->interface.addresses = {next_address(addresses->front())};
  }
  return nic;
}

void Nic::flush_capture() {
  if (port_.capture() != nullptr) port_.capture()->writer().flush();
}

CheckReport check_port(const PortSettings& settings) {
  CheckReport report;
  for (const port::Finding& finding : port::check(spec_of(settings), settings.mtu)) {
    report.text += finding.to_string() + "\n";
    if (finding.severity == port::Severity::ERROR) report.status = 2;
  }
  if (report.text.empty()) report.text = "nothing is in the way\n";
  return report;
}

}  // namespace roce::apps
