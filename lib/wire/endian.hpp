// Be16, Be24, Be32, Be64: big-endian fields of alignment 1, the bricks of every wire header.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace roce::wire {

static_assert(std::endian::native == std::endian::little, "only little-endian hosts are supported");

struct Be16 {
  std::uint8_t bytes[2];
  [[nodiscard]] std::uint16_t get() const {
    std::uint16_t v;
    std::memcpy(&v, bytes, 2);
    return __builtin_bswap16(v);
  }
  void set(std::uint16_t v) {
    v = __builtin_bswap16(v);
    std::memcpy(bytes, &v, 2);
  }
};

struct Be24 {
  std::uint8_t bytes[3];
  [[nodiscard]] std::uint32_t get() const {
    return static_cast<std::uint32_t>(bytes[0] << 16 | bytes[1] << 8 | bytes[2]);
  }
  /// Stores the low 24 bits.
  void set(std::uint32_t v) {
    bytes[0] = static_cast<std::uint8_t>(v >> 16);
    bytes[1] = static_cast<std::uint8_t>(v >> 8);
    bytes[2] = static_cast<std::uint8_t>(v);
  }
};

struct Be32 {
  std::uint8_t bytes[4];
  [[nodiscard]] std::uint32_t get() const {
    std::uint32_t v;
    std::memcpy(&v, bytes, 4);
    return __builtin_bswap32(v);
  }
  void set(std::uint32_t v) {
    v = __builtin_bswap32(v);
    std::memcpy(bytes, &v, 4);
  }
};

struct Be64 {
  std::uint8_t bytes[8];
  [[nodiscard]] std::uint64_t get() const {
    std::uint64_t v;
    std::memcpy(&v, bytes, 8);
    return __builtin_bswap64(v);
  }
  void set(std::uint64_t v) {
    v = __builtin_bswap64(v);
    std::memcpy(bytes, &v, 8);
  }
};

static_assert(sizeof(Be16) == 2 && sizeof(Be24) == 3 && sizeof(Be32) == 4 && sizeof(Be64) == 8);
static_assert(alignof(Be64) == 1);

/// Views wire bytes as a header. T must be a wire struct: trivially copyable, alignment 1.
template <class T>
[[nodiscard]] T* view_as(std::byte* bytes) {
  static_assert(alignof(T) == 1 && std::is_trivially_copyable_v<T>);
  return reinterpret_cast<T*>(bytes);
}
template <class T>
[[nodiscard]] const T* view_as(const std::byte* bytes) {
  static_assert(alignof(T) == 1 && std::is_trivially_copyable_v<T>);
  return reinterpret_cast<const T*>(bytes);
}

}  // namespace roce::wire
