#include "port/capture_port.hpp"

#include <pcap/pcap.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "port/frames.hpp"
#include "port/memory/memory_wire.hpp"
#include "support/skip.hpp"

using namespace roce::test;
using roce::Duration;
using roce::Instant;
using roce::engine::Frame;
using roce::port::CaptureDirection;
using roce::port::CapturePort;
using roce::port::MemoryWire;
using roce::port::PcapngWriter;

namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kWall = 1'700'000'000'123'456'789;

/// A file name that is gone at the end.
struct TemporaryFile {
  TemporaryFile()
      : path((fs::temp_directory_path() /
              ("roce_capture_" + std::to_string(::getpid()) + "_" + std::to_string(next++)))
                 .string()) {}
  ~TemporaryFile() { fs::remove(path); }
  static inline int next = 0;
  std::string path;
};

struct Captured {
  std::vector<std::byte> bytes;
  std::uint32_t length;
  std::int64_t wall_ns;
};

std::vector<Captured> read_capture(const std::string& path) {
  char error[PCAP_ERRBUF_SIZE] = "";
  pcap_t* file =
      ::pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
  INFO(error);
  REQUIRE(file != nullptr);
  CHECK(::pcap_datalink(file) == DLT_EN10MB);
  std::vector<Captured> frames;
  pcap_pkthdr* header = nullptr;
  const unsigned char* data = nullptr;
  int outcome = 0;
  while ((outcome = ::pcap_next_ex(file, &header, &data)) == 1) {
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    frames.push_back({{bytes, bytes + header->caplen},
                      header->len,
                      header->ts.tv_sec * std::int64_t{1'000'000'000} + header->ts.tv_usec});
  }
  CHECK(outcome == PCAP_ERROR_BREAK);  // end of file, not an error in it
  ::pcap_close(file);
  return frames;
}

std::vector<std::byte> bytes_of(const FrameSpec& spec) {
  std::vector<std::byte> bytes(8192);
  Frame frame{bytes.data(), 0, 8192, nullptr};
  build_frame(frame, spec);
  bytes.resize(frame.length);
  return bytes;
}

std::unique_ptr<PcapngWriter> writer_for(const std::string& path, std::uint32_t snap = 0) {
  auto writer = PcapngWriter::create({path, "wire.0", snap});
  REQUIRE(writer);
  return std::move(*writer);
}

/// What a command prints; empty when it fails.
std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  char buffer[512];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  return ::pclose(pipe) == 0 ? text : std::string{};
}

}  // namespace

TEST_CASE("a capture holds each frame of both directions byte for byte", "[port][capture]") {
  TemporaryFile file;
  std::vector<std::vector<std::byte>> expected;
  {
    MemoryWire wire;
    CapturePort port(wire.first(), writer_for(file.path), kWall);
    // All remainders modulo 4, which padding depends on.
    for (std::uint32_t psn = 0; psn < 9; ++psn) {
      const FrameSpec out{.psn = psn, .payload = psn * 101};
      const FrameSpec in{.psn = 100 + psn, .payload = 4096 - psn};
      send(port, Instant{} + Duration::nanoseconds(psn * 1'000), {&out, 1});
      send(wire.second(), Instant{}, {&in, 1});
      CHECK(receive(port, Instant{} + Duration::nanoseconds(psn * 1'000 + 1)).size() == 1);
      expected.push_back(bytes_of(out));
      expected.push_back(bytes_of(in));
    }
    CHECK(port.writer().frames() == 18);
    CHECK(port.writer().lost() == 0);
  }
  const auto frames = read_capture(file.path);
  REQUIRE(frames.size() == expected.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    INFO("frame " << i);
    CHECK(frames[i].bytes == expected[i]);
    CHECK(frames[i].length == expected[i].size());
    CHECK(frames[i].wall_ns == kWall + static_cast<std::int64_t>(i / 2 * 1'000 + i % 2));
  }
}

TEST_CASE("a frame that the port refuses is not in the capture", "[port][capture]") {
  TemporaryFile file;
  {
    MemoryWire wire;
    class Half final : public roce::engine::PacketIo {
     public:
      explicit Half(PacketIo& inner) : inner_(inner) {}
      std::size_t rx_burst(Instant now, std::span<Frame> out) override {
        return inner_.rx_burst(now, out);
      }
      void rx_release(std::span<const Frame> f) override { inner_.rx_release(f); }
      std::size_t tx_reserve(std::span<Frame> out) override { return inner_.tx_reserve(out); }
      std::size_t tx_burst(Instant now, std::span<const Frame> f) override {
        return inner_.tx_burst(now, f.first(f.size() / 2));
      }
      void tx_release(std::span<const Frame> f) override { inner_.tx_release(f); }
      const roce::engine::PortInfo& info() const override { return inner_.info(); }
      roce::engine::PortCounters counters() const override { return inner_.counters(); }

     private:
      PacketIo& inner_;
    } half(wire.first());
    CapturePort port(half, writer_for(file.path), kWall);
    std::array<Frame, 4> slots;
    REQUIRE(port.tx_reserve(slots) == 4);
    for (std::uint32_t i = 0; i < 4; ++i) build_frame(slots[i], {.psn = i});
    CHECK(port.tx_burst(Instant{}, slots) == 2);
    CHECK(port.writer().frames() == 2);
    port.tx_release(std::span(slots).last(2));
  }
  const auto frames = read_capture(file.path);
  REQUIRE(frames.size() == 2);
  CHECK(frames[1].bytes == bytes_of({.psn = 1}));
}

TEST_CASE("a snap length cuts what is kept and says how long the frame was", "[port][capture]") {
  TemporaryFile file;
  const auto frame = bytes_of({.psn = 1, .payload = 1024});
  writer_for(file.path, 90)->append(frame, kWall, CaptureDirection::INBOUND);
  const auto frames = read_capture(file.path);
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].length == frame.size());
  CHECK(frames[0].bytes == std::vector<std::byte>(frame.begin(), frame.begin() + 90));
}

TEST_CASE("tshark reads stamps, directions and RoCE headers of a capture", "[port][capture]") {
  if (std::system("tshark --version >/dev/null 2>&1") != 0) return skip("tshark is not installed");
  TemporaryFile file;
  {
    const auto writer = writer_for(file.path);
    writer->append(bytes_of({.psn = 7}), kWall, CaptureDirection::OUTBOUND);
    writer->append(bytes_of({.psn = 8}), kWall + 5, CaptureDirection::INBOUND);
  }
  const std::string text =
      output_of("tshark -r " + file.path +
                " -T fields -e frame.time_epoch -e frame.packet_flags_direction"
                " -e infiniband.bth.psn -e frame.interface_name 2>/dev/null");
  CHECK(text ==
        "1700000000.123456789\t0x00000002\t7\twire.0\n"
        "1700000000.123456794\t0x00000001\t8\twire.0\n");
}

TEST_CASE("a capture that cannot be made is an error, one that breaks is counted",
          "[port][capture]") {
  const auto nowhere = PcapngWriter::create({"/nonexistent/folder/x.pcapng", "wire.0", 0});
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().place == "/nonexistent/folder/x.pcapng");
  CHECK_FALSE(PcapngWriter::create({"/dev/full", "wire.0", 0}));

  // A pipe whose reader has gone is a file that fails in the middle.
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const auto writer = writer_for("/proc/self/fd/" + std::to_string(ends[1]));
  ::close(ends[0]);
  writer->append(bytes_of({}), kWall, CaptureDirection::INBOUND);
  writer->flush();
  CHECK(writer->lost() == 1);
  writer->append(bytes_of({}), kWall, CaptureDirection::INBOUND);
  writer->flush();
  CHECK(writer->lost() == 2);
  CHECK(writer->frames() == 2);
  ::close(ends[1]);
}
