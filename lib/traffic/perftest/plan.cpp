#include "traffic/perftest/plan.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/check.hpp"
#include "port/preflight.hpp"

namespace roce::traffic::perftest {
namespace {

constexpr std::array<TestInfo, kTests> kTable{{
    {Test::WRITE_BW, "write_bw", "RDMA_Write BW Test", Verb::WRITE, Measure::BANDWIDTH},
    {Test::WRITE_LAT, "write_lat", "RDMA_Write Latency Test", Verb::WRITE, Measure::LATENCY},
    {Test::READ_BW, "read_bw", "RDMA_Read BW Test", Verb::READ, Measure::BANDWIDTH},
    {Test::READ_LAT, "read_lat", "RDMA_Read Latency Test", Verb::READ, Measure::LATENCY},
    {Test::SEND_BW, "send_bw", "Send BW Test", Verb::SEND, Measure::BANDWIDTH},
    {Test::SEND_LAT, "send_lat", "Send Latency Test", Verb::SEND, Measure::LATENCY},
    {Test::ATOMIC_BW, "atomic_bw", "Atomic BW Test", Verb::ATOMIC, Measure::BANDWIDTH},
    {Test::ATOMIC_LAT, "atomic_lat", "Atomic Latency Test", Verb::ATOMIC, Measure::LATENCY},
}};

/// Above that size perftest asks for a completion of each message unless told otherwise.
constexpr std::uint64_t kCqModSizeLimit = 8192;
constexpr std::uint32_t kMostQps = 16'384;
constexpr std::uint32_t kMostInline = 1024;
constexpr std::uint8_t kMostOutReads = 128;

Result<void> check_combination(const Plan& plan) {
  const TestInfo& info = plan.info();
  if (plan.transport != verbs::QpType::RC && (info.verb == Verb::READ || info.verb == Verb::ATOMIC))
    return failure(
        "-c", fmt::format("{} needs RC: READs and atomics exist on no other transport", info.name),
        "leave -c away");
  if (plan.transport == verbs::QpType::UD && info.verb != Verb::SEND)
    return failure("-c UD",
                   fmt::format("{} does not exist on UD, which only carries SENDs", info.name),
                   "take send_bw or send_lat, or -c RC");
  if (!plan.is_bw()) {
    if (plan.direction == Direction::BOTH_WAYS)
      return failure("-b", "a latency test is a ping-pong already", "leave -b away");
    if (plan.qps != 1) return failure("-q", "a latency test runs on one QP", "leave -q away");
    if (plan.post_list != 1)
      return failure("-l", "a latency test posts one message at a time", "leave -l away");
  }
  if (plan.all_sizes == Switch::ON && plan.until == Until::DURATION)
    return failure("-a", "does not go with -D", "give one size by -s, or iterations by -n");
  if (plan.until == Until::DURATION && plan.duration <= plan.margin * 2)
    return failure(
        "-D", "the duration must be longer than twice the margin of -f",
        fmt::format("-D {} or more, or a smaller -f", plan.margin.ns() * 2 / 1'000'000'000 + 1));
  return {};
}

Result<void> check_range(std::string_view place, std::uint64_t value, std::uint64_t least,
                         std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return failure(std::string(place), fmt::format("{} is outside {} to {}", value, least, most));
}

}  // namespace

const TestInfo& info_of(Test test) {
  return kTable[static_cast<std::size_t>(test)];
}

const TestInfo* find_test(std::string_view name) {
  if (name.starts_with("ib_")) name.remove_prefix(3);
  const auto* found = std::find_if(kTable.begin(), kTable.end(),
                                   [&](const TestInfo& info) { return info.name == name; });
  return found == kTable.end() ? nullptr : found;
}

Plan default_plan(Test test, Role role) {
  Plan plan;
  plan.test = test;
  plan.role = role;
  if (plan.is_bw()) {
    plan.iterations = plan.verb() == Verb::WRITE ? 5000 : 1000;
  } else {
    plan.size = 2;
    plan.inline_max = plan.verb() == Verb::WRITE || plan.verb() == Verb::SEND ? 220 : 0;
    plan.peak = Switch::OFF;
  }
  if (plan.verb() == Verb::ATOMIC) plan.size = 8;
  return plan;
}

void adjust(Plan& plan, Switch explicit_cq_mod) {
  if (plan.verb() == Verb::ATOMIC) plan.size = sizeof(std::uint64_t);
  if (plan.until == Until::ITERATIONS) {
    const auto most = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(plan.iterations, std::uint32_t{0xffff'ffff}));
    plan.tx_depth = std::min(plan.tx_depth, most);
    plan.rx_depth = std::min(plan.rx_depth, most);
  }
  if (explicit_cq_mod == Switch::OFF) {
    if (plan.post_list > 1)
      plan.cq_mod = plan.post_list;
    else if (plan.size > kCqModSizeLimit && plan.all_sizes == Switch::OFF)
      plan.cq_mod = 1;
  }
  plan.tx_depth = std::max(plan.tx_depth, plan.post_list);
  plan.cq_mod = std::min(plan.cq_mod, plan.tx_depth);
  if (plan.until != Until::ITERATIONS || plan.iterations > kMaxPeakIterations)
    plan.peak = Switch::OFF;
}

Result<void> fit_to_port(Plan& plan, std::optional<verbs::Mtu> wanted, std::uint32_t port_mtu) {
  const auto fits = port::path_mtu_for(port_mtu);
  if (!fits)
    return failure("--mtu", fmt::format("{} bytes are too few for any path MTU", port_mtu),
                   "1500 or more");
  if (wanted && *wanted > *fits)
    return failure(fmt::format("-m {}", bytes_of(*wanted)),
                   fmt::format("the port's MTU of {} carries a path MTU of at most {}", port_mtu,
                               bytes_of(*fits)),
                   fmt::format("-m {}, or a larger MTU of the port", bytes_of(*fits)));
  plan.mtu = wanted.value_or(*fits);
  if (plan.transport == verbs::QpType::UD)
    plan.size = std::min<std::uint64_t>(plan.size, bytes_of(plan.mtu));
  return {};
}

std::vector<std::uint64_t> sizes_of(const Plan& plan) {
  if (plan.all_sizes == Switch::OFF) return {plan.size};
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = 2; size <= plan.size; size *= 2) sizes.push_back(size);
  return sizes;
}

Result<void> check(const Plan& plan) {
  return check_combination(plan)
      .and_then([&] { return check_range("-q", plan.qps, 1, kMostQps); })
      .and_then([&] { return check_range("-s", plan.size, 1, kMaxSize); })
      .and_then([&] { return check_range("-n", plan.iterations, 5, 100'000'000); })
      .and_then([&] { return check_range("-t", plan.tx_depth, 1, 16'384); })
      .and_then([&] { return check_range("-r", plan.rx_depth, 1, 16'384); })
      .and_then([&] { return check_range("-Q", plan.cq_mod, 1, 1024); })
      .and_then([&] { return check_range("-l", plan.post_list, 1, 1024); })
      .and_then([&] { return check_range("-I", plan.inline_max, 0, kMostInline); })
      .and_then([&] { return check_range("-u", plan.qp_timeout, 0, 31); })
      .and_then([&] { return check_range("-o", plan.out_reads, 1, kMostOutReads); });
}

}  // namespace roce::traffic::perftest
