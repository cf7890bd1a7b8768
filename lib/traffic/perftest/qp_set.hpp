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
  wire::PathHeaders ah{};        ///< UD: the way to the peer
};

class QpSet {
 public:
  /// Allocates and registers memory, and creates the QPs in INIT. random: numbers for first PSNs.
  /// Fails when the worker has no QPs or regions left.
  [[nodiscard]] static Result<std::unique_ptr<QpSet>> create(engine::Worker& worker,
                                                             engine::InterfaceId interface,
                                                             const Plan& plan,
                                                             std::uint64_t random);
  ~QpSet();
  QpSet(const QpSet&) = delete;
  QpSet& operator=(const QpSet&) = delete;

  /// Brings each QP to RTS towards its counterpart, with perftest's attributes. peers: as many as
  /// there are lanes. mac: where frames to them go. mtu: the smaller of both ends'.
  [[nodiscard]] Result<void> connect(std::span<const QpAddress> peers, const MacAddress& mac,
                                     verbs::Mtu mtu);

  [[nodiscard]] std::span<Lane> lanes() { return lanes_; }
  [[nodiscard]] engine::Worker& worker() { return worker_; }
  [[nodiscard]] verbs::CompletionQueue& send_cq() { return *send_cq_; }
  [[nodiscard]] verbs::CompletionQueue& recv_cq() { return *recv_cq_; }
  [[nodiscard]] std::uint32_t local_key() const { return local_mr_.lkey; }
  [[nodiscard]] std::uint32_t exposed_key() const { return exposed_mr_.lkey; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte[], Free>;

  QpSet(engine::Worker& worker, engine::InterfaceId interface, const Plan& plan);
  [[nodiscard]] Result<void> make_memory();
  [[nodiscard]] Result<void> make_qps(std::uint64_t random);
  [[nodiscard]] Result<void> to_init(Qpn qpn);
  void fill();
  [[nodiscard]] wire::PathAttributes path_to(const Lane& lane, const MacAddress& mac) const;
  [[nodiscard]] Result<void> connect_lane(Lane& lane, const MacAddress& mac, verbs::Mtu mtu);

  engine::Worker& worker_;
  engine::InterfaceId interface_;
  Plan plan_;
  Memory local_memory_, exposed_memory_;
  verbs::Pd pd_;
  verbs::MemoryRegion local_mr_{}, exposed_mr_{};
  verbs::CompletionQueue* send_cq_ = nullptr;
  verbs::CompletionQueue* recv_cq_ = nullptr;
  std::vector<Lane> lanes_;
};

/// Bytes of each lane's local and exposed buffer. With data validation, READs and SENDs land in a
/// place of their own each, as far as kValidationBytes allow.
[[nodiscard]] std::uint64_t local_bytes(const Plan& plan);
[[nodiscard]] std::uint64_t exposed_bytes(const Plan& plan);
inline constexpr std::uint64_t kValidationBytes = 128ULL << 20;

}  // namespace roce::traffic::perftest
