// memif between two processes: one serves and sends, the other echoes.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "port/frames.hpp"
#include "port/open.hpp"

using namespace roce::test;
using roce::Instant;
using roce::engine::Frame;
using roce::engine::kBurst;
using roce::engine::PacketIo;
using roce::port::OpenPort;
using roce::port::PortOptions;

namespace {

using Clock = std::chrono::steady_clock;
constexpr Instant kNow{};

roce::Result<OpenPort> open_memif(const std::string& arguments) {
  PortOptions options;
  options.spec = roce::port::parse_port_spec("memif:" + arguments).value();
  return roce::port::open_port(options);
}

/// The child: sends back each frame until there have been so many. Exit code 0 when it did.
int echo(const std::string& socket, int frames) {
  auto port = open_memif(socket);
  if (!port) return 1;
  const auto end = Clock::now() + std::chrono::seconds(20);
  for (int done = 0; done < frames;) {
    if (Clock::now() > end) return 2;
    std::array<Frame, kBurst> in;
    const std::size_t n = port->io().rx_burst(kNow, in);
    for (std::size_t i = 0; i < n; ++i) {
      std::array<Frame, 1> out;
      if (port->io().tx_reserve(out) != 1) return 3;
      std::memcpy(out[0].data, in[i].data, in[i].length);
      out[0].length = in[i].length;
      while (port->io().tx_burst(kNow, out) != 1)
        if (Clock::now() > end) return 4;
      ++done;
    }
    port->io().rx_release(std::span(in).first(n));
  }
  // The other end still has to read; its ring is in this process's memory.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return 0;
}

}  // namespace

TEST_CASE("memif carries frames of all sizes between two processes and back", "[port][memif]") {
  constexpr int kFrames = 200;
  const std::string socket =
      (std::filesystem::temp_directory_path() / ("roce_memif_" + std::to_string(::getpid())))
          .string();
  const pid_t child = ::fork();  // before either has started EAL
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(echo(socket, kFrames));

  auto port = open_memif(socket + ",role=server");
  INFO((port ? std::string{} : port.error().to_string()));
  REQUIRE(port);
  const auto end = Clock::now() + std::chrono::seconds(20);
  std::vector<Arrival> arrivals, expected;
  for (std::uint32_t psn = 0; psn < kFrames; ++psn) {
    expected.push_back({psn, true});
    std::array<Frame, 1> slot;
    REQUIRE(port->io().tx_reserve(slot) == 1);
    build_frame(slot[0], {.psn = psn, .payload = psn * 20});
    // Refused until the link is up.
    while (port->io().tx_burst(kNow, slot) != 1 && Clock::now() < end) std::this_thread::yield();
    REQUIRE(Clock::now() < end);
    while (arrivals.size() <= psn && Clock::now() < end)
      for (const Arrival& arrival : receive(port->io(), kNow)) arrivals.push_back(arrival);
    REQUIRE(arrivals.size() == psn + 1);
  }
  CHECK(arrivals == expected);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  std::filesystem::remove(socket);
}
