#include "cm/perftest/messages.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <string_view>

using namespace roce;
using namespace roce::cm::perftest;

TEST_CASE("keys are written as perftest writes them over Ethernet", "[cm][messages]") {
  Keys keys;
  keys.out_reads = 0x80;
  keys.qpn = Qpn{0x11};
  keys.psn = Psn{0x761bc7};
  keys.rkey = 0x213;
  keys.vaddr = 0x55fb5bcbc000;
  keys.gid = IpAddress::v4(10, 9, 0, 2);
  const auto bytes = encode_keys(keys);
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  CHECK(text == std::string_view{"0000:0080:000011:761bc7:00000213:000055fb5bcbc000:"
                                 "00:00:00:00:00:00:00:00:00:00:ff:ff:0a:09:00:02:00000000:\0",
                                 108});
  const auto back = decode_keys(bytes);
  REQUIRE(back);
  CHECK(*back == keys);
}

TEST_CASE("every damaged character of the keys is noticed or changes a value", "[cm][messages]") {
  Keys keys;
  keys.qpn = Qpn{0x123456};
  keys.gid = IpAddress::v4(198, 18, 0, 1);
  const auto good = encode_keys(keys);
  for (std::size_t i = 0; i + 1 < good.size(); ++i) {
    auto bad = good;
    bad[i] = std::byte{'z'};
    CHECK_FALSE(decode_keys(bad));
  }
}

TEST_CASE("keys to which no QP can be connected are refused, each with its reason",
          "[cm][messages]") {
  Keys good;
  good.qpn = Qpn{2};
  good.gid = IpAddress::v4(198, 18, 0, 1);
  REQUIRE(decode_keys(encode_keys(good)));
  good.qpn = Qpn{0xfffffe};
  good.psn = Psn{0xffffff};
  good.rkey = 0xffffffff;
  good.vaddr = ~std::uint64_t{0};
  good.gid = *IpAddress::from_string("fe80::1");
  REQUIRE(decode_keys(encode_keys(good)));

  const auto reason = [](const Keys& keys) {
    const auto decoded = decode_keys(encode_keys(keys));
    return decoded ? std::string{} : decoded.error().reason;
  };
  for (const std::uint32_t qpn : {0u, 1u, 0xffffffu}) {
    Keys bad = good;
    bad.qpn = Qpn{qpn};
    CHECK(reason(bad).find("QP number") != std::string::npos);
  }
  for (const char* gid : {"::", "0.0.0.0", "224.0.0.1", "255.255.255.255", "ff02::1"}) {
    Keys bad = good;
    bad.gid = *IpAddress::from_string(gid);
    CHECK(reason(bad).find("GID") != std::string::npos);
  }
  Keys bad = good;
  bad.out_reads = 0;
  CHECK(reason(bad).find("READs") != std::string::npos);
}

TEST_CASE("the message of a peer without GID is named as such", "[cm][messages]") {
  std::array<std::byte, kKeysBytes> bytes{};
  const std::string_view text = "0003:0001:000048:24c5a3:00001a2b:00007f1e2d3c4000:00000000";
  std::memcpy(bytes.data(), text.data(), text.size());
  const auto decoded = decode_keys(bytes);
  REQUIRE_FALSE(decoded);
  CHECK(decoded.error().reason.find("without a GID") != std::string::npos);
}

TEST_CASE("the report's words go in perftest's order, and rates that are no numbers become 0",
          "[cm][messages]") {
  const BandwidthReport report{0x2000, 20, 9.5, 7.25, 0.001};
  BandwidthReport back;
  for (std::size_t i = 0; i < kReportWords; ++i)
    decode_report_word(encode_report_word(report, i), i, back);
  CHECK(back.size == 0x2000);
  CHECK(back.iterations == 20);
  CHECK(back.peak == 9.5);
  CHECK(back.average == 7.25);
  CHECK(back.message_rate == 0.001);

  const BandwidthReport odd{0, 0, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity(), -1};
  for (std::size_t i = 0; i < kReportWords; ++i)
    decode_report_word(encode_report_word(odd, i), i, back);
  CHECK(back.peak == 0);
  CHECK(back.average == 0);
  CHECK(back.message_rate == 0);
}

TEST_CASE("MTU and version round trip", "[cm][messages]") {
  for (int i = 1; i <= 5; ++i) {
    const auto mtu = static_cast<verbs::Mtu>(i);
    CHECK(decode_mtu(encode_mtu(mtu)).value() == mtu);
  }
  CHECK(decode_version(encode_version("6.27")).value() == "6.27");
}
