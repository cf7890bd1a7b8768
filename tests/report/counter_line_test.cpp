#include "report/counter_line.hpp"

#include <catch2/catch.hpp>

using namespace roce;

TEST_CASE("a counter line gives rates since the last one and names what moved",
          "[report][counters]") {
  report::CounterLine line;
  engine::PortCounters port;
  transport::Counters transport;
  engine::WorkerCounters worker;
  const Instant start = Instant::from_ns(1'000'000'000);
  CHECK(line.next(start, port, transport, worker).empty());  // nothing to compare with yet

  port.obytes = 125'000'000;
  port.opackets = 30'000;
  port.ibytes = 250'000'000;
  port.ipackets = 60'000;
  transport.sent_pkts = 30'000;  // ordinary work: the rates tell it
  transport.retransmitted_packets = 3;
  worker.verdicts[static_cast<std::size_t>(wire::Verdict::ICRC)] = 2;
  CHECK(line.next(start + Duration::seconds(2), port, transport, worker) ==
        "tx 0.500 Gb/s 15000 pps  rx 1.000 Gb/s 30000 pps  retransmitted_packets +3  icrc +2");

  worker.unknown_qpn = 1;
  CHECK(line.next(start + Duration::seconds(3), port, transport, worker) ==
        "tx 0.000 Gb/s 0 pps  rx 0.000 Gb/s 0 pps  unknown_qpn +1");
  CHECK(line.next(start + Duration::seconds(3), port, transport, worker).empty());  // no time
}
