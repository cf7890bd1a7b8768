#include "fabric/fault_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "wire/opcode.hpp"

namespace roce::fabric {
namespace {

constexpr std::string_view kActions = "drop, corrupt, duplicate, delay, reorder, mark";
constexpr std::string_view kKeys =
    "psn, qpn, opcode, dir, rate, nth, max, seed, src, dst; by for delay and reorder";

constexpr std::string_view kHelp =
    "  --fault ACTION:KEY=VALUE,...  may be repeated; the first rule that picks a packet has it\n"
    "    drop | corrupt | duplicate | mark (Congestion Experienced)\n"
    "    delay     by=TIME           later by TIME (ns, us, ms, s; default 50us)\n"
    "    reorder   by=N              behind N later frames (default 3)\n"
    "    dir=tx|rx                   as this port sees it (default tx)\n"
    "    qpn=N, opcode=NAME          destination QP; opcode or the start of its name\n"
    "    src=IP, dst=IP              IP addresses\n"
    "    psn=N, psn=+N               PSN, or the Nth after the first one seen of that QP\n"
    "    rate=P                      with probability P\n"
    "    nth=K|all                   only the Kth such packet of a QP (default 1 beside psn)\n"
    "    max=N, seed=N               at most N times; seed of its random numbers\n"
    "    e.g. drop:psn=+3   drop:opcode=RC_ACKNOWLEDGE,nth=2   corrupt:rate=0.001,dir=rx\n"
    "         delay:rate=0.01,by=50us   reorder:rate=0.01   duplicate:psn=5,qpn=0x12\n";

std::string place(std::string_view text) {
  return fmt::format("--fault {}", text.empty() ? "\"\"" : text);
}

std::optional<std::uint64_t> number(std::string_view text, std::uint64_t limit) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || value > limit) return {};
  return value;
}

std::optional<double> probability(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  if (!(value > 0 && value <= 1)) return {};
  return value;
}

