// AETH syndromes: ACK credits, RNR timers and NAK codes (IBTA 9.7.5.1.3, tables 44 to 46).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/time.hpp"

namespace roce::wire {

enum class SyndromeKind : std::uint8_t { ACK = 0, RNR_NAK = 1, RESERVED = 2, NAK = 3 };

/// The low five bits of a NAK syndrome.
enum class NakCode : std::uint8_t {
  PSN_SEQUENCE_ERROR = 0,
  INVALID_REQUEST = 1,
  REMOTE_ACCESS_ERROR = 2,
  REMOTE_OPERATIONAL_ERROR = 3,
  INVALID_RD_REQUEST = 4,
};

[[nodiscard]] constexpr SyndromeKind syndrome_kind(std::uint8_t syndrome) {
  return static_cast<SyndromeKind>((syndrome >> 5) & 3);
}
/// The low five bits: credit code, RNR timer code or NAK code.
[[nodiscard]] constexpr std::uint8_t syndrome_value(std::uint8_t syndrome) {
  return syndrome & 0x1f;
}

inline constexpr std::uint8_t kUnlimitedCredits = 31;

[[nodiscard]] constexpr std::uint8_t ack_syndrome(std::uint8_t credit_code = kUnlimitedCredits) {
  return credit_code & 0x1f;
}
[[nodiscard]] constexpr std::uint8_t rnr_syndrome(std::uint8_t timer_code) {
  return static_cast<std::uint8_t>(0x20 | (timer_code & 0x1f));
}
[[nodiscard]] constexpr std::uint8_t nak_syndrome(NakCode code) {
  return static_cast<std::uint8_t>(0x60 | static_cast<std::uint8_t>(code));
}

/// Receive credits by credit code 0..30; 31 means no limit.
inline constexpr std::array<std::uint16_t, 31> kCredits = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

/// RNR timer by code 0..31 in units of 10 us. Code 0 is the longest, not zero.
inline constexpr std::array<std::uint32_t, 32> kRnrTimer10us = {
    65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
    48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
    2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

[[nodiscard]] constexpr Duration rnr_timer(std::uint8_t code) {
  return Duration::microseconds(std::int64_t{kRnrTimer10us[code & 0x1f]} * 10);
}

/// "ACK", "RNR_NAK", or the name of the NAK code.
[[nodiscard]] std::string_view syndrome_name(std::uint8_t syndrome);

}  // namespace roce::wire
