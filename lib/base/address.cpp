#include "base/address.hpp"

#include <arpa/inet.h>

#include <charconv>
#include <cstdio>
#include <cstring>

namespace roce {

Result<MacAddress> MacAddress::from_string(std::string_view text) {
  MacAddress mac;
  std::size_t at = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    if (i > 0 && (at >= text.size() || text[at++] != ':')) at = text.size() + 1;
    const bool fits = at + 2 <= text.size();
    const char* end = fits ? text.data() + at + 2 : nullptr;
    if (!fits || std::from_chars(text.data() + at, end, mac.bytes[i], 16).ptr != end)
      return failure(std::string{text}, "not a MAC address",
                     "write six hex bytes, 02:00:00:00:00:01");
    at += 2;
  }
  if (at != text.size())
    return failure(std::string{text}, "not a MAC address",
                   "write six hex bytes, 02:00:00:00:00:01");
  return mac;
}

std::string MacAddress::to_string() const {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", bytes[0], bytes[1], bytes[2],
                bytes[3], bytes[4], bytes[5]);
  return text;
}

Result<IpAddress> IpAddress::from_string(std::string_view text) {
  const std::string copy{text};
  in_addr v4_address{};
  if (inet_pton(AF_INET, copy.c_str(), &v4_address) == 1) {
    IpAddress ip = v4(0, 0, 0, 0);
    std::memcpy(&ip.bytes[12], &v4_address, 4);
    return ip;
  }
  IpAddress ip;
  if (inet_pton(AF_INET6, copy.c_str(), ip.bytes.data()) == 1) return ip;
  return failure(copy, "not an IPv4 or IPv6 address", "write 198.18.0.1 or fd00::1");
}

std::string IpAddress::to_string() const {
  char text[INET6_ADDRSTRLEN];
  if (is_v4())
    inet_ntop(AF_INET, &bytes[12], text, sizeof text);
  else
    inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  return text;
}

Result<IpPrefix> IpPrefix::from_string(std::string_view text) {
  const auto slash = text.find('/');
  auto ip = IpAddress::from_string(text.substr(0, slash));
  if (!ip) return tl::make_unexpected(ip.error());
  const unsigned most = ip->is_v4() ? 32 : 128;
  unsigned length = most;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const char* end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, length);
    if (digits.empty() || parsed.ec != std::errc{} || parsed.ptr != end || length > most)
      return failure(std::string{text},
                     "the prefix length is not a number from 0 to " + std::to_string(most),
                     "write it as 198.18.0.1/24 or fd00::1/64");
  }
  return IpPrefix{*ip, static_cast<std::uint8_t>(length)};
}

bool IpPrefix::contains(const IpAddress& other) const {
  if (address.is_v4() != other.is_v4()) return false;
  unsigned bits = address.is_v4() ? 96u + length : length;
  for (std::size_t i = 0; bits > 0; ++i) {
    const unsigned taken = bits < 8 ? bits : 8;
    const auto mask = static_cast<std::uint8_t>(0xff << (8 - taken));
    if ((address.bytes[i] & mask) != (other.bytes[i] & mask)) return false;
    bits -= taken;
  }
  return true;
}

}  // namespace roce
