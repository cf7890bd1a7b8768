#include "port/dpdk/ethdev_port.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "port/dpdk/eal.hpp"
#include "port/dpdk/ethdev_device.hpp"
#include "wire/headers.hpp"

namespace roce::port::dpdk {
namespace {

using engine::Frame;
using engine::kBurst;

rte_mbuf* mbuf_of(const Frame& frame) {
  return static_cast<rte_mbuf*>(frame.handle);
}

/// Written by the port's thread, read by any.
class Count {
 public:
  void add(std::uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

void free_frames(std::span<const Frame> frames) {
  while (!frames.empty()) {
    std::array<rte_mbuf*, kBurst> mbufs;
    const std::size_t n = std::min(frames.size(), kBurst);
    for (std::size_t i = 0; i < n; ++i) mbufs[i] = mbuf_of(frames[i]);
    ::rte_pktmbuf_free_bulk(mbufs.data(), static_cast<unsigned>(n));
    frames = frames.subspan(n);
  }
}

/// Puts a VLAN tag that a driver took off back where the peer had it: parse() and captures see one
/// form of frame only. False when there is no room.
bool restore_vlan(rte_mbuf& mbuf) {
  char* start = ::rte_pktmbuf_prepend(&mbuf, sizeof(wire::VlanTag));
  if (start == nullptr) return false;
  constexpr std::size_t kMacs = 2 * sizeof(MacAddress);
  std::memmove(start, start + sizeof(wire::VlanTag), kMacs);
  wire::Be16 field;
  field.set(wire::kEtherVlan);
  std::memcpy(start + kMacs, &field, sizeof field);
  field.set(mbuf.vlan_tci);
  std::memcpy(start + kMacs + sizeof field, &field, sizeof field);
  mbuf.ol_flags &= ~(RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED);
  return true;
}

class EthdevPort final : public engine::PacketIo {
 public:
  EthdevPort(EthdevDevice device, Sharing sharing, std::shared_ptr<std::array<RingOwner, 2>> rings)
      : rings_(std::move(rings)),
        device_(std::move(device)),
        sharing_(sharing),
        longest_(device_.info().mtu + sizeof(wire::EthernetHeader) + sizeof(wire::VlanTag)) {}

  std::size_t rx_burst(Instant now, std::span<Frame> out) override {
    use_thread();
    if (device_.is_client()) keep_connecting(now);
    if (!device_.running()) return 0;
    std::array<rte_mbuf*, kBurst> mbufs;
    const auto want = static_cast<std::uint16_t>(std::min(out.size(), kBurst));
    const std::size_t n = ::rte_eth_rx_burst(device_.port_id(), 0, mbufs.data(), want);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i)
      if (accept(*mbufs[i], out[kept])) ++kept;
    return kept;
  }

  void rx_release(std::span<const Frame> frames) override { free_frames(frames); }

  std::size_t tx_reserve(std::span<Frame> out) override {
    use_thread();
    std::array<rte_mbuf*, kBurst> mbufs;
    std::size_t n = std::min(out.size(), kBurst);
    // Bulk allocation is all or nothing; near exhaustion fewer will do.
    while (n != 0 &&
           ::rte_pktmbuf_alloc_bulk(device_.pool(), mbufs.data(), static_cast<unsigned>(n)) != 0)
      n /= 2;
    for (std::size_t i = 0; i < n; ++i) out[i] = frame_of(*mbufs[i]);
    return n;
  }

  std::size_t tx_burst(Instant /*now*/, std::span<const Frame> frames) override {
    if (!device_.running()) return 0;
    std::array<rte_mbuf*, kBurst> mbufs;
    const std::size_t n = std::min(frames.size(), kBurst);
    for (std::size_t i = 0; i < n; ++i) {
      // A kernel interface jams on a frame that is too long: lose it here, and say so.
      if (frames[i].length > longest_) return drop_too_long(frames, mbufs, i);
      mbufs[i] = mbuf_of(frames[i]);
      mbufs[i]->data_len = static_cast<std::uint16_t>(frames[i].length);
      mbufs[i]->pkt_len = frames[i].length;
    }
    return send(frames, mbufs, n);
  }

  void tx_release(std::span<const Frame> frames) override { free_frames(frames); }

  const engine::PortInfo& info() const override { return device_.info(); }

  engine::PortCounters counters() const override {
    rte_eth_stats stats{};
    engine::PortCounters c;
    // Bytes are ours, since some drivers (ring, null) count none.
    if (::rte_eth_stats_get(device_.port_id(), &stats) != 0) return c;
    c.ipackets = stats.ipackets - own_packets_.get();
    c.ibytes = received_bytes_.get();
    c.opackets = stats.opackets;
    c.obytes = sent_bytes_.get();
    c.imissed = stats.imissed;
    c.ierrors = stats.ierrors + rx_unusable_.get();
    c.oerrors = stats.oerrors + tx_too_long_.get();
    c.rx_nombuf = stats.rx_nombuf;
    return c;
  }

 private:
  static Frame frame_of(rte_mbuf& mbuf) {
    return {rte_pktmbuf_mtod(&mbuf, std::byte*), mbuf.pkt_len,
            static_cast<std::uint32_t>(mbuf.buf_len - mbuf.data_off), &mbuf};
  }

  /// Connects a memif client whose server came later, or came again.
  void keep_connecting(Instant now) {
    constexpr Duration kPatience = Duration::milliseconds(200);  // a handshake takes a few
    if (now - last_attempt_ < kPatience) return;
    last_attempt_ = now;
    if (!device_.running() || !device_.link_is_up()) device_.restart();
  }

  /// Turns a received mbuf into a frame, or frees it.
  bool accept(rte_mbuf& mbuf, Frame& frame) {
    if (mbuf.nb_segs > 1 && ::rte_pktmbuf_linearize(&mbuf) != 0) [[unlikely]]
      return refuse(mbuf, rx_unusable_);
    if (sharing_ == Sharing::KERNEL && is_own(mbuf)) return refuse(mbuf, own_packets_);
    if ((mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 && !restore_vlan(mbuf)) [[unlikely]]
      return refuse(mbuf, rx_unusable_);
    frame = frame_of(mbuf);
    received_bytes_.add(frame.length);
    return true;
  }

  std::size_t send(std::span<const Frame> frames, std::array<rte_mbuf*, kBurst>& mbufs,
                   std::size_t n) {
    const std::size_t sent =
        ::rte_eth_tx_burst(device_.port_id(), 0, mbufs.data(), static_cast<std::uint16_t>(n));
    std::uint64_t bytes = 0;
    for (const Frame& frame : frames.first(sent)) bytes += frame.length;
    sent_bytes_.add(bytes);
    return sent;
  }

  static bool refuse(rte_mbuf& mbuf, Count& count) {
    count.add(1);
    ::rte_pktmbuf_free(&mbuf);
    return false;
  }

  /// A packet socket also sees what the kernel sends on the interface; a wire would not show it.
  [[nodiscard]] bool is_own(rte_mbuf& mbuf) const {
    return mbuf.data_len >= sizeof(wire::EthernetHeader) &&
           wire::view_as<wire::EthernetHeader>(rte_pktmbuf_mtod(&mbuf, const std::byte*))->source ==
               device_.info().mac;
  }

  /// Frame number i is too long. Sends those before it; takes it off the caller's hands when they
  /// all went.
  std::size_t drop_too_long(std::span<const Frame> frames, std::array<rte_mbuf*, kBurst>& mbufs,
                            std::size_t i) {
    const std::size_t sent = send(frames, mbufs, i);
    if (sent < i) return sent;
    tx_too_long_.add(1);
    free_frames(frames.subspan(i, 1));
    return i + 1;
  }

  std::shared_ptr<std::array<RingOwner, 2>> rings_;  ///< outlives the device
  EthdevDevice device_;
  Sharing sharing_;
  std::size_t longest_;  ///< bytes of a frame
  Instant last_attempt_;
  Count received_bytes_, sent_bytes_, own_packets_, rx_unusable_, tx_too_long_;
};

}  // namespace

std::unique_ptr<engine::PacketIo> make_ethdev_port(
    EthdevDevice device, Sharing sharing, std::shared_ptr<std::array<RingOwner, 2>> rings) {
  return std::make_unique<EthdevPort>(std::move(device), sharing, std::move(rings));
}

Result<std::unique_ptr<engine::PacketIo>> open_ethdev(const EthdevConfig& config) {
  const auto port = probe_device(config);
  if (!port) return tl::make_unexpected(port.error());
  EthdevDevice device(*port);
  if (auto started = device.start(config); !started) return tl::make_unexpected(started.error());
  return make_ethdev_port(std::move(device), config.sharing, nullptr);
}

}  // namespace roce::port::dpdk
