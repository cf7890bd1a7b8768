// CapturePort: a PacketIo around another one that writes all frames of both directions to a pcapng
// file, stamped with the worker's time.
//
// Called by one worker. Put around the port itself and inside a FaultPort, it shows what went over
// the wire. See docs/design/0003-capture-decorator.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/packet_io.hpp"
#include "port/pcapng_writer.hpp"

namespace roce::port {

class CapturePort final : public engine::PacketIo {
 public:
  /// inner: outlives this. wall_ns: UTC in nanoseconds since 1970 at the first call's Instant; none
  /// reads the system's clock then, once.
  CapturePort(engine::PacketIo& inner, std::unique_ptr<PcapngWriter> writer,
              std::optional<std::int64_t> wall_ns = {});

  std::size_t rx_burst(Instant now, std::span<engine::Frame> out) override;
  void rx_release(std::span<const engine::Frame> frames) override { inner_.rx_release(frames); }
  std::size_t tx_reserve(std::span<engine::Frame> out) override { return inner_.tx_reserve(out); }
  std::size_t tx_reserve_urgent(std::span<engine::Frame> out) override {
    return inner_.tx_reserve_urgent(out);
  }
  std::size_t tx_burst(Instant now, std::span<const engine::Frame> frames) override;
  void tx_release(std::span<const engine::Frame> frames) override { inner_.tx_release(frames); }
  const engine::PortInfo& info() const override { return inner_.info(); }
  engine::PortCounters counters() const override { return inner_.counters(); }

  /// For frames() and lost(), and to flush() before the end.
  [[nodiscard]] PcapngWriter& writer() { return *writer_; }

 private:
  [[nodiscard]] std::int64_t wall(Instant now);
  void flush_when_due(Instant now);

  engine::PacketIo& inner_;
  std::unique_ptr<PcapngWriter> writer_;
  std::optional<std::int64_t> wall_ns_;
  std::optional<Instant> start_;
  Instant last_flush_;
};

}  // namespace roce::port
