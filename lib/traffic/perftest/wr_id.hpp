// How the data planes number work requests: the lane in the low 16 bits, the message above.
#pragma once

#include <cstdint>

namespace roce::traffic::perftest {

[[nodiscard]] constexpr std::uint64_t make_wr_id(std::uint32_t lane, std::uint64_t message) {
  return message << 16 | lane;
}
[[nodiscard]] constexpr std::uint32_t lane_of(std::uint64_t wr_id) {
  return static_cast<std::uint32_t>(wr_id & 0xffff);
}
[[nodiscard]] constexpr std::uint64_t message_of(std::uint64_t wr_id) {
  return wr_id >> 16;
}

}  // namespace roce::traffic::perftest
