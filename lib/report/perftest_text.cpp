#include "report/perftest_text.hpp"

#include <fmt/format.h>

namespace roce::report {

using namespace traffic::perftest;

std::string bandwidth_heading(RateUnit unit) {
  const std::string_view name = unit == RateUnit::GBIT_PER_S ? "Gb/sec" : "MB/sec";
  return fmt::format(" #bytes     #iterations    BW peak[{0}]    BW average[{0}]   MsgRate[Mpps]\n",
                     name);
}

std::string bandwidth_row(const BandwidthResult& result, RateUnit unit) {
  return fmt::format(" {:<7}    {:<10}       {:<7.2f}            {:<7.2f}\t\t   {:<7.6f}\n",
                     result.size, result.iterations,
                     in_rate_unit(result.peak_bytes_per_s.value_or(0), unit),
                     in_rate_unit(result.average_bytes_per_s, unit), result.messages_per_s / 1e6);
}

std::string latency_heading(Until until) {
  if (until == Until::DURATION)
    return " #bytes        #iterations       t_avg[usec]    tps average\n";
  return " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
         "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n";
}

std::string latency_row(const LatencyResult& result, Until until) {
  if (until == Until::DURATION)
    return fmt::format(" {:<7}       {:<7}        {:<7.2f}       {:<7.2f}\n", result.size,
                       result.iterations, result.average_us, result.transactions_per_s);
  return fmt::format(
      " {:<7} {:<7}          {:<7.2f}        {:<7.2f}      {:<7.2f}  \t       {:<7.2f}     "
      "\t{:<7.2f}\t\t{:<7.2f} \t\t{:<7.2f}\n",
      result.size, result.iterations, result.min_us, result.max_us, result.typical_us,
      result.average_us, result.stdev_us, result.p99_us, result.p999_us);
}

std::string rule() {
  return std::string(87, '-') + "\n";
}

std::string run_heading(const Plan& plan, const std::string& port, std::uint64_t listed_qps) {
  std::string title{plan.info().title};
  if (plan.direction == Direction::BOTH_WAYS)
    title.insert(title.find(plan.is_bw() ? " BW" : " Lat"), " Bidirectional");
  std::string text = rule() + fmt::format("                    {}\n", title);
  text += fmt::format(" Port            : {}\n", port);
  text += fmt::format(" Number of qps   : {:<12}\tTransport type : RoCEv2\n", listed_qps);
  text += fmt::format(" Connection type : {:<12}\tMtu            : {}[B]\n",
                      verbs::name_of(plan.transport), verbs::bytes_of(plan.mtu));
  if (plan.sends()) text += fmt::format(" TX depth        : {}\n", plan.tx_depth);
  if (plan.receives() && plan.verb() == Verb::SEND)
    text += fmt::format(" RX depth        : {}\n", plan.rx_depth);
  if (plan.is_bw() && plan.sends()) text += fmt::format(" CQ Moderation   : {}\n", plan.cq_mod);
  if (plan.verb() == Verb::READ || plan.verb() == Verb::ATOMIC)
    text += fmt::format(" Outstand reads  : {}\n", plan.out_reads);
  if (plan.inline_max > 0) text += fmt::format(" Max inline data : {}[B]\n", plan.inline_max);
  if (plan.traffic_class != 0) text += fmt::format(" Traffic class   : {}\n", plan.traffic_class);
  return text + rule();
}

std::string address_lines(Side side, const QpAddress& address, Verb verb) {
  std::string text = fmt::format(" {} address: LID 0000 QPN 0x{:06x} PSN 0x{:06x}",
                                 side == Side::LOCAL ? "local" : "remote", address.qpn.value(),
                                 address.psn.value());
  if (verb == Verb::READ || verb == Verb::ATOMIC)
    text += fmt::format(" OUT 0x{:02x}", address.out_reads);
  if (verb != Verb::SEND)
    text += fmt::format(" RKey 0x{:06x} VAddr 0x{:012x}", address.rkey, address.vaddr);
  return text + fmt::format("\n GID: {}\n", address.gid.to_string());
}

}  // namespace roce::report
