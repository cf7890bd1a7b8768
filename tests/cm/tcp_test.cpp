#include "cm/tcp.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

using namespace roce;
using namespace roce::cm;
using perftest::Phase;

namespace {

constexpr Instant kStart = Instant::from_ns(1);

Socket connect_raw(std::uint16_t port) {
  Socket socket{::socket(AF_INET, SOCK_STREAM, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return socket;
}

Socket accept_one(TcpListener& listener) {
  for (int i = 0; i < 1000; ++i) {
    if (auto socket = listener.accept()) return std::move(*socket);
    ::usleep(1000);
  }
  FAIL("nobody came");
  return Socket{};
}

perftest::SessionConfig config_of(perftest::Role role) {
  perftest::SessionConfig config;
  config.role = role;
  return config;
}

void answer(perftest::Session& session) {
  if (session.phase() == Phase::NEED_KEYS)
    session.supply_keys({.qpn = Qpn{0x11}, .gid = IpAddress::v4(198, 18, 0, 1)});
  if (session.phase() == Phase::CONNECT) session.connected();
  if (session.phase() == Phase::RUN && !session.waits_for_peer()) session.run_done();
}

}  // namespace

TEST_CASE("a whole exchange crosses TCP", "[cm][tcp]") {
  auto listener = TcpListener::open(0);
  REQUIRE(listener);
  auto connector = TcpConnector::open("127.0.0.1", listener->port());
  REQUIRE(connector);
  std::optional<Socket> socket;
  for (int i = 0; i < 1000 && !socket; ++i) {
    auto step = connector->step(kStart + Duration::milliseconds(i));
    REQUIRE(step);
    socket = std::move(*step);
    ::usleep(100);
  }
  REQUIRE(socket);
  TcpCarrier client{std::move(*socket), config_of(perftest::Role::CLIENT)};
  TcpCarrier server{accept_one(*listener), config_of(perftest::Role::SERVER)};
  for (int i = 0; i < 5000 && !(client.finished() && server.finished()); ++i) {
    client.step(kStart);
    server.step(kStart);
    answer(client.session());
    answer(server.session());
    ::usleep(100);
  }
  CHECK(client.session().phase() == Phase::DONE);
  CHECK(server.session().phase() == Phase::DONE);
}

TEST_CASE("a peer that says nothing is given up after ten seconds, a vanished one at once",
          "[cm][tcp]") {
  auto listener = TcpListener::open(0);
  REQUIRE(listener);
  Socket silent = connect_raw(listener->port());
  TcpCarrier first{accept_one(*listener), config_of(perftest::Role::SERVER)};
  first.step(kStart);
  first.step(kStart + Duration::milliseconds(9'900));
  CHECK(first.session().phase() == Phase::EXCHANGE);
  first.step(kStart + Duration::milliseconds(10'100));
  CHECK(first.session().phase() == Phase::FAILED);
  CHECK(first.session().error().reason.find("silent") != std::string::npos);

  Socket gone = connect_raw(listener->port());
  TcpCarrier second{accept_one(*listener), config_of(perftest::Role::SERVER)};
  second.step(kStart);
  gone.close();
  for (int i = 0; i < 1000 && !second.finished(); ++i) {
    second.step(kStart);
    ::usleep(1000);
  }
  CHECK(second.session().phase() == Phase::FAILED);
  CHECK(second.session().error().reason.find("closed") != std::string::npos);
}

TEST_CASE("a trickle of bytes does not count as an answer", "[cm][tcp]") {
  auto listener = TcpListener::open(0);
  REQUIRE(listener);
  Socket slow = connect_raw(listener->port());
  TcpCarrier carrier{accept_one(*listener), config_of(perftest::Role::SERVER)};
  int s = 0;
  for (; s < 15 && !carrier.finished(); ++s) {
    carrier.step(kStart + Duration::seconds(s));
    REQUIRE(::send(slow.fd(), "6", 1, 0) == 1);
    ::usleep(1000);
  }
  CHECK(carrier.session().phase() == Phase::FAILED);
  CHECK(s <= 11);
}

TEST_CASE("a peer that floods holds a step only for a few buffers", "[cm][tcp]") {
  auto listener = TcpListener::open(0);
  REQUIRE(listener);
  Socket flood = connect_raw(listener->port());
  TcpCarrier carrier{accept_one(*listener), config_of(perftest::Role::SERVER)};
  const std::string noise(1 << 20, '6');
  for (int i = 0; i < 100 && !carrier.finished(); ++i) {
    ::send(flood.fd(), noise.data(), noise.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    carrier.step(kStart);
  }
  CHECK(carrier.session().phase() == Phase::FAILED);
}

TEST_CASE("half-open clients do not hold up another one", "[cm][tcp]") {
  auto listener = TcpListener::open(0);
  REQUIRE(listener);
  std::vector<Socket> idle;
  std::vector<std::unique_ptr<TcpCarrier>> servers;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(connect_raw(listener->port()));
    servers.push_back(
        std::make_unique<TcpCarrier>(accept_one(*listener), config_of(perftest::Role::SERVER)));
  }
  Socket socket = connect_raw(listener->port());
  REQUIRE(::fcntl(socket.fd(), F_SETFL, O_NONBLOCK) == 0);
  TcpCarrier client{std::move(socket), config_of(perftest::Role::CLIENT)};
  servers.push_back(
      std::make_unique<TcpCarrier>(accept_one(*listener), config_of(perftest::Role::SERVER)));
  for (int i = 0; i < 5000 && !client.finished(); ++i) {
    client.step(kStart);
    answer(client.session());
    for (auto& server : servers) {
      server->step(kStart);
      answer(server->session());
    }
    ::usleep(100);
  }
  CHECK(client.session().phase() == Phase::DONE);
}

TEST_CASE("a client that closes its half right behind its last message is still served",
          "[cm][tcp]") {
  // What a whole client says, ahead of any answer.
  perftest::Session client{config_of(perftest::Role::CLIENT)};
  perftest::Session server{config_of(perftest::Role::SERVER)};
  std::vector<std::byte> said;
  for (int i = 0; i < 1000 && client.phase() != Phase::DONE; ++i) {
    answer(client);
    answer(server);
    for (auto [from, to] : {std::pair{&client, &server}, std::pair{&server, &client}}) {
      const auto out = from->output();
      const std::vector<std::byte> bytes(out.begin(), out.end());
      if (from == &client) said.insert(said.end(), bytes.begin(), bytes.end());
      from->consume_output(bytes.size());
      to->on_bytes(bytes);
    }
  }
  REQUIRE(client.phase() == Phase::DONE);

  auto listener = TcpListener::open(0);
  REQUIRE(listener);
  Socket socket = connect_raw(listener->port());
  TcpCarrier carrier{accept_one(*listener), config_of(perftest::Role::SERVER)};
  REQUIRE(::send(socket.fd(), said.data(), said.size(), 0) == static_cast<ssize_t>(said.size()));
  for (int i = 0; i < 100 && carrier.session().phase() != Phase::RUN; ++i) {
    carrier.step(kStart);
    answer(carrier.session());
    ::usleep(1000);
  }
  REQUIRE(::shutdown(socket.fd(), SHUT_WR) == 0);
  for (int i = 0; i < 1000 && !carrier.finished(); ++i) {
    carrier.step(kStart);
    answer(carrier.session());
    ::usleep(1000);
  }
  CHECK(carrier.session().phase() == Phase::DONE);
  CHECK(carrier.finished());
}

TEST_CASE("a port that is taken, a name that is none and a server that is not there are told apart",
          "[cm][tcp]") {
  auto listener = TcpListener::open(0);
  REQUIRE(listener);
  const std::uint16_t port = listener->port();
  const auto second = TcpListener::open(port);
  REQUIRE_FALSE(second);
  CHECK(second.error().fix.find("-p") != std::string::npos);

  CHECK_FALSE(TcpConnector::open("no.such.host.invalid", 1));

  std::uint16_t free_port = 0;
  {
    auto closed = TcpListener::open(0);
    REQUIRE(closed);
    free_port = closed->port();
  }
  auto connector = TcpConnector::open("127.0.0.1", free_port, Duration::seconds(1));
  REQUIRE(connector);
  bool failed = false;
  for (int ms = 0; ms < 3000 && !failed; ms += 20) {
    const auto step = connector->step(kStart + Duration::milliseconds(ms));
    failed = !step;
    if (failed) CHECK(step.error().fix.find("start the server") != std::string::npos);
  }
  CHECK(failed);
}
