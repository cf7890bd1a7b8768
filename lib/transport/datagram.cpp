// UD: one packet, one receive WR, 40 bytes of GRH area in front.
#include <array>
#include <cstring>

#include "transport/responder.hpp"

namespace roce::transport {

using wire::Packet;

namespace {

constexpr std::size_t kGrhBytes = 40;

/// The GRH area: the IPv6 header as it is, or 20 zero bytes and the IPv4 header (annex A17).
std::array<std::byte, kGrhBytes> grh_area(const Packet& packet) {
  std::array<std::byte, kGrhBytes> area{};
  if (packet.is_v6)
    std::memcpy(area.data(), packet.l3, sizeof(wire::Ipv6Header));
  else
    std::memcpy(area.data() + kGrhBytes - sizeof(wire::Ipv4Header), packet.l3,
                sizeof(wire::Ipv4Header));
  return area;
}

}  // namespace

void Responder::on_datagram(const Packet& packet) {
  Counters& counters = context_.counters;
  if (packet.deth().qkey.get() != context_.qkey) {
    ++counters.drop_qkey;
    return;
  }
  if (!length_fits(packet)) {
    ++counters.drop_length;
    return;
  }
  if (queue_.empty()) {
    ++counters.out_of_buffer;
    return;
  }
  const auto bytes = static_cast<std::uint32_t>(kGrhBytes + packet.payload.size());
  if (bytes > queue_.front().length) {
    ++counters.drop_length;
    return;
  }
  const auto area = grh_area(packet);
  const auto list = queue_.front_list();
  if (!scatter(context_.memory, context_.pd, list, 0, area) ||
      !scatter(context_.memory, context_.pd, list, kGrhBytes, packet.payload)) {
    fail_receive(verbs::WcStatus::LOC_PROT_ERR);
    context_.fail(Failure::QP);
    return;
  }
  complete_receive(packet, bytes);
}

}  // namespace roce::transport
