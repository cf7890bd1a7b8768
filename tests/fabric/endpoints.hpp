// Endpoints: real workers on the hosts of a network, with RC QPs between them that WRITE buffers
// whose bytes are checked afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/worker.hpp"
#include "fabric/network.hpp"

namespace roce::test {

/// A host with a worker and one registered buffer. As an application it posts WRITEs until each of
/// its flows has sent what it was told to.
class Endpoint final : public fabric::HostApplication {
 public:
  Endpoint(fabric::Network& network, fabric::HostId host, std::size_t buffer_bytes,
           std::uint32_t max_qps = 64, const congestion::NpConfig& np = {});

  /// A QP here and one at peer; count WRITEs of bytes each from our buffer at offset `from` to
  /// peer's at `to`, at most `depth` outstanding.
  struct FlowOptions {
    std::uint64_t count = 1;
    std::uint32_t bytes = 4096;
    std::uint64_t from = 0, to = 0;
    std::uint32_t depth = 4;
    std::uint8_t traffic_class = 26 << 2 | 2;  ///< DSCP 26, ECT(0)
    std::uint8_t timeout = 14;
    std::uint16_t source_port = 0;  ///< 0: from the QPNs
    verbs::Mtu mtu = verbs::Mtu::MTU_4096;
    std::optional<congestion::RpConfig> cc{};
  };
  void write_to(Endpoint& peer, const FlowOptions& options);

  bool step(Instant now) override;

  [[nodiscard]] bool done() const;
  /// All completions so far were successes.
  [[nodiscard]] bool clean() const { return failures_ == 0; }
  [[nodiscard]] std::uint64_t completed() const;
  [[nodiscard]] std::uint64_t completed(std::size_t flow) const { return flows_[flow].completed; }
  [[nodiscard]] Instant finished() const { return finished_; }
  [[nodiscard]] Qpn qpn_of_flow(std::size_t flow) const { return flows_[flow].qpn; }
  [[nodiscard]] Qpn peer_qpn_of_flow(std::size_t flow) const { return flows_[flow].peer; }

  fabric::HostId host;
  engine::Worker worker;
  std::vector<std::byte> buffer;

 private:
  struct Flow {
    Qpn qpn, peer;
    FlowOptions options;
    std::uint32_t rkey = 0;
    std::uint64_t remote = 0;
    std::uint64_t posted = 0, completed = 0;
  };
  [[nodiscard]] Qpn make_qp(std::uint32_t depth);
  void connect(Qpn qpn, const Endpoint& peer, Qpn peer_qpn, const FlowOptions& options);

  fabric::Network& network_;
  verbs::Pd pd_;
  verbs::CompletionQueue& cq_;
  verbs::MemoryRegion mr_;
  std::vector<Flow> flows_;
  std::uint64_t failures_ = 0;
  Instant finished_;
};

/// Fills with bytes that depend on the seed and the place.
void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed);

}  // namespace roce::test
