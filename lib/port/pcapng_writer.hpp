// PcapngWriter: a capture file with nanosecond stamps and directions, as Wireshark reads it
// (pcapng, draft-ietf-opsawg-pcapng: SHB, IDB, EPB).
//
// Owned by a CapturePort, used by one thread. Frames gather in a buffer; a file that fails is said
// once and then counted, never thrown or fatal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace roce::port {

enum class CaptureDirection : std::uint32_t { INBOUND = 1, OUTBOUND = 2 };  // values of epb_flags

struct PcapngConfig {
  std::string path;
  std::string interface_name;     ///< if_name
  std::uint32_t snap_length = 0;  ///< bytes kept of each frame; 0: all
};

class PcapngWriter {
 public:
  /// Creates or truncates the file and writes its headers. Fails when that does not work.
  [[nodiscard]] static Result<std::unique_ptr<PcapngWriter>> create(const PcapngConfig& config);
  ~PcapngWriter();
  PcapngWriter(const PcapngWriter&) = delete;
  PcapngWriter& operator=(const PcapngWriter&) = delete;

  /// Appends a frame without FCS. wall_ns: since 1970, UTC.
  void append(std::span<const std::byte> frame, std::int64_t wall_ns, CaptureDirection direction);

  /// A place in the buffer, good until the next flush(); and going back there, as if what was
  /// appended behind it had not been.
  struct Mark {
    std::size_t bytes;
    std::uint64_t frames;
  };
  [[nodiscard]] Mark mark() const { return {buffer_.size(), frames_}; }
  void rewind(Mark mark);

  /// Writes the buffer out.
  void flush();
  void flush_when_large();

  [[nodiscard]] std::uint64_t frames() const { return frames_; }  ///< appended, lost ones included
  [[nodiscard]] std::uint64_t lost() const {
    return lost_;
  }  ///< frames that did not reach the file
  [[nodiscard]] const std::string& path() const { return config_.path; }

 private:
  PcapngWriter(PcapngConfig config, int fd);
  void put(const void* data, std::size_t bytes);
  void put32(std::uint32_t value) { put(&value, sizeof value); }
  void put_option(std::uint16_t code, const void* data, std::size_t bytes);
  void put_section_header();
  void put_interface();

  PcapngConfig config_;
  int fd_;
  bool failed_ = false;
  std::vector<std::byte> buffer_;
  std::uint64_t frames_ = 0;
  std::uint64_t flushed_frames_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace roce::port
