#include "cm/perftest/messages.hpp"

#include <bit>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "wire/endian.hpp"

namespace roce::cm::perftest {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <std::size_t N>
std::array<std::byte, N> padded(std::string_view text) {
  std::array<std::byte, N> bytes{};
  std::memcpy(bytes.data(), text.data(), std::min(text.size(), N));
  return bytes;
}

/// The message of a peer without GID ends here.
constexpr std::size_t kKeysWithoutGidBytes = 59;
/// In any of perftest's units, more than any device does.
constexpr double kMostRate = 1e12;

/// Reads fields of fixed width, each closed by a colon.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}

  /// False when the field is not `width` hexadecimal digits and a colon.
  template <class T>
  [[nodiscard]] bool hex(std::size_t width, T& value) {
    if (rest_.size() <= width || rest_[width] != ':') return false;
    const char* end = rest_.data() + width;
    const auto [at, error] = std::from_chars(rest_.data(), end, value, 16);
    if (error != std::errc{} || at != end) return false;
    rest_.remove_prefix(width + 1);
    return true;
  }

 private:
  std::string_view rest_;
};

/// Empty, or why no connection to these keys is possible.
std::string_view what_is_wrong(const Keys& keys) {
  const auto& gid = keys.gid.bytes;
  const std::uint8_t first = keys.gid.is_v4() ? gid[12] : gid[0];
  if (keys.gid == IpAddress{} || keys.gid == IpAddress::v4(0, 0, 0, 0) ||
      (keys.gid.is_v4() ? first >= 224 : first == 0xff))
    return "the peer's GID is not the address of one host";
  if (keys.qpn.value() < 2 || keys.qpn.value() == Qpn::kMask)
    return "the peer's QP number is reserved";
  if (keys.out_reads == 0) return "the peer allows no READs or atomics at a time";
  return {};
}

}  // namespace

std::array<std::byte, kVersionBytes> encode_version(std::string_view version) {
  return padded<kVersionBytes>(version);
}

Result<std::string> decode_version(std::span<const std::byte, kVersionBytes> bytes) {
  std::string_view text = text_of(bytes);
  text = text.substr(0, text.find('\0'));
  double number = 0;
  const bool plain = text.find_first_not_of("0123456789.") == std::string_view::npos;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!plain || error != std::errc{} || at != text.data() + text.size() ||
      !(number >= 5.70 && number < 1000))
    return failure("perftest exchange", "the first 16 bytes are no perftest version from 5.70 on",
                   "check that a perftest program (ib_write_bw ...) is at the other end");
  return std::string{text};
}

std::array<std::byte, kMtuBytes> encode_mtu(verbs::Mtu mtu) {
  return {static_cast<std::byte>('0' + static_cast<int>(mtu)), std::byte{0}};
}

Result<verbs::Mtu> decode_mtu(std::span<const std::byte, kMtuBytes> bytes) {
  const auto digit = std::to_integer<int>(bytes[0]) - '0';
  if (digit < 1 || digit > 5 || bytes[1] != std::byte{0})
    return failure("perftest exchange", "the peer's MTU is not a digit from 1 to 5",
                   "check that both ends run the same test");
  return static_cast<verbs::Mtu>(digit);
}

std::array<std::byte, kKeysBytes> encode_keys(const Keys& keys) {
  std::string text =
      fmt::format("{:04x}:{:04x}:{:06x}:{:06x}:{:08x}:{:016x}:", keys.lid, keys.out_reads,
                  keys.qpn.value(), keys.psn.value(), keys.rkey, keys.vaddr);
  for (const std::uint8_t byte : keys.gid.bytes) text += fmt::format("{:02x}:", byte);
  text += fmt::format("{:08x}:", keys.srqn);
  return padded<kKeysBytes>(text);
}

Result<Keys> decode_keys(std::span<const std::byte, kKeysBytes> bytes) {
  Keys keys;
  std::uint32_t qpn = 0, psn = 0;
  FieldReader reader{text_of(bytes)};
  bool good = reader.hex(4, keys.lid) && reader.hex(4, keys.out_reads) && reader.hex(6, qpn) &&
              reader.hex(6, psn) && reader.hex(8, keys.rkey) && reader.hex(16, keys.vaddr);
  for (std::uint8_t& byte : keys.gid.bytes) good = good && reader.hex(2, byte);
  good = good && reader.hex(8, keys.srqn);
  if (!good && bytes[kKeysWithoutGidBytes - 1] == std::byte{0})
    return failure("perftest exchange", "the peer works without a GID, as on InfiniBand",
                   "give it one by -x");
  if (!good)
    return failure("perftest exchange",
                   "the peer's QP data is not what perftest sends over Ethernet",
                   "check that both ends run the same test with the same options, with a GID (-x)");
  keys.qpn = Qpn{qpn};
  keys.psn = Psn{psn};
  if (const auto wrong = what_is_wrong(keys); !wrong.empty())
    return failure("perftest exchange", std::string{wrong},
                   "see its own output; only one RoCE device and port with a unicast GID will do");
  return keys;
}

std::array<std::byte, kReportWordBytes> encode_report_word(const BandwidthReport& report,
                                                           std::size_t i) {
  const std::uint64_t words[kReportWords] = {report.size, report.iterations,
                                             std::bit_cast<std::uint64_t>(report.peak),
                                             std::bit_cast<std::uint64_t>(report.average),
                                             std::bit_cast<std::uint64_t>(report.message_rate)};
  wire::Be64 word;
  word.set(words[i]);
  return std::bit_cast<std::array<std::byte, kReportWordBytes>>(word);
}

void decode_report_word(std::span<const std::byte, kReportWordBytes> bytes, std::size_t i,
                        BandwidthReport& report) {
  const std::uint64_t word = wire::view_as<wire::Be64>(bytes.data())->get();
  const double number = std::bit_cast<double>(word);
  const double rate = number >= 0 && number <= kMostRate ? number : 0.0;  // a NaN is neither
  switch (i) {
    case 0:
      report.size = word;
      break;
    case 1:
      report.iterations = word;
      break;
    case 2:
      report.peak = rate;
      break;
    case 3:
      report.average = rate;
      break;
    default:
      report.message_rate = rate;
      break;
  }
}

}  // namespace roce::cm::perftest
