// memif between two processes: one serves and sends, the other echoes.
#include <sys/socket.h>
#include <sys/un.h>
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

/// A client tries to connect again as time goes by.
Instant now() {
  return Instant::from_ns(Clock::now().time_since_epoch().count());
}

roce::Result<OpenPort> open_memif(const std::string& arguments) {
  PortOptions options;
  options.spec = roce::port::parse_port_spec("memif:" + arguments).value();
  return roce::port::open_port(options);
}

/// The client: sends back each frame until there have been so many. Exit code 0 when it did.
int echo(const std::string& socket, std::uint32_t frames) {
  auto port = open_memif(socket);
  if (!port) return 1;
  const auto end = Clock::now() + std::chrono::seconds(20);
  for (std::uint32_t done = 0; done < frames;) {
    if (Clock::now() > end) return 2;
    std::array<Frame, kBurst> in;
    const std::size_t n = port->io().rx_burst(now(), in);
    for (std::size_t i = 0; i < n; ++i) {
      std::array<Frame, 1> out;
      if (port->io().tx_reserve(out) != 1) return 3;
      std::memcpy(out[0].data, in[i].data, in[i].length);
      out[0].length = in[i].length;
      while (port->io().tx_burst(now(), out) != 1)
        if (Clock::now() > end) return 4;
      ++done;
    }
    port->io().rx_release(std::span(in).first(n));
  }
  // The other end still has to read; its ring is in this process's memory.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  return 0;
}

/// The server: sends frames of all sizes and expects each back. Exit code 0 when they came.
int serve(const std::string& socket, std::uint32_t frames) {
  auto port = open_memif(socket + ",role=server");
  if (!port) return 1;
  const auto end = Clock::now() + std::chrono::seconds(20);
  for (std::uint32_t psn = 0; psn < frames; ++psn) {
    std::array<Frame, 1> slot;
    if (port->io().tx_reserve(slot) != 1) return 2;
    build_frame(slot[0], {.psn = psn, .payload = psn * 20});
    // Refused until the link is up.
    while (port->io().tx_burst(now(), slot) != 1)
      if (Clock::now() > end) return 3;
    std::vector<Arrival> arrivals;
    while (arrivals.empty() && Clock::now() < end) arrivals = receive(port->io(), now());
    if (arrivals != std::vector<Arrival>{{psn, true}}) return 4;
  }
  return 0;
}

using Program = int (*)(const std::string&, std::uint32_t);

/// Runs it in a process of its own, since EAL starts once per process.
pid_t start(Program program, const std::string& socket, std::uint32_t frames) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(program(socket, frames));
  return child;
}

int exit_code(pid_t child) {
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("memif carries frames between two processes, whichever starts first", "[port][memif]") {
  constexpr std::uint32_t kFrames = 200;
  const std::string socket =
      (std::filesystem::temp_directory_path() / ("roce_memif_" + std::to_string(::getpid())))
          .string();
  const auto [first, second, pause_ms] = GENERATE(
      table<Program, Program, int>({{serve, echo, 600}, {echo, serve, 600}, {serve, echo, 0}}));
  const pid_t one = start(first, socket, kFrames);
  std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
  const pid_t two = start(second, socket, kFrames);
  CHECK(exit_code(one) == 0);
  CHECK(exit_code(two) == 0);
  CHECK_FALSE(std::filesystem::exists(socket));
}

TEST_CASE("a memif socket that a dead server left is taken over, a live one's is not",
          "[port][memif]") {
  const std::string socket =
      (std::filesystem::temp_directory_path() / ("roce_memif_" + std::to_string(::getpid())))
          .string();
  const auto bound = [&socket] {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(fd, 1) == 0);
    return fd;
  };
  const Program only_open = [](const std::string& path, std::uint32_t) {
    return open_memif(path + ",role=server") ? 0 : 1;
  };
  const int live = bound();
  CHECK(exit_code(start(only_open, socket, 0)) == 1);
  ::close(live);  // the file stays
  REQUIRE(std::filesystem::exists(socket));
  CHECK(exit_code(start(only_open, socket, 0)) == 0);
  CHECK_FALSE(std::filesystem::exists(socket));
}
