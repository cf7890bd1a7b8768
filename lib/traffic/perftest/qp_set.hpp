// QpSet: the resources of one run on one worker: memory, its registrations, CQs and connected QPs.
//
// Owns them and gives all back when it ends. Made by run.hpp, used by the data planes on the
// worker's thread. It posts nothing by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/prng.hpp"
#include "base/result.hpp"
#include "engine/worker.hpp"
#include "traffic/perftest/plan.hpp"

namespace roce::traffic::perftest {

/// What one side tells the other about a QP.
struct QpAddress {
  Qpn qpn;
  Psn psn;
  std::uint32_t rkey = 0;
  std::uint64_t vaddr = 0;     ///< where the peer writes, reads and does atomics
  std::uint8_t out_reads = 1;  ///< READs and atomics it answers at a time
  IpAddress gid;
};

/// One QP and its two buffers, which lie in registered memory.
struct Lane {
  QpAddress ours;
  QpAddress theirs;              ///< set by connect()
  std::span<std::byte> local;    ///< what its requests send from, and what READs land in
  std::span<std::byte> exposed;  ///< what the peer's requests reach, or where its SENDs land
  std::uint32_t local_key = 0;
  std::uint32_t exposed_key = 0;
  wire::PathHeaders ah{};  ///< UD: the way to the peer
};

class QpSet {
 public:
  /// Makes the CQs, for up to most_lanes QPs, and no QP yet. random: for first PSNs.
  QpSet(engine::Worker& worker, engine::InterfaceId interface, const Plan& plan,
        std::uint32_t most_lanes, std::uint64_t random);
  ~QpSet();
  QpSet(const QpSet&) = delete;
  QpSet& operator=(const QpSet&) = delete;

  /// Allocates and registers memory for one more QP and creates it in INIT. Fails when memory, or
  /// the worker's QPs or regions, are used up, or there are most_lanes already.
  [[nodiscard]] Result<void> add_lane();
  /// Brings each QP to RTS towards its counterpart, with perftest's attributes. peers: as many as
  /// there are lanes. mac: where frames to them go. mtu: the smaller of both ends'.
  [[nodiscard]] Result<void> connect(std::span<const QpAddress> peers, const MacAddress& mac,
                                     verbs::Mtu mtu);

  [[nodiscard]] std::span<Lane> lanes() { return lanes_; }
  [[nodiscard]] std::span<const Lane> lanes() const { return lanes_; }
  [[nodiscard]] engine::Worker& worker() { return worker_; }
  [[nodiscard]] verbs::CompletionQueue& send_cq() { return *send_cq_; }
  [[nodiscard]] verbs::CompletionQueue& recv_cq() { return *recv_cq_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte[], Free>;

  /// Registers new, zeroed memory; it is freed with the set.
  [[nodiscard]] Result<verbs::MemoryRegion> make_region(std::uint64_t bytes, std::uint8_t access);
  [[nodiscard]] Result<void> to_init(Qpn qpn);
  void fill(Lane& lane, std::uint32_t index) const;
  [[nodiscard]] wire::PathAttributes path_to(const Lane& lane, const MacAddress& mac) const;
  [[nodiscard]] Result<void> connect_lane(Lane& lane, const MacAddress& mac, verbs::Mtu mtu);

  engine::Worker& worker_;
  engine::InterfaceId interface_;
  Plan plan_;
  std::uint32_t most_lanes_;
  Prng prng_;
  verbs::Pd pd_;
  verbs::CompletionQueue* send_cq_;
  verbs::CompletionQueue* recv_cq_;
  std::vector<Memory> memory_;
  std::vector<std::uint32_t> keys_;  ///< of all regions
  std::vector<Lane> lanes_;
};

/// Bytes of each lane's local and exposed buffer. With data validation, READs and SENDs land in a
/// place of their own each, as far as kValidationBytes allow.
[[nodiscard]] std::uint64_t local_bytes(const Plan& plan);
[[nodiscard]] std::uint64_t exposed_bytes(const Plan& plan);
inline constexpr std::uint64_t kValidationBytes = 128ULL << 20;

}  // namespace roce::traffic::perftest
