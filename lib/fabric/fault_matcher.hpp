// FaultMatcher: one fault rule at work: it remembers streams and draws its random numbers. Whoever
// carries frames asks it about each and does what the rule says.
//
// Same rule, same seed, same packets: same answers. Allocates only when made, reads no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/prng.hpp"
#include "fabric/fault_rule.hpp"
#include "wire/packet.hpp"

namespace roce::fabric {

struct FaultCounts {
  std::uint64_t picked = 0;  ///< packets the rule acted on
  std::uint64_t no_room =
      0;  ///< packets it had to let pass: no buffer, or too many held or streams
};

class FaultMatcher {
 public:
  /// Streams that a rule with psn=+N or nth tells apart.
  static constexpr std::size_t kMaxStreams = 4096;

  /// default_seed: used when the rule has none.
  FaultMatcher(FaultRule rule, std::uint64_t default_seed);

  /// Whether the rule picks this packet. Asked once for each packet that passes, in order.
  [[nodiscard]] bool meets(const wire::Packet& packet);
  /// Flips one bit between the BTH and the end of the ICRC: all of that is under the ICRC, and the
  /// packet still finds its QP. frame: the one that packet was parsed from.
  void corrupt(std::byte* frame, const wire::Packet& packet);

  [[nodiscard]] const FaultRule& rule() const { return rule_; }
  FaultCounts counts;  ///< kept by the owner, but for streams without room

 private:
  /// What a rule remembers of a stream.
  struct Stream {
    std::uint64_t key = 0;  ///< 0: free
    Psn first;
    std::uint64_t met = 0;  ///< packets that met the conditions before nth
  };
  [[nodiscard]] Stream* stream_of(const wire::Packet& packet);

  FaultRule rule_;
  Prng prng_;
  std::vector<Stream> streams_;  ///< a hash table; empty when not needed
};

}  // namespace roce::fabric