std::optional<Duration> duration(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::int64_t ns;
  };
  constexpr Unit units[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto value = number(text.substr(0, text.size() - unit.name.size()), 1'000'000'000);
    if (!value) continue;  // "50us" also ends with "s"
    return Duration::nanoseconds(unit.ns) * static_cast<std::int64_t>(*value);
  }
  return {};
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string opcode_names() {
  std::string names;
  for (const wire::OpcodeInfo& info : wire::kOpcodes)
    if (info.known()) names += (names.empty() ? "" : ", ") + std::string(info.name);
  return names;
}

/// The error of one key: what it got, and what it takes.
tl::unexpected<Error> wrong(const FaultRule& rule, std::string_view key, std::string_view value,
                            std::string_view takes) {
  return failure(place(rule.text), fmt::format("{}={} is not valid", key, value),
                 fmt::format("{} takes {}", key, takes));
}

Result<void> set_opcode(FaultRule& rule, std::string_view value) {
  const std::string prefix = upper(value);
  rule.opcodes.reset();
  for (std::size_t i = 0; i < wire::kOpcodes.size(); ++i)
    if (!prefix.empty() && wire::kOpcodes[i].known() && wire::kOpcodes[i].name.starts_with(prefix))
      rule.opcodes.set(i);
  if (rule.opcodes.none())
    return wrong(rule, "opcode", value, "one of these or how it starts: " + opcode_names());
  return {};
}

Result<void> set_psn(FaultRule& rule, std::string_view value) {
  std::string_view digits = value;
  if (digits.starts_with('+')) {
    rule.psn_origin = PsnOrigin::FIRST_SEEN;
    digits.remove_prefix(1);
  }
  const auto psn = number(digits, Psn::kMask);
  if (!psn) return wrong(rule, "psn", value, "a PSN from 0 to 0xffffff, or +N");
  rule.psn = static_cast<std::uint32_t>(*psn);
  return {};
}

Result<void> set_address(FaultRule& rule, std::string_view key, std::string_view value) {
  const auto address = IpAddress::from_string(value);
  if (!address) return wrong(rule, key, value, "an IPv4 or IPv6 address");
  (key == "src" ? rule.source : rule.destination) = *address;
  return {};
}

Result<void> set_by(FaultRule& rule, std::string_view value) {
  if (rule.action == FaultAction::DELAY) {
    const auto time = duration(value);
    if (!time || *time <= Duration{}) return wrong(rule, "by", value, "a time such as 50us or 2ms");
    rule.by_time = *time;
    return {};
  }
  if (rule.action == FaultAction::REORDER) {
    const auto frames = number(value, 10'000);
    if (!frames || *frames == 0) return wrong(rule, "by", value, "a count of frames, 1 to 10000");
    rule.by_frames = static_cast<std::uint32_t>(*frames);
    return {};
  }
  return failure(place(rule.text), fmt::format("{} has no key by", fault_action_name(rule.action)),
                 "by belongs to delay and reorder");
}

Result<void> set_number(FaultRule& rule, std::string_view key, std::string_view value) {
  if (key == "qpn") {
    const auto qpn = number(value, Qpn::kMask);
    if (!qpn) return wrong(rule, key, value, "a QP number from 0 to 0xffffff");
    rule.qpn = Qpn{static_cast<std::uint32_t>(*qpn)};
    return {};
  }
  const auto n = number(value, ~std::uint64_t{0});
  if (!n)
    return wrong(rule, key, value, key == "nth" ? "a count from 1, or all" : "a whole number");
  if (key == "seed") {
    rule.seed = *n;
    return {};
  }
  if (*n == 0)
    return wrong(rule, key, value, key == "nth" ? "a count from 1, or all" : "a count from 1");
  (key == "nth" ? rule.nth : rule.max) = *n;
  return {};
}

Result<void> set_key(FaultRule& rule, std::string_view key, std::string_view value) {
  if (key == "psn") return set_psn(rule, value);
  if (key == "src" || key == "dst") return set_address(rule, key, value);
  if (key == "opcode") return set_opcode(rule, value);
  if (key == "by") return set_by(rule, value);
  if (key == "nth" && value == "all") {
    rule.nth = 0;
    return {};
  }
  if (key == "qpn" || key == "seed" || key == "nth" || key == "max")
    return set_number(rule, key, value);
  if (key == "dir") {
    if (value != "tx" && value != "rx") return wrong(rule, key, value, "tx or rx");
    rule.direction = value == "rx" ? FaultDirection::RX : FaultDirection::TX;
    return {};
  }
  if (key == "rate") {
    const auto rate = probability(value);
    if (!rate) return wrong(rule, key, value, "a probability above 0 and up to 1, such as 0.01");
    rule.rate = *rate;
    return {};
  }
  return failure(place(rule.text), fmt::format("there is no key \"{}\"", key),
                 fmt::format("the keys are {}", kKeys));
}

std::optional<FaultAction> action_of(std::string_view word) {
  for (const auto action : {FaultAction::DROP, FaultAction::CORRUPT, FaultAction::DUPLICATE,
                            FaultAction::DELAY, FaultAction::REORDER, FaultAction::MARK})
    if (word == fault_action_name(action)) return action;
  return {};
}

}  // namespace

std::string_view fault_action_name(FaultAction action) {
  constexpr std::array<std::string_view, 6> names = {"drop",  "corrupt", "duplicate",
                                                     "delay", "reorder", "mark"};
  return names[static_cast<std::size_t>(action)];
}

Result<FaultRule> parse_fault_rule(std::string_view text) {
  FaultRule rule;
  rule.text = std::string(text);
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto action = action_of(text.substr(0, colon));
  if (!action)
    return failure(place(text), fmt::format("there is no action \"{}\"", text.substr(0, colon)),
                   fmt::format("the actions are {}; write ACTION:KEY=VALUE,...", kActions));
  rule.action = *action;

  std::string seen = ",";
  std::string_view rest = text.substr(std::min(colon + 1, text.size()));
  for (bool more = colon < text.size(); more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view pair = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    rest.remove_prefix(more ? comma + 1 : rest.size());
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return failure(place(text), fmt::format("\"{}\" is not KEY=VALUE", pair),
                     fmt::format("the keys are {}", kKeys));
    const std::string_view key = pair.substr(0, equals);
    if (auto set = set_key(rule, key, pair.substr(equals + 1)); !set)
      return tl::make_unexpected(set.error());
    if (seen.find(fmt::format(",{},", key)) != std::string::npos)
      return failure(place(text), fmt::format("{} is given twice", key),
                     "write another --fault for another condition");
    seen += fmt::format("{},", key);
  }
  if (rule.psn && seen.find(",nth,") == std::string::npos &&
      seen.find(",rate,") == std::string::npos)
    rule.nth = 1;
  return rule;
}

std::string_view fault_rule_help() {
  return kHelp;
}

}  // namespace roce::fabric
