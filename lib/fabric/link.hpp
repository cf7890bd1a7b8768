// Links: rate, delay, and how long PFC takes over them. Pure functions and plain structs.
#pragma once

#include <cstdint>
#include <optional>

#include "base/rate.hpp"
#include "base/time.hpp"
#include "fabric/sim_time.hpp"

namespace roce::fabric {

/// What a frame of ours (without FCS) takes on the wire besides itself: FCS 4, preamble and start
/// delimiter 8, inter-frame gap 12 (IEEE 802.3).
inline constexpr std::uint32_t kWireOverheadBytes = 4 + 8 + 12;

/// A full-duplex link; both directions alike.
struct LinkConfig {
  Rate rate = Rate::gbps(100);                  ///< above 0, up to 8 Tb/s
  Duration delay = Duration::nanoseconds(600);  ///< propagation, one way; see cable_delay()
  /// From a PFC frame's last bit to the last moment at which its receiver may start another frame
  /// of a paused class. Default: the most that IEEE 802.3 31B allows at this rate.
  std::optional<Duration> pfc_response{};
};

/// Propagation over a cable or fibre: 5.05 ns a metre, 1.98e8 m/s.
[[nodiscard]] constexpr Duration cable_delay(double metres) {
  return Duration::nanoseconds(static_cast<std::int64_t>(metres * 5.05 + 0.5));
}

/// How long bytes take at a rate; exact where 8e12 is a multiple of it, else rounded up.
class Serialiser {
 public:
  Serialiser() = default;
  explicit Serialiser(Rate rate);
  /// bytes: on the wire, overhead included; below 2^20.
  [[nodiscard]] Picoseconds time(std::uint32_t bytes) const {
    if (ps_per_byte_ != 0) [[likely]]
      return ps_per_byte_ * bytes;
    return (kPsBitsPerByte * bytes + bits_per_second_ - 1) / bits_per_second_;
  }
  /// n pause quanta of 512 bit times.
  [[nodiscard]] Picoseconds quanta(std::uint32_t n) const { return time(64) * n; }
  /// Bytes that pass in a time, rounded up.
  [[nodiscard]] std::uint64_t bytes_in(Picoseconds span) const;

 private:
  static constexpr std::int64_t kPsBitsPerByte = 8'000'000'000'000;
  std::int64_t bits_per_second_ = 1;
  std::int64_t ps_per_byte_ = 0;  ///< 0: not a whole number
};

/// The most quanta of 512 bit times that a PFC receiver may take to respond, by rate (IEEE 802.3
/// 31B.3.7 as SONiC's headroom computation has it): 67 at 10 Gb/s, 394 at 100, 905 at 400. Rates in
/// between take the value of the next faster one; above 400 Gb/s it grows in proportion.
[[nodiscard]] std::uint32_t pfc_response_quanta(Rate rate);
/// link.pfc_response, or its default.
[[nodiscard]] Picoseconds pfc_response(const LinkConfig& link);

/// A buffer made of cells.
struct CellSize {
  std::uint32_t bytes = 1;  ///< 1: bytes are counted as they are
  [[nodiscard]] std::uint32_t charge(std::uint32_t length) const {
    return bytes == 1 ? length : (length + bytes - 1) / bytes * bytes;
  }
};

/// Bytes that may still come in of a class after its XOFF, for frames of up to max_frame bytes
/// (without FCS):
///
///   frame that crossed the threshold                              max_frame
///   own frame just begun, which the PFC frame waits for           max_frame + 24
///   the PFC frame                                                 84
///   there and back                                                2 * delay * rate
///   the peer's response                                           response * rate
///   peer's frame just begun                                       max_frame
///
/// times the worst ratio of cells to wire bytes. The form of the 802.1Qbb annex O bound that the
/// model can reach to within one frame.
[[nodiscard]] std::uint64_t pfc_headroom(const LinkConfig& link, std::uint32_t max_frame,
                                         CellSize cell = {});

}  // namespace roce::fabric
