#include "fabric/link.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace roce::fabric {
namespace {

struct Response {
  double gbps;
  std::uint32_t quanta;
};
constexpr Response kResponses[] = {{10, 67},   {25, 80},   {40, 118}, {50, 147},
                                   {100, 394}, {200, 453}, {400, 905}};

constexpr std::uint32_t kPfcWireBytes = 60 + kWireOverheadBytes;

}  // namespace

Serialiser::Serialiser(Rate rate) : bits_per_second_(std::llround(rate.bps())) {
  ROCE_CHECK(bits_per_second_ > 0 && bits_per_second_ <= kPsBitsPerByte);
  if (kPsBitsPerByte % bits_per_second_ == 0) ps_per_byte_ = kPsBitsPerByte / bits_per_second_;
}

std::uint64_t Serialiser::bytes_in(Picoseconds span) const {
  const double bytes = static_cast<double>(span) * static_cast<double>(bits_per_second_) /
                       static_cast<double>(kPsBitsPerByte);
  return static_cast<std::uint64_t>(std::ceil(bytes - 1e-6));
}

std::uint32_t pfc_response_quanta(Rate rate) {
  for (const Response& response : kResponses)
    if (rate.gbps() <= response.gbps) return response.quanta;
  return static_cast<std::uint32_t>(std::ceil(905 * rate.gbps() / 400));
}

Picoseconds pfc_response(const LinkConfig& link) {
  return link.pfc_response ? to_ps(*link.pfc_response)
                           : Serialiser{link.rate}.quanta(pfc_response_quanta(link.rate));
}

std::uint64_t pfc_headroom(const LinkConfig& link, std::uint32_t max_frame, CellSize cell) {
  const Serialiser line{link.rate};
  const std::uint32_t own = max_frame + kWireOverheadBytes;
  const std::uint64_t wire =
      own + kPfcWireBytes + line.bytes_in(2 * to_ps(link.delay) + pfc_response(link));
  // Short frames waste the most of a cell, but bring their own overhead on the wire.
  double worst = 1.0;
  if (cell.bytes > 1)
    for (std::uint32_t length = 60; length <= std::max(max_frame, 60u); ++length)
      worst = std::max(worst, static_cast<double>(cell.charge(length)) /
                                  static_cast<double>(length + kWireOverheadBytes));
  return 2 * std::uint64_t{cell.charge(max_frame)} +
         static_cast<std::uint64_t>(std::ceil(static_cast<double>(wire) * worst));
}

}  // namespace roce::fabric
