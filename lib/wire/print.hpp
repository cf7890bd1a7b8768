// One-line text of packets for traces and test failures. Never called on the datapath.
#pragma once

#include <span>
#include <string>

#include "wire/packet.hpp"

namespace roce::wire {

/// A parsed packet from the BTH on, as in
/// "RC_RDMA_WRITE_ONLY dqpn=0x000012 psn=123 ack_req va=0x1000 rkey=0x1234 dma_len=33 payload=33
/// pad=3". Flags and P_Key appear only when they are not the usual ones.
[[nodiscard]] std::string to_string(const Packet& packet);

/// A frame of any kind: addresses, then the packet as above, a neighbour message, a flow-control
/// frame, or the name of the verdict.
[[nodiscard]] std::string describe_frame(std::span<const std::byte> frame,
                                         IcrcCheck check = IcrcCheck::VERIFY);

}  // namespace roce::wire
