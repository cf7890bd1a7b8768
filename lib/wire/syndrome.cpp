#include "wire/syndrome.hpp"

namespace roce::wire {

std::string_view syndrome_name(std::uint8_t syndrome) {
  constexpr std::array<std::string_view, 5> kNakNames = {
      "NAK_PSN_SEQUENCE_ERROR", "NAK_INVALID_REQUEST", "NAK_REMOTE_ACCESS_ERROR",
      "NAK_REMOTE_OPERATIONAL_ERROR", "NAK_INVALID_RD_REQUEST"};
  switch (syndrome_kind(syndrome)) {
    case SyndromeKind::ACK:
      return "ACK";
    case SyndromeKind::RNR_NAK:
      return "RNR_NAK";
    case SyndromeKind::RESERVED:
      return "RESERVED";
    case SyndromeKind::NAK:
      break;
  }
  const std::uint8_t code = syndrome_value(syndrome);
  return code < kNakNames.size() ? kNakNames[code] : "NAK_UNKNOWN";
}

}  // namespace roce::wire
