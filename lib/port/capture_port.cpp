#include "port/capture_port.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace roce::port {

using engine::Frame;
using engine::kBurst;

namespace {

/// A file that someone follows should not lie far behind.
constexpr Duration kFlushInterval = Duration::seconds(1);

}  // namespace

CapturePort::CapturePort(engine::PacketIo& inner, std::unique_ptr<PcapngWriter> writer,
                         std::optional<std::int64_t> wall_ns)
    : inner_(inner), writer_(std::move(writer)), wall_ns_(wall_ns) {}

std::size_t CapturePort::rx_burst(Instant now, std::span<Frame> out) {
  const std::size_t n = inner_.rx_burst(now, out);
  const std::int64_t stamp = wall(now);
  for (const Frame& frame : out.first(n))
    writer_->append({frame.data, frame.length}, stamp, CaptureDirection::INBOUND);
  flush_when_due(now);
  return n;
}

std::size_t CapturePort::tx_burst(Instant now, std::span<const Frame> frames) {
  // A frame that was sent is no longer ours to read, so write first and take back what was refused.
  frames = frames.first(std::min(frames.size(), kBurst));
  const std::int64_t stamp = wall(now);
  std::array<PcapngWriter::Mark, kBurst + 1> marks;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    marks[i] = writer_->mark();
    writer_->append({frames[i].data, frames[i].length}, stamp, CaptureDirection::OUTBOUND);
  }
  const std::size_t n = inner_.tx_burst(now, frames);
  if (n < frames.size()) writer_->rewind(marks[n]);
  flush_when_due(now);
  return n;
}

std::int64_t CapturePort::wall(Instant now) {
  if (!start_) {
    start_ = last_flush_ = now;
    if (!wall_ns_)
      wall_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count();
  }
  return *wall_ns_ + (now - *start_).ns();
}

void CapturePort::flush_when_due(Instant now) {
  if (now - last_flush_ >= kFlushInterval) {
    writer_->flush();
    last_flush_ = now;
  } else {
    writer_->flush_when_large();
  }
}

}  // namespace roce::port
