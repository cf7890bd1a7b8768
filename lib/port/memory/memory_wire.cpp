#include "port/memory/memory_wire.hpp"

#include <emmintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <vector>

#include "base/check.hpp"
#include "base/spsc_ring.hpp"
#include "wire/build.hpp"

namespace roce::port {
namespace {

using engine::Frame;
using engine::kBurst;

constexpr std::size_t kLine = 64;
/// Two lines: the adjacent-line prefetcher makes neighbours share as well.
constexpr std::size_t kNoSharing = 2 * kLine;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
/// An odd number of cache lines, so that headers of neighbouring slots fall into different sets.
constexpr std::size_t kStride = 67 * kLine;
/// Puts the payload of a packet with 54 bytes of headers (Ethernet, IPv4, UDP, BTH) on a line.
constexpr std::size_t kHeadroom = kLine - (14 + 20 + 8 + 12);
constexpr std::uint32_t kCapacity = kStride - kHeadroom;
static_assert(kCapacity >= wire::kMaxFrameBytes);
static_assert(kCapacity >=
              kMemoryWireMaxMtu + sizeof(wire::EthernetHeader) + sizeof(wire::VlanTag));

struct Descriptor {
  std::uint32_t slot;
  std::uint32_t length;
};

/// Slot memory, in transparent huge pages where the kernel grants them: a TLB miss per frame costs
/// more than the ring.
class Slots {
 public:
  explicit Slots(std::size_t count)
      : bytes_((count * kStride + kHugePage - 1) / kHugePage * kHugePage),
        base_(static_cast<std::byte*>(::operator new (bytes_, std::align_val_t{kHugePage}))) {
    (void)::madvise(base_, bytes_, MADV_HUGEPAGE);
    std::fill_n(base_, bytes_, std::byte{0});  // faults are taken here, not in the first burst
  }
  ~Slots() { ::operator delete (base_, std::align_val_t{kHugePage}); }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  [[nodiscard]] Frame frame(std::uint32_t slot, std::uint32_t length) const {
    // The handle is the slot number itself.
    return {base_ + slot * kStride + kHeadroom, length, kCapacity,
            reinterpret_cast<void*>(std::uintptr_t{slot})};
  }
  [[nodiscard]] static std::uint32_t slot_of(const Frame& frame) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(frame.handle));
  }

 private:
  std::size_t bytes_;
  std::byte* base_;
};

/// Numbers that nobody uses; last freed, first used, so that few go round and stay in cache.
class FreeStack {
 public:
  explicit FreeStack(std::size_t count) : numbers_(count), size_(count) {
    for (std::size_t i = 0; i < count; ++i)
      numbers_[i] = static_cast<std::uint32_t>(count - 1 - i);  // 0 on top
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::uint32_t pop() { return numbers_[--size_]; }
  void push(std::uint32_t number) {
    ROCE_CHECK(size_ < numbers_.size());  // else something was released twice
    numbers_[size_++] = number;
  }
  void refill(SpscRing<std::uint32_t>& ring) {
    size_ += ring.pop(std::span(numbers_).subspan(size_));
  }

 private:
  std::vector<std::uint32_t> numbers_;
  std::size_t size_;
};

/// Copies a frame past the cache; short ones by plain stores, which arrive sooner.
void stream(const Frame& from, std::byte* to) {
  constexpr std::uint32_t kWorthIt = 512;
  if (from.length < kWorthIt) {
    std::memcpy(to, from.data, from.length);
    return;
  }
  // Both start kHeadroom bytes behind a line.
  const std::byte* source = from.data - kHeadroom;
  to -= kHeadroom;
  for (std::size_t at = 0; at < from.length + kHeadroom; at += sizeof(__m128i))
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(source + at)));
}

