#include "base/address.hpp"

#include <rapidcheck.h>
#include <rapidcheck/catch.h>

using roce::IpAddress;
using roce::IpPrefix;
using roce::MacAddress;

TEST_CASE("MAC addresses are read and printed", "[base][address]") {
  const auto mac = MacAddress::from_string("02:AB:cd:00:0f:ff");
  REQUIRE(mac);
  CHECK(mac->to_string() == "02:ab:cd:00:0f:ff");
  CHECK_FALSE(mac->is_multicast());
  CHECK(MacAddress::broadcast().is_multicast());
  for (const char* bad : {"", "02", "02:00:00:00:00", "02:00:00:00:00:01:", "02:00:00:00:00:01:02",
                          "02-00-00-00-00-01", "02:00:00:00:00:0g", "2:0:0:0:0:1", "020000000001",
                          " 02:00:00:00:00:01", "02:00:00:00:00:01 ", "02:00:00:00:00:-1",
                          "02:00:00:00:00:+1", "02:00:00:00:00:0"}) {
    INFO(bad);
    const auto result = MacAddress::from_string(bad);
    REQUIRE_FALSE(result);
    CHECK_FALSE(result.error().fix.empty());
  }
}

TEST_CASE("IPv4 addresses are read and printed as mapped addresses", "[base][address]") {
  const auto ip = IpAddress::from_string("198.18.0.1");
  REQUIRE(ip);
  CHECK(*ip == IpAddress::v4(198, 18, 0, 1));
  CHECK(ip->is_v4());
  CHECK(ip->to_string() == "198.18.0.1");
  CHECK(IpAddress::from_string("::ffff:198.18.0.1").value() == *ip);
}

TEST_CASE("IPv6 addresses are read and printed in canonical form", "[base][address]") {
  const auto ip = IpAddress::from_string("FD00:0:0:0:0:0:0:1");
  REQUIRE(ip);
  CHECK_FALSE(ip->is_v4());
  CHECK(ip->to_string() == "fd00::1");
  CHECK(IpAddress{}.to_string() == "::");
}

TEST_CASE("Text that is no address is refused with advice", "[base][address]") {
  for (const char* bad : {"", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1.2.3.4/24", "fd00::1::2", "fd00",
                          "fd00::g", "host.example", " 1.2.3.4", "1.2.3.4 ", "fe80::1%eth0"}) {
    INFO(bad);
    const auto result = IpAddress::from_string(bad);
    REQUIRE_FALSE(result);
    CHECK_FALSE(result.error().fix.empty());
    CHECK(result.error().to_string().find(bad) != std::string::npos);
  }
}

TEST_CASE("Every address survives printing and reading", "[base][address][property]") {
  rc::prop("IP", [](const std::array<std::uint8_t, 16>& bytes, bool v4, bool sparse) {
    IpAddress ip{bytes};
    if (v4) ip = IpAddress::v4(bytes[0], bytes[1], bytes[2], bytes[3]);
    if (sparse) std::fill_n(ip.bytes.begin() + (v4 ? 13 : 2), 3, std::uint8_t{0});
    RC_ASSERT(IpAddress::from_string(ip.to_string()).value() == ip);
  });
  rc::prop("MAC", [](const std::array<std::uint8_t, 6>& bytes) {
    const MacAddress mac{bytes};
    RC_ASSERT(MacAddress::from_string(mac.to_string()).value() == mac);
  });
}

TEST_CASE("Prefixes hold the addresses of their subnet", "[base][address]") {
  const auto contains = [](const char* prefix, const char* ip) {
    return IpPrefix::from_string(prefix).value().contains(IpAddress::from_string(ip).value());
  };
  CHECK(contains("198.18.0.1/24", "198.18.0.255"));
  CHECK_FALSE(contains("198.18.0.1/24", "198.18.1.0"));
  CHECK(contains("198.18.0.1/15", "198.19.255.255"));
  CHECK_FALSE(contains("198.18.0.1/15", "198.20.0.0"));
  CHECK(contains("198.18.0.1", "198.18.0.1"));
  CHECK_FALSE(contains("198.18.0.1", "198.18.0.2"));
  CHECK(contains("0.0.0.0/0", "203.0.113.7"));
  CHECK_FALSE(contains("0.0.0.0/0", "fd00::1"));
  CHECK_FALSE(contains("::/0", "198.18.0.1"));
  CHECK(contains("fd00::1/64", "fd00::ffff:ffff:ffff:ffff"));
  CHECK_FALSE(contains("fd00::1/64", "fd00:0:0:1::1"));
  CHECK(contains("fd00::1/127", "fd00::"));
  CHECK_FALSE(contains("fd00::1/127", "fd00::2"));
}

TEST_CASE("Prefix lengths outside their family's range are refused", "[base][address]") {
  for (const char* bad :
       {"198.18.0.1/33", "198.18.0.1/", "198.18.0.1/-1", "198.18.0.1/2x", "/24", "198.18.0.1/24/24",
        "fd00::1/129", "fd00::1/ 64", "198.18.0.1/4294967300"}) {
    INFO(bad);
    CHECK_FALSE(IpPrefix::from_string(bad));
  }
  CHECK(IpPrefix::from_string("fd00::1")->length == 128);
  CHECK(IpPrefix::from_string("198.18.0.1")->length == 32);
}
