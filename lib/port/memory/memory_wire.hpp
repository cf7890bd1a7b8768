// MemoryWire: a full-duplex wire in one process, over lock-free rings of slot numbers.
//
// Owns the frames' memory. Each end is a PacketIo for one thread; the two ends may be on two
// threads or on one. It never drops, reorders or delays a frame, never allocates after
// construction, and never reads a clock: a receiver that does not keep up stops the sender.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/address.hpp"
#include "engine/packet_io.hpp"

namespace roce::port {

/// How a frame gets from one end to the other; received ones are always read in place.
enum class Transfer : std::uint8_t {
  /// The sender writes into the slot that the receiver reads: no copy. Best on one thread. Between
  /// cores, each line that the sender writes must first be fetched back from the other core, and
  /// reading it again (for an ICRC) waits for that.
  IN_PLACE,
  /// The sender writes into memory of its own, and tx_burst() streams that past its cache into the
  /// slot, as a NIC would by DMA. Between cores 4 KiB frames go about twice as fast, on one thread
  /// half as fast.
  STREAMED,
};

struct MemoryWireConfig {
  /// Frames that each end can have on the way or unreleased at the other; 32 or more. With STREAMED
  /// it can have as many reserved besides. Few stay in cache, many absorb a receiver's pauses.
  std::size_t slots = 512;
  Transfer transfer = Transfer::STREAMED;
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
