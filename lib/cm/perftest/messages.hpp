// The messages of perftest's TCP exchange, byte for byte (perftest 4.5 to 26.x, advertised version
// below 6.28). Encoding and decoding only; their order is script.hpp's affair.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/address.hpp"
#include "base/result.hpp"
#include "base/types.hpp"
#include "verbs/enums.hpp"

namespace roce::cm::perftest {

inline constexpr std::size_t kVersionBytes = 16;
inline constexpr std::size_t kSystemWordBytes = 4;
inline constexpr std::size_t kMtuBytes = 2;
inline constexpr std::size_t kKeysBytes = 108;
inline constexpr std::size_t kReportWordBytes = 8;
inline constexpr std::string_view kDone{"done", 5};  ///< with its NUL

inline constexpr std::string_view kOldestVersion = "6.06";
inline constexpr std::string_view kNewestVersion = "6.27";
/// Each side tells these two and takes the larger; they shape the ring of small messages.
inline constexpr std::uint32_t kCycleBufferBytes = 4096;
inline constexpr std::uint32_t kCacheLineBytes = 64;

/// What one side tells of one QP.
struct Keys {
  std::uint16_t lid = 0;        ///< 0 on Ethernet
  std::uint16_t out_reads = 1;  ///< READs and atomics that the sender answers at a time
  Qpn qpn;
  Psn psn;
  std::uint32_t rkey = 0;
  std::uint64_t vaddr = 0;
  IpAddress gid;
  std::uint32_t srqn = 0;
  friend bool operator==(const Keys&, const Keys&) = default;
};

/// The five numbers exchanged after a bandwidth run; rates in the unit of the side that sends them.
struct BandwidthReport {
  std::uint64_t size = 0;  ///< bytes of a message
  std::uint64_t iterations = 0;
  double peak = 0;  ///< MiB/s, or Gb/s with --report_gbits
  double average = 0;
  double message_rate = 0;  ///< millions of messages a second
};
inline constexpr std::size_t kReportWords = 5;

/// version: "6.06".."6.27"; at most 15 characters.
[[nodiscard]] std::array<std::byte, kVersionBytes> encode_version(std::string_view version);
/// Fails unless it is a NUL-padded decimal number from 5.70 on.
[[nodiscard]] Result<std::string> decode_version(std::span<const std::byte, kVersionBytes> bytes);

[[nodiscard]] std::array<std::byte, kMtuBytes> encode_mtu(verbs::Mtu mtu);
[[nodiscard]] Result<verbs::Mtu> decode_mtu(std::span<const std::byte, kMtuBytes> bytes);

[[nodiscard]] std::array<std::byte, kKeysBytes> encode_keys(const Keys& keys);
/// Fails when a field is not hexadecimal, or no QP can be connected to it: reserved QP number, GID
/// of no single host, no outstanding reads.
[[nodiscard]] Result<Keys> decode_keys(std::span<const std::byte, kKeysBytes> bytes);

/// Word i (0..4) of a report, as eight big-endian bytes.
[[nodiscard]] std::array<std::byte, kReportWordBytes> encode_report_word(
    const BandwidthReport& report, std::size_t i);
/// Stores word i. A rate that cannot be one becomes 0: a one-way server sends what its memory
/// holds.
void decode_report_word(std::span<const std::byte, kReportWordBytes> bytes, std::size_t i,
                        BandwidthReport& report);

}  // namespace roce::cm::perftest
