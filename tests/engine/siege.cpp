#include "engine/siege.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/no_allocation.hpp"
#include "wire/checksum.hpp"
#include "wire/icrc.hpp"

namespace roce::test {
namespace {

port::MemoryWireConfig wire_config() {
  port::MemoryWireConfig config;
  config.transfer = port::Transfer::IN_PLACE;
  return config;
}

void put(engine::PacketIo& io, Instant now, const Bytes& frame) {
  std::array<engine::Frame, 1> slot;
  REQUIRE(io.tx_reserve(slot) == 1);
  REQUIRE(frame.size() <= slot[0].capacity);
  std::copy(frame.begin(), frame.end(), slot[0].data);
  slot[0].length = static_cast<std::uint32_t>(frame.size());
  REQUIRE(io.tx_burst(now, slot) == 1);
}

void collect(engine::PacketIo& io, Instant now, std::vector<Bytes>& replies) {
  std::array<engine::Frame, engine::kBurst> frames;
  while (const std::size_t n = io.rx_burst(now, frames)) {
    for (std::size_t i = 0; i < n; ++i)
      replies.emplace_back(frames[i].data, frames[i].data + frames[i].length);
    io.rx_release({frames.data(), n});
  }
}

}  // namespace

std::vector<Bytes> exchange(engine::PacketIo& stranger, engine::Worker& worker, Instant& now,
                            std::span<const Bytes> frames) {
  std::vector<Bytes> replies;
  const std::uint64_t before = NoAllocation::violations();
  for (const Bytes& frame : frames) put(stranger, now, frame);
  for (bool busy = true; busy;) {
    {
      const NoAllocation guard;
      busy = worker.turn(now);
    }
    collect(stranger, now, replies);
    now = now + Duration::nanoseconds(100);
  }
  REQUIRE(NoAllocation::violations() == before);
  return replies;
}

Siege::Siege(std::uint32_t max_qps)
    : wire(wire_config()),
      host({.index = 1, .max_qps = max_qps, .seed = 2}, wire.second(),
           {IpAddress::v4(198, 18, 0, 2), 24}),
      mac(wire.first().info().mac) {}

wire::PathAttributes Siege::path() const {
  wire::PathAttributes path;
  path.source_mac = mac;
  path.destination_mac = host.mac;
  path.source = ip;
  path.destination = host.address.address;
  return path;
}

Qpn Siege::victim(verbs::QpType type) {
  constexpr std::uint8_t kRemoteAccess =
      verbs::ACCESS_REMOTE_WRITE | verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC;
  const bool connected = type != verbs::QpType::UD;
  verbs::QpInitAttributes init;
  init.type = type;
  init.pd = host.pd;
  init.send_cq = init.recv_cq = &host.cq;
  init.cap = {8, 8, 1, 1, 64};
  const Qpn qpn = host.worker.create_qp(init).value();

  verbs::QpAttributes attributes;
  attributes.qp_state = verbs::QpState::INIT;
  if (connected)
    attributes.qp_access_flags = kRemoteAccess;
  else
    attributes.qkey = kQkey;
  REQUIRE(host.worker.modify_qp(qpn, attributes));

  attributes = {};
  attributes.qp_state = verbs::QpState::RTR;
  if (connected) {
    wire::PathAttributes back = path();
    std::swap(back.source_mac, back.destination_mac);
    std::swap(back.source, back.destination);
    attributes.path = back;
    attributes.path_mtu = verbs::Mtu::MTU_1024;
    attributes.dest_qp_num = kStrangerQpn;
    attributes.rq_psn = Psn{kFirstPsn};
  }
  if (type == verbs::QpType::RC) {
    attributes.max_dest_rd_atomic = 4;
    attributes.min_rnr_timer = 12;
  }
  REQUIRE(host.worker.modify_qp(qpn, attributes));

  attributes = {};
  attributes.qp_state = verbs::QpState::RTS;
  attributes.sq_psn = Psn{kFirstPsn};
  if (type == verbs::QpType::RC) {
    attributes.timeout = 14;
    attributes.retry_cnt = 7;
    attributes.rnr_retry = 7;
    attributes.max_rd_atomic = 4;
  }
  REQUIRE(host.worker.modify_qp(qpn, attributes));
  return qpn;
}

Bytes Siege::make(const wire::PathAttributes& path, const Shot& shot) {
  Bytes frame(wire::kMaxFrameBytes);
  wire::FrameBuilder builder{frame, wire::make_path_headers(path), shot.bth, shot.payload};
  for (std::size_t i = 0; i < shot.payload; ++i) builder.payload()[i] = std::byte{0xee};
  if (shot.fill) shot.fill(builder);
  frame.resize(builder.finish());
  return frame;
}

std::vector<Reply> Siege::send(std::span<const Bytes> frames) {
  std::vector<Reply> replies;
  for (Bytes& bytes : exchange(wire.first(), host.worker, now, frames)) {
    Reply& reply = replies.emplace_back();
    reply.bytes = std::move(bytes);
    // A packet points into bytes, which stay in place when the reply moves.
    reply.verdict = wire::parse(reply.bytes, wire::IcrcCheck::VERIFY, reply.packet);
  }
  return replies;
}

void repair(Bytes& frame) {
  std::size_t l3 = sizeof(wire::EthernetHeader);
  if (frame.size() < l3) return;
  std::uint16_t type = wire::view_as<wire::EthernetHeader>(frame.data())->ether_type.get();
  if (type == wire::kEtherVlan) {
    if (frame.size() < l3 + sizeof(wire::VlanTag)) return;
    type = wire::view_as<wire::VlanTag>(frame.data() + l3)->ether_type.get();
    l3 += sizeof(wire::VlanTag);
  }
  std::size_t length = 0;
  std::size_t header = 0;
  if (type == wire::kEtherIpv4 && frame.size() >= l3 + sizeof(wire::Ipv4Header)) {
    auto& ip = *wire::view_as<wire::Ipv4Header>(frame.data() + l3);
    header = sizeof(wire::Ipv4Header);
    ip.checksum.set(0);
    ip.checksum.set(wire::internet_checksum({frame.data() + l3, header}));
    length = ip.total_length.get();
  } else if (type == wire::kEtherIpv6 && frame.size() >= l3 + sizeof(wire::Ipv6Header)) {
    header = sizeof(wire::Ipv6Header);
    length = header + wire::view_as<wire::Ipv6Header>(frame.data() + l3)->payload_length.get();
  }
  const std::size_t least = header + sizeof(wire::UdpHeader) + sizeof(wire::Bth) + wire::kIcrcBytes;
  if (header == 0 || length < least || l3 + length > frame.size()) return;
  // icrc() goes by the version nibble, which a mutation may have made another.
  const unsigned version = std::to_integer<unsigned>(frame[l3]) >> 4;
  if ((version == 4) != (type == wire::kEtherIpv4)) return;
  std::byte* at = frame.data() + l3;
  wire::store_icrc(at + length - wire::kIcrcBytes, wire::icrc({at, length - wire::kIcrcBytes}));
}

}  // namespace roce::test
