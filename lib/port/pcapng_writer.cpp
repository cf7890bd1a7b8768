#include "port/pcapng_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace roce::port {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kLargeBytes = kBufferBytes / 2;

// Block types and option codes of pcapng.
constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a, kInterfaceDescription = 1, kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kShbUserAppl = 4, kIfName = 2, kIfTsresol = 9, kEpbFlags = 2,
                        kEndOfOptions = 0;
constexpr std::uint16_t kLinkTypeEthernet = 1;
constexpr std::uint8_t kNanoseconds = 9;

constexpr std::uint32_t padded(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + 3) / 4 * 4);
}
constexpr std::uint32_t option_bytes(std::size_t value_bytes) {
  return 4 + padded(value_bytes);
}

}  // namespace

Result<std::unique_ptr<PcapngWriter>> PcapngWriter::create(const PcapngConfig& config) {
  const int fd = ::open(config.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0)
    return failure(config.path,
                   fmt::format("the capture cannot be written ({})", std::strerror(errno)),
                   "name a file in a folder that you may write to");
  std::unique_ptr<PcapngWriter> writer(new PcapngWriter(config, fd));
  writer->put_section_header();
  writer->put_interface();
  writer->flush();
  if (writer->failed_)
    return failure(config.path, "the capture cannot be written", "is the disk full?");
  return writer;
}

PcapngWriter::PcapngWriter(PcapngConfig config, int fd) : config_(std::move(config)), fd_(fd) {
  buffer_.reserve(kBufferBytes);
}

PcapngWriter::~PcapngWriter() {
  flush();
  ::close(fd_);
}

void PcapngWriter::put(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  buffer_.insert(buffer_.end(), from, from + bytes);
  buffer_.resize(buffer_.size() + padded(bytes) - bytes);
}

void PcapngWriter::put_option(std::uint16_t code, const void* data, std::size_t bytes) {
  put32(static_cast<std::uint32_t>(bytes) << 16 | code);
  put(data, bytes);
}

void PcapngWriter::put_section_header() {
  constexpr std::string_view kApplication = "rocinante";
  const std::uint32_t total = 28 + option_bytes(kApplication.size()) + option_bytes(0);
  put32(kSectionHeader);
  put32(total);
  put32(kByteOrderMagic);
  put32(1);  // version 1.0: major in the low half
  const std::int64_t unknown_length = -1;
  put(&unknown_length, sizeof unknown_length);
  put_option(kShbUserAppl, kApplication.data(), kApplication.size());
  put_option(kEndOfOptions, nullptr, 0);
  put32(total);
}

void PcapngWriter::put_interface() {
  const std::string& name = config_.interface_name;
  const std::uint32_t total = 20 + option_bytes(name.size()) + option_bytes(1) + option_bytes(0);
  put32(kInterfaceDescription);
  put32(total);
  put32(kLinkTypeEthernet);
  put32(config_.snap_length);
  put_option(kIfName, name.data(), name.size());
  put_option(kIfTsresol, &kNanoseconds, 1);
  put_option(kEndOfOptions, nullptr, 0);
  put32(total);
}

void PcapngWriter::append(std::span<const std::byte> frame, std::int64_t wall_ns,
                          CaptureDirection direction) {
  const std::size_t kept = config_.snap_length == 0
                               ? frame.size()
                               : std::min<std::size_t>(frame.size(), config_.snap_length);
  const std::uint32_t total = 32 + padded(kept) + option_bytes(4) + option_bytes(0);
  const auto stamp = static_cast<std::uint64_t>(wall_ns);
  put32(kEnhancedPacket);
  put32(total);
  put32(0);  // interface
  put32(static_cast<std::uint32_t>(stamp >> 32));
  put32(static_cast<std::uint32_t>(stamp));
  put32(static_cast<std::uint32_t>(kept));
  put32(static_cast<std::uint32_t>(frame.size()));
  put(frame.data(), kept);
  const auto flags = static_cast<std::uint32_t>(direction);
  put_option(kEpbFlags, &flags, sizeof flags);
  put_option(kEndOfOptions, nullptr, 0);
  put32(total);
  ++frames_;
}

void PcapngWriter::rewind(Mark mark) {
  buffer_.resize(mark.bytes);
  frames_ = mark.frames;
}

void PcapngWriter::flush_when_large() {
  if (buffer_.size() >= kLargeBytes) flush();
}

void PcapngWriter::flush() {
  const std::uint64_t frames = frames_ - flushed_frames_;
  flushed_frames_ = frames_;
  std::size_t done = 0;
  while (!failed_ && done < buffer_.size()) {
    const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      failed_ = true;
      spdlog::error("{}: the capture ends here ({})", config_.path, std::strerror(errno));
    }
  }
  if (failed_) lost_ += frames;
  buffer_.clear();
}

}  // namespace roce::port
