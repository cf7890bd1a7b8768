// Network: hosts, switches and links between them, in virtual time. It carries the frames that real
// workers build, byte for byte, and turns those workers; one thread, no clock, no randomness but
// from its seed: same configuration, same applications, same bytes.
//
// Owns: frames, ports, queues, counters. Does not own: workers and applications, which outlive its
// last run. Set up with add_host(), add_switch() and connect() (or a topology.hpp builder), then
// build(), then attach() workers to host ports and run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "engine/packet_io.hpp"
#include "engine/worker.hpp"
#include "fabric/application.hpp"
#include "fabric/counters.hpp"
#include "fabric/fault_matcher.hpp"
#include "fabric/faults.hpp"
#include "fabric/link.hpp"
#include "fabric/switch_config.hpp"
#include "fabric/tap.hpp"

namespace roce::fabric {

struct NetworkConfig {
  std::uint64_t seed = 1;
  /// Most frames in queues, on links and in hosts' hands. Of 4,288 bytes each, touched when used.
  std::uint32_t frames = 65536;
  /// Time-weighted histograms of all switches' egress queues: 6 KiB a port.
  bool queue_histograms = true;
  std::size_t fault_log = 65536;  ///< most fault records kept
};

/// Where a node of a network is, for whoever wants to name it.
struct PortName {
  NodeId node = 0;
  std::uint32_t index = 0;  ///< of the node's ports, in the order of connect()
};

class Network {
 public:
  explicit Network(const NetworkConfig& config = {});
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  // --- set-up ---
  /// Hosts are numbered from 0 in the order of the calls; at most 65,534.
  HostId add_host(const HostConfig& config = {});
  SwitchId add_switch(const SwitchConfig& config);
  /// Hosts have one port: they are connected once.
  LinkId connect(NodeId a, NodeId b, const LinkConfig& link);
  [[nodiscard]] static NodeId node_of_host(HostId host) { return host * 2; }
  [[nodiscard]] static NodeId node_of_switch(SwitchId id) { return id * 2 + 1; }
  /// Finds shortest paths, divides the buffers and checks all that was given. Once, before running.
  [[nodiscard]] Result<void> build();

  // --- hosts ---
  [[nodiscard]] std::size_t host_count() const;
  [[nodiscard]] std::size_t switch_count() const;
  /// The host's NIC: for the worker that is then attached to it.
  [[nodiscard]] engine::PacketIo& host_port(HostId host);
  /// Deterministic: 02:52:HH:HH:00:00 and 198.18.0.1 + host, in one /15.
  [[nodiscard]] static MacAddress host_mac(HostId host);
  [[nodiscard]] static IpPrefix host_address(HostId host);
  /// An interface with these addresses.
  [[nodiscard]] static engine::InterfaceConfig host_interface(HostId host);
  /// The worker is turned when a frame came, when the NIC has room again and when its deadline has
  /// come. application: stepped after each turn; may be null.
  void attach(HostId host, engine::Worker& worker, HostApplication* application = nullptr);
  /// The same for a host without a worker, whose application reads and writes frames itself.
  void attach(HostId host, HostApplication& application);
  /// Tells a worker the MACs of other hosts' addresses on its first interface, so that it never has
  /// to ask.
  void introduce(HostId host, std::span<const HostId> others);
  /// Asks for a turn of the host's worker and a step of its application now; after posting from
  /// outside.
  void wake(HostId host);

  // --- running ---
  [[nodiscard]] SimTime now() const;
  /// Does all that is to happen up to and including end, and stands at end then; earlier when
  /// stop() was called, and at the last thing that happened when end is Instant::never().
  void run_until(Instant end);
  /// Runs until nothing is left to happen, or limit. Returns whether nothing is left.
  bool run_until_idle(Instant limit);
  /// Ends the present run after the event in hand. For applications.
  void stop();
  /// Events that have happened, and frames that have crossed a link.
  [[nodiscard]] std::uint64_t events() const;
  [[nodiscard]] std::uint64_t packet_hops() const;

  // --- places ---
  /// The port of a node by its index in the order of connect().
  [[nodiscard]] PortId port(PortName name) const;
  [[nodiscard]] PortId host_nic(HostId host) const { return port({node_of_host(host), 0}); }
  [[nodiscard]] PortId peer_of(PortId port) const;
  [[nodiscard]] Rate rate_of(PortId port) const;
  [[nodiscard]] std::size_t port_count() const;
  [[nodiscard]] std::size_t ports_of(NodeId node) const;
  /// "host3" or "leaf1.5".
  [[nodiscard]] std::string name_of(PortId port) const;

  // --- results ---
  /// Counters up to now().
  [[nodiscard]] PortCounters counters(PortId port) const;
  /// Present bytes of an egress queue.
  [[nodiscard]] std::uint64_t queue_bytes(PortId port, std::uint8_t priority) const;
  /// Null when histograms are off, or the port is a host's.
  [[nodiscard]] const QueueHistogram* histogram(PortId port, std::uint8_t priority) const;
  /// Headroom that each lossless class of a switch's port was given.
  [[nodiscard]] std::uint64_t headroom_bytes(PortId port) const;
  [[nodiscard]] FramePoolUse frames() const;

  // --- faults ---
  /// Applies a rule to what a host's NIC sends (dir=tx) or is sent (dir=rx); without a host, to all
  /// hosts alike, with one memory of streams. Returns the rule's number.
  std::uint32_t add_fault(const FaultRule& rule, std::optional<HostId> host = {});
  /// Applies a rule to what a port sends; the rule's direction does not matter.
  std::uint32_t add_port_fault(const FaultRule& rule, PortId port);
  /// The link of a port is down from `from` for `span`: what is sent or on its way then is lost,
  /// and nobody looks for another path.
  void schedule_link_flap(PortId port, Instant from, Duration span);
  /// The port sends PFC frames without reason.
  void schedule_storm(PortId port, const StormConfig& storm);
  [[nodiscard]] FaultCounts fault_counts(std::uint32_t rule) const;
  /// All faults applied so far, in order; those beyond NetworkConfig::fault_log are only counted.
  [[nodiscard]] std::span<const FaultRecord> fault_log() const;
  [[nodiscard]] std::uint64_t faults_unlogged() const;

  // --- taps ---
  /// tap sees each frame that leaves or reaches the port; outlives the network's last run. One tap
  /// a port; null takes it away.
  void set_tap(PortId port, Tap* tap);

  /// Of this module's own.
  class Core;

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace roce::fabric
