// MemoryWire: a full-duplex wire in one process. Frames are written once into preallocated slots
// and read in place at the other end; only slot numbers move, over lock-free rings.
//
// Owns the slots. Each end is a PacketIo for one thread; the two ends may be on two threads or on
// one. It never drops, reorders or delays a frame, never allocates after construction, and never
// reads a clock: a receiver that does not keep up makes the sender run out of slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/address.hpp"
#include "engine/packet_io.hpp"

namespace roce::port {

struct MemoryWireConfig {
  /// Slots that each end can have in flight, lent or unreleased; 32 or more. Few slots stay in the
  /// cache that the two cores share, many absorb a receiver's pauses.
  std::size_t slots = 512;
  std::uint16_t mtu = 4200;  ///< 1280..kMemoryWireMaxMtu; 4200 carries a 4096-byte path MTU
  std::string name = "wire";
  MacAddress first_mac{{0x02, 0, 0, 0, 0, 0x01}};
  MacAddress second_mac{{0x02, 0, 0, 0, 0, 0x02}};
};

inline constexpr std::uint16_t kMemoryWireMaxMtu = 4260;

class MemoryWire {
 public:
  explicit MemoryWire(const MemoryWireConfig& config = {});
  ~MemoryWire();
  MemoryWire(const MemoryWire&) = delete;
  MemoryWire& operator=(const MemoryWire&) = delete;

  /// The two ends, named "NAME.0" and "NAME.1". They live as long as the wire. Counters of an end
  /// may be read from any thread.
  [[nodiscard]] engine::PacketIo& first();
  [[nodiscard]] engine::PacketIo& second();

 private:
  class End;
  struct Direction;
  std::unique_ptr<Direction> forward_, backward_;
  std::unique_ptr<End> first_, second_;
};

}  // namespace roce::port