/// Written by one thread, read by any.
class SingleWriterCounter {
 public:
  void add(std::uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace

/// One direction: the slots, the ring that carries them over and the ring back.
struct alignas(kNoSharing) MemoryWire::Direction {
  explicit Direction(std::size_t count) : slots(count), frames(count), returns(count) {}
  Slots slots;
  SpscRing<Descriptor> frames;
  SpscRing<std::uint32_t> returns;
};

class alignas(kNoSharing) MemoryWire::End final : public engine::PacketIo {
 public:
  End(engine::PortInfo info, const MemoryWireConfig& config, Direction& out, Direction& in)
      : info_(std::move(info)),
        transfer_(config.transfer),
        out_(out),
        in_(in),
        buffers_(streams() ? config.slots : 0),
        free_buffers_(streams() ? config.slots : 0),
        free_slots_(config.slots) {}

  std::size_t rx_burst(Instant /*now*/, std::span<Frame> out) override {
    std::array<Descriptor, kBurst> batch;
    const std::size_t n = in_.frames.pop(std::span(batch).first(std::min(out.size(), kBurst)));
    if (n == 0) return 0;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = in_.slots.frame(batch[i].slot, batch[i].length);
      for (std::size_t line = 0; line < 3; ++line)  // headers, or all of a small message
        __builtin_prefetch(out[i].data + line * kLine);
      bytes += batch[i].length;
    }
    ipackets_.add(n);
    ibytes_.add(bytes);
    return n;
  }

  void rx_release(std::span<const Frame> frames) override {
    while (!frames.empty()) {
      std::array<std::uint32_t, kBurst> batch;
      const std::size_t n = std::min(frames.size(), kBurst);
      for (std::size_t i = 0; i < n; ++i) batch[i] = Slots::slot_of(frames[i]);
      // The ring holds all slots there are: more means that one was released twice.
      ROCE_CHECK(in_.returns.push(std::span<const std::uint32_t>(batch).first(n)) == n);
      frames = frames.subspan(n);
    }
  }

  std::size_t tx_reserve(std::span<Frame> out) override {
    if (!streams()) free_slots_.refill(out_.returns);
    Slots& slots = streams() ? buffers_ : out_.slots;
    FreeStack& free = streams() ? free_buffers_ : free_slots_;
    const std::size_t n = std::min(out.size(), free.size());
    for (std::size_t i = 0; i < n; ++i) out[i] = slots.frame(free.pop(), 0);
    return n;
  }

  std::size_t tx_burst(Instant /*now*/, std::span<const Frame> frames) override {
    std::array<Descriptor, kBurst> batch;
    std::size_t n = std::min(frames.size(), kBurst);
    if (streams()) {
      free_slots_.refill(out_.returns);
      n = std::min(n, free_slots_.size());
    }
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < n; ++i) {
      ROCE_CHECK(frames[i].length <= kCapacity);
      batch[i] = {streams() ? free_slots_.pop() : Slots::slot_of(frames[i]), frames[i].length};
      if (streams()) stream(frames[i], out_.slots.frame(batch[i].slot, 0).data);
      bytes += frames[i].length;
    }
    if (streams()) _mm_sfence();  // streamed bytes before the slot's number
    // As in rx_release(): there is room for every slot.
    ROCE_CHECK(out_.frames.push(std::span<const Descriptor>(batch).first(n)) == n);
    if (streams()) tx_release(frames.first(n));
    opackets_.add(n);
    obytes_.add(bytes);
    return n;
  }

  void tx_release(std::span<const Frame> frames) override {
    FreeStack& free = streams() ? free_buffers_ : free_slots_;
    for (const Frame& frame : frames) free.push(Slots::slot_of(frame));
  }

  const engine::PortInfo& info() const override { return info_; }

  engine::PortCounters counters() const override {
    engine::PortCounters c;
    c.ipackets = ipackets_.get();
    c.ibytes = ibytes_.get();
    c.opackets = opackets_.get();
    c.obytes = obytes_.get();
    return c;
  }

 private:
  [[nodiscard]] bool streams() const { return transfer_ == Transfer::STREAMED; }

  engine::PortInfo info_;
  Transfer transfer_;
  Direction& out_;
  Direction& in_;
  Slots buffers_;           ///< STREAMED: what tx_reserve() lends
  FreeStack free_buffers_;  ///< of buffers_
  FreeStack free_slots_;    ///< of out_.slots
  SingleWriterCounter ipackets_, ibytes_, opackets_, obytes_;
};

MemoryWire::MemoryWire(const MemoryWireConfig& config)
    : forward_(std::make_unique<Direction>(config.slots)),
      backward_(std::make_unique<Direction>(config.slots)) {
  ROCE_CHECK(config.slots >= kBurst && config.mtu <= kMemoryWireMaxMtu);
  const auto end = [&](const char* suffix, const MacAddress& mac, Direction& out, Direction& in) {
    return std::make_unique<End>(engine::PortInfo{config.name + suffix, mac, config.mtu, false},
                                 config, out, in);
  };
  first_ = end(".0", config.first_mac, *forward_, *backward_);
  second_ = end(".1", config.second_mac, *backward_, *forward_);
}

MemoryWire::~MemoryWire() = default;

engine::PacketIo& MemoryWire::first() {
  return *first_;
}
engine::PacketIo& MemoryWire::second() {
  return *second_;
}

}  // namespace roce::port
