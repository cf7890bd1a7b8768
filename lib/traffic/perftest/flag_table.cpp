#include "traffic/perftest/flag_table.hpp"

#include <array>

namespace roce::traffic::perftest {
namespace {

constexpr std::array kFlags{
    Flag{"all", 'a', "", Group::TEST, Program::PERF, "run sizes 2, 4, ... 8388608"},
    Flag{"atomic_type", 'A', "TYPE", Group::TEST, Program::BOTH,
         "FETCH_AND_ADD or CMP_AND_SWAP (default FETCH_AND_ADD)"},
    Flag{"bidirectional", 'b', "", Group::TEST, Program::BOTH, "both ends send (bandwidth tests)"},
    Flag{"connection", 'c', "TYPE", Group::TEST, Program::BOTH, "RC, UC or UD (default RC)"},
    Flag{"cq-mod", 'Q', "N", Group::TEST, Program::BOTH,
         "one completion per N messages (default 100; 1 above 8192 bytes)"},
    Flag{"data_validation", 0, "", Group::TEST, Program::BOTH,
         "fill and check all data, see docs/data-validation.md; give it to both ends"},
    Flag{"duration", 'D', "S", Group::TEST, Program::PERF, "run for S seconds instead of -n"},
    Flag{"inline_size", 'I', "BYTES", Group::TEST, Program::BOTH,
         "longest message that is sent inline (default 0; latency tests 220)"},
    Flag{"iters", 'n', "N", Group::TEST, Program::PERF,
         "messages per QP, 5 or more (default 1000; write_bw 5000)"},
    Flag{"margin", 'f', "S", Group::TEST, Program::PERF,
         "seconds at both ends of -D that are not measured (default 2)"},
    Flag{"noPeak", 'N', "", Group::TEST, Program::PERF, "do not look for the peak rate"},
    Flag{"outs", 'o', "N", Group::TEST, Program::BOTH,
         "READs and atomics outstanding, 1 to 128 (default 16)"},
    Flag{"path-mtu", 'm', "BYTES", Group::TEST, Program::BOTH,
         "256, 512, 1024, 2048 or 4096 (default: the largest that fits the port)"},
    Flag{"post_list", 'l', "N", Group::TEST, Program::BOTH, "post N messages at a time"},
    Flag{"qp", 'q', "N", Group::TEST, Program::BOTH,
         "QPs (default 1; a server takes as many as its client has)"},
    Flag{"qp-timeout", 'u', "N", Group::TEST, Program::BOTH,
         "local ACK timeout, 4.096 us * 2^N (default 14)"},
    Flag{"rx-depth", 'r', "N", Group::TEST, Program::BOTH, "receives posted (default 512)"},
    Flag{"size", 's', "BYTES", Group::TEST, Program::BOTH,
         "message size; k and M are taken (default 65536; latency tests 2)"},
    Flag{"tx-depth", 't', "N", Group::TEST, Program::BOTH, "messages outstanding (default 128)"},

    Flag{"hop_limit", 'L', "N", Group::CONNECTION, Program::BOTH, "hop limit or TTL (default 255)"},
    Flag{"ipv6", 0, "", Group::CONNECTION, Program::BOTH, "use the port's IPv6 address as GID"},
    Flag{"persistent", 0, "", Group::CONNECTION, Program::PERF,
         "server: serve one client after the other, until SIGINT"},
    Flag{"sl", 'S', "N", Group::CONNECTION, Program::BOTH,
         "service level 0 to 7; becomes the PCP of a --vlan"},
    Flag{"tclass", 0, "N", Group::CONNECTION, Program::BOTH, "traffic class: DSCP and ECN bits"},
    Flag{"tcp-port", 'p', "PORT", Group::CONNECTION, Program::PERF,
         "TCP port of the exchange (default 18515)"},
    Flag{"serve", 0, "TEST=PORT,...", Group::CONNECTION, Program::ENDPOINT,
         "tests to serve and their TCP ports"},

    Flag{"limit_bw", 'w', "RATE", Group::REPORT, Program::PERF,
         "fail when the average is below, in the unit of the table"},
    Flag{"limit_msgrate", 'y', "MPPS", Group::REPORT, Program::PERF,
         "fail when fewer million messages a second"},
    Flag{"out_json", 0, "", Group::REPORT, Program::PERF, "write perftest's own JSON as well"},
    Flag{"out_json_file", 0, "FILE", Group::REPORT, Program::PERF,
         "where to (default perftest_out.json)"},
    Flag{"output", 0, "WHAT", Group::REPORT, Program::PERF,
         "print one number: bandwidth, message_rate or latency"},
    Flag{"report-histogram", 'H', "", Group::REPORT, Program::PERF, "print all latencies, sorted"},
    Flag{"report-unsorted", 'U', "", Group::REPORT, Program::PERF,
         "print all latencies in the order of time"},
    Flag{"report_gbits", 0, "", Group::REPORT, Program::PERF, "Gb/s instead of MiB/s"},
    Flag{"json", 0, "FILE", Group::REPORT, Program::BOTH, "write a JSON report; - is stdout"},
    Flag{"quiet", 0, "", Group::REPORT, Program::BOTH, "results and errors only"},

    Flag{"port", 0, "SPEC", Group::PORT, Program::BOTH, "the NIC, see below (default wire)"},
    Flag{"ip", 0, "ADDR/LEN", Group::PORT, Program::BOTH,
         "address of ours; repeatable (default: the interface's)"},
    Flag{"mac", 0, "MAC", Group::PORT, Program::BOTH, "MAC of ours (default: the port's)"},
    Flag{"gateway", 0, "ADDR", Group::PORT, Program::BOTH, "router to other subnets; repeatable"},
    Flag{"vlan", 0, "ID[:PCP]", Group::PORT, Program::BOTH, "tag all frames"},
    Flag{"mtu", 0, "BYTES", Group::PORT, Program::BOTH,
         "most bytes of an IP packet (default: the port's)"},
    Flag{"eal", 0, "ARGS", Group::PORT, Program::BOTH, "more arguments for DPDK's EAL"},
    Flag{"capture", 0, "FILE", Group::PORT, Program::BOTH, "write all frames to a pcapng file"},
    Flag{"fault", 0, "RULE", Group::PORT, Program::BOTH,
         "lose, damage or displace packets; repeatable, see below"},

    Flag{"check", 0, "", Group::GENERAL, Program::BOTH,
         "say what the port lacks and how to mend it, and end"},
    Flag{"seed", 0, "N", Group::GENERAL, Program::BOTH,
         "fixes QPNs, PSNs and the data pattern (default: random; pattern 0)"},
    Flag{"help", 'h', "", Group::GENERAL, Program::BOTH, "this text"},
    Flag{"version", 'V', "", Group::GENERAL, Program::BOTH, "the version"},
};

constexpr auto kRefused = Treatment::REFUSED;
constexpr auto kIgnored = Treatment::IGNORED;
constexpr std::string_view kNoDc = "DC is a transport of its own, which does not exist here";
constexpr std::string_view kNoCrypto = "there is no encryption engine here";
constexpr std::string_view kNoRate = "rates are not limited here";
constexpr std::string_view kMemory = "buffers are ordinary memory here";

constexpr std::array kForeign{
    ForeignFlag{"ib-dev", 'd', "DEV", kIgnored,
                "there is no RDMA device to choose: --port names the NIC"},
    ForeignFlag{"ib-port", 'i', "N", kIgnored, "a --port has one port"},
    ForeignFlag{"gid-index", 'x', "N", kIgnored, "the GID is the address of --ip"},
    ForeignFlag{"CPU-freq", 'F', "", kIgnored, "the CPU frequency is not looked at"},
    ForeignFlag{"events", 'e', "", kIgnored, "completion queues are always polled"},
    ForeignFlag{"force-link", 0, "TYPE", kIgnored, "the link is always Ethernet"},
    ForeignFlag{"mr_per_qp", 0, "", kIgnored, "one memory region serves all QPs"},
    ForeignFlag{"recv_post_list", 0, "N", kIgnored, "receives are posted one by one"},
    ForeignFlag{"use_old_post_send", 0, "", kIgnored, "there is one way to post"},
    ForeignFlag{"use_hugepages", 0, "", kIgnored, kMemory},
    ForeignFlag{"disable_pcie_relaxed", 0, "", kIgnored, "no PCIe device reads the buffers"},
    ForeignFlag{"perform_warm_up", 0, "", kIgnored, "buffers are touched before the run"},
    ForeignFlag{"pkey_index", 0, "N", kIgnored, "the P_Key is 0xffff"},
    ForeignFlag{"rdma_cm", 'R', "", kRefused,
                "connecting by rdma_cm is not built in yet; leave -R away at both ends"},
    ForeignFlag{"com_rdma_cm", 'z', "", kRefused,
                "the exchange goes over TCP; leave -z away at both ends"},
    ForeignFlag{"tos", 'T', "N", kRefused, "it belongs to -R; use --tclass"},
    ForeignFlag{"retry_count", 0, "N", kRefused, "it belongs to -R"},
    ForeignFlag{"MGID", 'M', "GID", kRefused, "multicast is not built in"},
    ForeignFlag{"mcg", 'g', "N", kRefused, "multicast is not built in"},
    ForeignFlag{"dualport", 'O', "", kRefused, "a run uses one port; start two programs"},
    ForeignFlag{"report-per-port", 0, "", kRefused, "a run uses one port"},
    ForeignFlag{"report-counters", 'W', "LIST", kRefused,
                "there are no files of counters; --json holds ours"},
    ForeignFlag{"report-cycles", 'C', "", kRefused, "times are in microseconds"},
    ForeignFlag{"report-both", 0, "", kRefused, "each end prints its own results"},
    ForeignFlag{"vector", 'X', "N", kRefused, "there are no completion vectors"},
    ForeignFlag{"use-srq", 0, "", kRefused, "shared receive queues are not built in"},
    ForeignFlag{"inline_recv", 0, "N", kRefused, "receives are never inline"},
    ForeignFlag{"latency_gap", 0, "US", kRefused, "messages follow one another at once"},
    ForeignFlag{"run_infinitely", 0, "", kRefused, "give -D a long time instead"},
    ForeignFlag{"reversed", 0, "", kRefused, "the client sends; exchange the two ends"},
    ForeignFlag{"cpu_util", 0, "", kRefused, "a worker polls and uses one core whole"},
    ForeignFlag{"wait_destroy", 0, "S", kRefused, "resources are given back at once"},
    ForeignFlag{"source_ip", 0, "ADDR", kRefused, "--ip gives the address of ours"},
    ForeignFlag{"dlid", 0, "LID", kRefused, "Ethernet has no LIDs"},
    ForeignFlag{"dont_xchg_versions", 0, "", kRefused, "the exchange always begins with versions"},
    ForeignFlag{"mmap", 0, "FILE", kRefused, kMemory},
    ForeignFlag{"mmap-offset", 0, "N", kRefused, kMemory},
    ForeignFlag{"odp", 0, "", kRefused, kMemory},
    ForeignFlag{"log_dci_streams", 0, "N", kRefused, kNoDc},
    ForeignFlag{"log_active_dci_streams", 0, "N", kRefused, kNoDc},
    ForeignFlag{"aes_xts", 0, "", kRefused, kNoCrypto},
    ForeignFlag{"encrypt_on_tx", 0, "", kRefused, kNoCrypto},
    ForeignFlag{"sig_before", 0, "", kRefused, kNoCrypto},
    ForeignFlag{"aes_block_size", 0, "N", kRefused, kNoCrypto},
    ForeignFlag{"data_enc_keys_number", 0, "N", kRefused, kNoCrypto},
    ForeignFlag{"kek_path", 0, "PATH", kRefused, kNoCrypto},
    ForeignFlag{"credentials_path", 0, "PATH", kRefused, kNoCrypto},
    ForeignFlag{"data_enc_key_app_path", 0, "PATH", kRefused, kNoCrypto},
    ForeignFlag{"burst_size", 0, "N", kRefused, kNoRate},
    ForeignFlag{"typical_pkt_size", 0, "N", kRefused, kNoRate},
    ForeignFlag{"rate_limit", 0, "RATE", kRefused, kNoRate},
    ForeignFlag{"rate_units", 0, "UNIT", kRefused, kNoRate},
    ForeignFlag{"rate_limit_type", 0, "TYPE", kRefused, kNoRate},
};

}  // namespace

std::span<const Flag> flags() {
  return kFlags;
}

std::span<const ForeignFlag> foreign_flags() {
  return kForeign;
}

std::string_view title_of(Group group) {
  switch (group) {
    case Group::TEST:
      return "Test (perftest's flags and defaults)";
    case Group::CONNECTION:
      return "Connection";
    case Group::REPORT:
      return "Report";
    case Group::PORT:
      return "Port";
    case Group::GENERAL:
      break;
  }
  return "General";
}

}  // namespace roce::traffic::perftest
