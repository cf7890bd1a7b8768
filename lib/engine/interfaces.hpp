// Interfaces: the endpoints of a worker, and whose a frame is. Owned by the worker; asked for every
// packet, so the answer for the endpoint that was asked for last is a few compares.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/address.hpp"
#include "engine/interface.hpp"
#include "wire/packet.hpp"

namespace roce::engine {

/// VLAN id of a tag; 0 for none. Priority does not decide whose an address is.
[[nodiscard]] inline std::uint16_t vid_of(std::optional<std::uint16_t> tci) {
  return tci ? *tci & 0xfff : 0;
}

/// Spreads addresses evenly; secret makes collisions hard to provoke from outside.
[[nodiscard]] inline std::uint64_t hash_of(const IpAddress& ip, std::uint64_t secret) {
  std::uint64_t high = 0, low = 0;
  std::memcpy(&high, ip.bytes.data(), sizeof high);
  std::memcpy(&low, ip.bytes.data() + sizeof high, sizeof low);
  std::uint64_t hash = (high ^ secret) * 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 32) ^ low) * 0xbf58476d1ce4e5b9;
  return hash ^ (hash >> 32);
}

class Interfaces {
 public:
  InterfaceId add(const InterfaceConfig& config);
  /// Stays where it is when others are added.
  [[nodiscard]] const InterfaceConfig& operator[](InterfaceId id) const { return all_[id]; }

  /// Whether a packet is for one of ours: MAC, VLAN and IP address of the same one.
  [[nodiscard]] bool owns(const wire::Packet& packet) {
    return last_.matches(packet) || look_up(packet);
  }
  /// Who has an address on a VLAN; null when it is none of ours.
  [[nodiscard]] const InterfaceConfig* owner_of(const IpAddress& ip, std::uint16_t vid) const;
  [[nodiscard]] bool has_mac(const MacAddress& mac) const { return macs_.contains(number_of(mac)); }

 private:
  /// One address of one interface, as a frame shows it.
  struct Endpoint {
    MacAddress mac;
    std::uint16_t vid = 0;
    bool valid = false;
    bool is_v6 = false;
    IpAddress ip;

    [[nodiscard]] bool matches(const wire::Packet& packet) const {
      if (!valid || packet.is_v6 != is_v6 || (packet.vlan_tci & 0xfff) != vid) return false;
      if (std::memcmp(packet.l2, mac.bytes.data(), mac.bytes.size()) != 0) return false;
      return is_v6 ? std::memcmp(wire::view_as<wire::Ipv6Header>(packet.l3)->destination,
                                 ip.bytes.data(), 16) == 0
                   : std::memcmp(wire::view_as<wire::Ipv4Header>(packet.l3)->destination,
                                 &ip.bytes[12], 4) == 0;
    }
  };
  struct IpHash {
    std::size_t operator()(const IpAddress& ip) const noexcept { return hash_of(ip, 0); }
  };

  [[nodiscard]] static std::uint64_t number_of(const MacAddress& mac);
  [[nodiscard]] bool look_up(const wire::Packet& packet);

  std::deque<InterfaceConfig> all_;
  std::unordered_map<IpAddress, std::vector<InterfaceId>, IpHash> by_address_;
  std::unordered_set<std::uint64_t> macs_;
  Endpoint last_;
};

}  // namespace roce::engine
