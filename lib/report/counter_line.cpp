#include "report/counter_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace roce::report {
namespace {

/// Ordinary work; everything else in the table is worth a word when it moves.
constexpr std::array<std::string_view, 7> kOrdinary = {
    "rx_write_requests", "rx_read_requests", "rx_atomic_requests", "sent_pkts",
    "rcvd_pkts",         "rdma_sends",       "rdma_recvs"};

}  // namespace

std::string CounterLine::next(Instant now, const engine::PortCounters& port,
                              const transport::Counters& transport,
                              const engine::WorkerCounters& worker) {
  std::string line;
  if (started_ && now > at_) {
    const double seconds = (now - at_).s();
    const auto rate = [&](std::uint64_t newer, std::uint64_t older) {
      return static_cast<double>(newer - older) / seconds;
    };
    line =
        fmt::format("tx {:.3f} Gb/s {:.0f} pps  rx {:.3f} Gb/s {:.0f} pps",
                    rate(port.obytes, port_.obytes) * 8 / 1e9, rate(port.opackets, port_.opackets),
                    rate(port.ibytes, port_.ibytes) * 8 / 1e9, rate(port.ipackets, port_.ipackets));
    const auto moved = [&](std::string_view name, std::uint64_t newer, std::uint64_t older) {
      if (newer != older) line += fmt::format("  {} +{}", name, newer - older);
    };
    for (const auto& [name, member] : transport::counter_table())
      if (std::ranges::find(kOrdinary, name) == kOrdinary.end())
        moved(name, transport.*member, transport_.*member);
    for (auto i = static_cast<std::size_t>(wire::kFirstReject); i < wire::kVerdicts; ++i)
      moved(wire::verdict_name(static_cast<wire::Verdict>(i)), worker.verdicts[i],
            worker_.verdicts[i]);
    moved("unknown_qpn", worker.unknown_qpn, worker_.unknown_qpn);
    moved("imissed", port.imissed, port_.imissed);
    moved("rx_nombuf", port.rx_nombuf, port_.rx_nombuf);
  }
  started_ = true;
  at_ = now;
  port_ = port;
  transport_ = transport;
  worker_ = worker;
  return line;
}

}  // namespace roce::report
