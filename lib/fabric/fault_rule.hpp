// FaultRule: which RoCE packets are picked and what happens to them, as --fault and profiles say
// it. Plain values and their grammar; FaultMatcher applies them, in fabric networks and in
// port::FaultPort.
//
//   ACTION[:KEY=VALUE[,KEY=VALUE]...]
//
// Actions
//   drop        the packet is gone
//   corrupt     one bit behind the BTH is flipped, so that the ICRC does not fit
//   duplicate   the packet goes twice, one right behind the other
//   delay       the packet goes by=TIME later (ns, us, ms or s; default 50us)
//   reorder     the packet goes after by=N later frames (default 3), or 1 ms if fewer come
//   mark        the packet is marked Congestion Experienced, if it is ECN-capable
//
// Conditions; a packet must meet all that are given
//   dir=tx|rx     seen from the port that the rule belongs to; default tx
//   src=IP        the source address
//   dst=IP        the destination address
//   qpn=N         the BTH's destination QP
//   opcode=NAME   an opcode of wire/opcode.hpp or how its name starts: RC_ACKNOWLEDGE,
//   RC_RDMA_WRITE psn=N         the BTH's PSN psn=+N        the PSN N after the first one seen of
//   its stream rate=P        with probability P, 0 < P <= 1 nth=K|all     only the K-th packet that
//   meets the above, counted per stream; default 1 beside
//                 psn without rate (so that what is sent again gets through), else all
//   max=N         at most N times in all
//   seed=N        of the rule's random numbers; default fixed by the owner's seed and the rule's
//                 place
//
// A stream is what one QP numbers: one destination address and QP, requests and responses apart.
// Numbers may be decimal or 0x hexadecimal. The first rule that picks a packet has it. What is not
// RoCE passes.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "base/types.hpp"

namespace roce::fabric {

enum class FaultAction : std::uint8_t { DROP, CORRUPT, DUPLICATE, DELAY, REORDER, MARK };
enum class FaultDirection : std::uint8_t { TX, RX };
enum class PsnOrigin : std::uint8_t { ABSOLUTE, FIRST_SEEN };

/// The word of the grammar, such as "drop".
[[nodiscard]] std::string_view fault_action_name(FaultAction action);

struct FaultRule {
  std::string text;  ///< as the user wrote it
  FaultAction action = FaultAction::DROP;
  FaultDirection direction = FaultDirection::TX;
  std::optional<IpAddress> source, destination;
  std::optional<Qpn> qpn;
  std::bitset<256> opcodes = ~std::bitset<256>{};  ///< by opcode byte
  std::optional<std::uint32_t> psn;                ///< value or distance, see psn_origin
  PsnOrigin psn_origin = PsnOrigin::ABSOLUTE;
  double rate = 1.0;
  std::uint64_t nth = 0;  ///< 0: all
  std::uint64_t max = 0;  ///< 0: no bound
  std::optional<std::uint64_t> seed;
  Duration by_time = Duration::microseconds(50);  ///< DELAY
  std::uint32_t by_frames = 3;                    ///< REORDER

  /// Whether it counts or compares within a stream.
  [[nodiscard]] bool needs_streams() const {
    return nth != 0 || (psn && psn_origin == PsnOrigin::FIRST_SEEN);
  }
};

/// The error names the key and the valid ones; its place is "--fault TEXT".
[[nodiscard]] Result<FaultRule> parse_fault_rule(std::string_view text);

/// The grammar, for --help.
[[nodiscard]] std::string_view fault_rule_help();

}  // namespace roce::fabric
