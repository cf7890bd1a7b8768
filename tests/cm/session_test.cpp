#include "cm/perftest/session.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/prng.hpp"

using namespace roce;
using namespace roce::cm::perftest;

namespace {

Keys keys_of(Role role, std::uint32_t i) {
  Keys keys;
  keys.qpn = Qpn{0x100 + i + (role == Role::SERVER ? 0x1000u : 0u)};
  keys.psn = Psn{0xabc000 + i};
  keys.rkey = 0x200 + i;
  keys.vaddr = 0x7f00'0000'0000 + i * 4096;
  keys.gid = IpAddress::v4(198, 18, 0, role == Role::SERVER ? 2 : 1);
  return keys;
}

/// One side with an application that answers each phase at once, and notes what it was asked.
struct Side {
  Side(SessionConfig config, std::uint32_t keys) : role(config.role), session(config), qps(keys) {}

  bool answer() {
    switch (session.phase()) {
      case Phase::NEED_KEYS:
        session.supply_keys(keys_of(role, session.needed_qp()));
        return true;
      case Phase::CONNECT:
        log += "C";
        if (before_connect) before_connect(session);
        session.connected();
        return true;
      case Phase::POST_RECEIVES:
        log += "P";
        session.receives_posted();
        return true;
      case Phase::RUN:
        if (session.waits_for_peer()) {
          waited = true;
          return false;
        }
        log += std::to_string(session.run());
        session.run_done({65536, 1000, 3.5, 3.25, 0.5});
        return true;
      default:
        return false;
    }
  }

  Role role;
  Session session;
  std::uint32_t qps;
  std::string log;
  bool waited = false;
  std::function<void(Session&)> before_connect{};
};

/// Moves up to `chunk` bytes at a time until both are at rest; the transcript's length in bytes.
std::size_t pump(Side& client, Side& server, std::size_t chunk) {
  std::size_t moved = 0;
  for (bool busy = true; busy;) {
    busy = client.answer();
    busy = server.answer() || busy;
    const std::pair<Side*, Side*> ways[] = {{&client, &server}, {&server, &client}};
    for (auto [from, to] : ways) {
      const auto out = from->session.output();
      if (out.empty()) continue;
      const std::size_t n = std::min(chunk, out.size());
      const std::vector<std::byte> bytes(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
      from->session.consume_output(n);
      to->session.on_bytes(bytes);
      moved += n;
      busy = true;
    }
  }
  return moved;
}

struct Case {
  Shape shape;
  Direction direction;
  Measured measured;
  std::uint32_t qps, sizes;
};

SessionConfig config_of(const Case& c, Role role) {
  SessionConfig config;
  config.role = role;
  config.shape = c.shape;
  config.direction = c.direction;
  config.measured = c.measured;
  config.qps = c.qps;
  config.sizes = c.sizes;
  config.all_sizes = c.sizes > 1;
  config.mtu = role == Role::CLIENT ? verbs::Mtu::MTU_4096 : verbs::Mtu::MTU_1024;
  return config;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Shape shape : {Shape::ONE_SIDED_BW, Shape::SEND_BW, Shape::WRITE_LAT,
                            Shape::ONE_SIDED_LAT, Shape::SEND_LAT})
    for (const Direction direction : {Direction::ONE_WAY, Direction::BOTH_WAYS})
      for (const Measured measured : {Measured::BY_ITERATIONS, Measured::BY_DURATION})
        for (const std::uint32_t qps : {1u, 2u, 8u})
          for (const std::uint32_t sizes : {1u, 23u}) {
            const bool bandwidth = shape == Shape::ONE_SIDED_BW || shape == Shape::SEND_BW;
            if (!bandwidth && (qps > 1 || direction == Direction::BOTH_WAYS)) continue;
            cases.push_back({shape, direction, measured, qps, sizes});
          }
  return cases;
}

std::string message_of(std::size_t n, std::string_view text) {
  std::string message(n, '\0');
  std::memcpy(message.data(), text.data(), text.size());
  return message;
}

void feed(Session& session, std::string_view text) {
  session.on_bytes(std::as_bytes(std::span{text}));
}

}  // namespace

TEST_CASE("client and server agree on every test, however the bytes are split", "[cm][session]") {
  for (const Case& c : all_cases())
    for (const std::size_t chunk : {1u, 3u, 7u, 108u, 4096u}) {
      Side client{config_of(c, Role::CLIENT), c.qps}, server{config_of(c, Role::SERVER), c.qps};
      INFO("shape " << int(c.shape) << " direction " << int(c.direction) << " qps " << c.qps
                    << " sizes " << c.sizes << " chunk " << chunk);
      pump(client, server, chunk);
      REQUIRE(client.session.phase() == Phase::DONE);
      REQUIRE(server.session.phase() == Phase::DONE);
      CHECK(client.session.mtu() == verbs::Mtu::MTU_1024);
      CHECK(server.session.mtu() == verbs::Mtu::MTU_1024);
      REQUIRE(client.session.peer_keys().size() == c.qps);
      for (std::uint32_t i = 0; i < c.qps; ++i) {
        CHECK(client.session.peer_keys()[i] == keys_of(Role::SERVER, i));
        CHECK(server.session.peer_keys()[i] == keys_of(Role::CLIENT, i));
      }
      CHECK(client.session.run() == c.sizes);
    }
}

TEST_CASE("a server that does not know the number of QPs learns it", "[cm][session]") {
  for (const Case& c : all_cases()) {
    SessionConfig config = config_of(c, Role::SERVER);
    config.qps = 0;
    Side client{config_of(c, Role::CLIENT), c.qps}, server{config, 0};
    INFO("shape " << int(c.shape) << " qps " << c.qps);
    pump(client, server, 108);
    CHECK(client.session.phase() == Phase::DONE);
    CHECK(server.session.phase() == Phase::DONE);
    CHECK(server.session.peer_keys().size() == c.qps);
  }
}

TEST_CASE("the server of a one-way one-sided test only waits, others run", "[cm][session]") {
  for (const Case& c : all_cases()) {
    Side client{config_of(c, Role::CLIENT), c.qps}, server{config_of(c, Role::SERVER), c.qps};
    pump(client, server, 108);
    const bool one_sided = c.shape == Shape::ONE_SIDED_LAT ||
                           (c.shape == Shape::ONE_SIDED_BW && c.direction == Direction::ONE_WAY);
    CHECK(server.waited == one_sided);
    CHECK_FALSE(client.waited);
  }
}

TEST_CASE("a bandwidth report crosses whole", "[cm][session]") {
  const Case c{Shape::ONE_SIDED_BW, Direction::ONE_WAY, Measured::BY_ITERATIONS, 1, 1};
  Side client{config_of(c, Role::CLIENT), 1}, server{config_of(c, Role::SERVER), 1};
  pump(client, server, 108);
  const auto& report = server.session.peer_report();
  REQUIRE(report);
  CHECK(report->size == 65536);
  CHECK(report->iterations == 1000);
  CHECK(report->peak == 3.5);
  CHECK(report->average == 3.25);
  CHECK(report->message_rate == 0.5);
}

TEST_CASE("the number of sizes may depend on the MTU that both sides agree on", "[cm][session]") {
  const Case c{Shape::SEND_BW, Direction::ONE_WAY, Measured::BY_ITERATIONS, 1, 12};
  Side client{config_of(c, Role::CLIENT), 1}, server{config_of(c, Role::SERVER), 1};
  // As UD with all sizes: 2 .. 1024 once the smaller MTU is known.
  for (Side* side : {&client, &server})
    side->before_connect = [](Session& session) {
      CHECK(session.mtu() == verbs::Mtu::MTU_1024);
      session.set_sizes(10);
    };
  pump(client, server, 108);
  CHECK(client.session.phase() == Phase::DONE);
  CHECK(server.session.phase() == Phase::DONE);
  CHECK(client.session.run() == 10);
  CHECK(server.session.run() == 10);
}

TEST_CASE("progress counts whole messages", "[cm][session]") {
  Session session{SessionConfig{}};
  feed(session, "6.0");
  CHECK(session.messages() == 0);
  feed(session, message_of(13, "6"));
  CHECK(session.messages() == 1);
}

TEST_CASE("hostile openings fail with a reason", "[cm][session]") {
  struct Opening {
    std::string bytes;
    std::string reason;
  };
  const std::string version = message_of(16, "6.06");
  const std::string system = {"\0\0\x10\0\0\0\0\x40", 8};
  const std::vector<Opening> openings = {
      {"GET / HTTP/1.1\r\n\r\n", "version"},
      {message_of(16, "nan"), "version"},
      {message_of(16, "5.10"), "version"},
      {message_of(16, "6e2"), "version"},
      {message_of(16, "-6.1"), "version"},
      {std::string(16, '6'), "version"},
      {std::string(16, '\0'), "version"},
      {version + system + std::string("9\0", 2), "MTU"},
      {version + system + std::string("33", 2), "MTU"},
      {version + system + std::string("3\0", 2) + std::string(108, 'x'), "QP data"},
      {version + system + std::string("3\0", 2) + std::string(108, '\0'), "without a GID"},
      {std::string(70'000, '6'), "without waiting"},
  };
  for (const auto& [bytes, reason] : openings) {
    Session session{SessionConfig{}};
    feed(session, bytes);
    REQUIRE(session.phase() == Phase::FAILED);
    CHECK(session.error().reason.find(reason) != std::string::npos);
    CHECK_FALSE(session.error().fix.empty());
    feed(session, "more");  // and stays failed
    CHECK(session.phase() == Phase::FAILED);
  }
}

TEST_CASE("a peer that closes anywhere fails the session, or ends it when all is said",
          "[cm][session]") {
  const Case c{Shape::SEND_BW, Direction::BOTH_WAYS, Measured::BY_ITERATIONS, 2, 1};
  Side whole_client{config_of(c, Role::CLIENT), 2}, whole_server{config_of(c, Role::SERVER), 2};
  std::vector<std::byte> transcript;  // what the client says
  for (bool busy = true; busy;) {
    busy = whole_client.answer();
    busy = whole_server.answer() || busy;
    if (const auto out = whole_client.session.output(); !out.empty()) {
      transcript.insert(transcript.end(), out.begin(), out.end());
      const std::vector<std::byte> bytes(out.begin(), out.end());
      whole_client.session.consume_output(bytes.size());
      whole_server.session.on_bytes(bytes);
      busy = true;
    }
    if (const auto out = whole_server.session.output(); !out.empty()) {
      const std::vector<std::byte> bytes(out.begin(), out.end());
      whole_server.session.consume_output(bytes.size());
      whole_client.session.on_bytes(bytes);
      busy = true;
    }
  }
  const std::size_t needed = transcript.size() - kDone.size();
  for (std::size_t cut = 0; cut <= transcript.size(); ++cut) {
    Side server{config_of(c, Role::SERVER), 2};
    server.session.on_bytes(std::span{transcript}.first(cut));
    while (server.answer()) {
    }
    server.session.on_closed();
    while (server.answer()) {
    }
    INFO("cut at " << cut << " of " << transcript.size());
    CHECK(server.session.phase() == (cut >= needed ? Phase::DONE : Phase::FAILED));
  }
}

TEST_CASE("random bytes never hang or break a session", "[cm][session]") {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Prng prng{seed};
    const auto cases = all_cases();
    const Case& c = cases[prng.below(static_cast<std::uint32_t>(cases.size()))];
    Side side{config_of(c, prng.chance(0.5) ? Role::CLIENT : Role::SERVER), c.qps};
    Side other{config_of(c, side.role == Role::CLIENT ? Role::SERVER : Role::CLIENT), c.qps};
    // A real start, then damage.
    const std::uint32_t good_steps = prng.below(60);
    for (std::uint32_t i = 0; i < good_steps; ++i) {
      side.answer();
      other.answer();
      for (auto [from, to] : {std::pair{&side, &other}, std::pair{&other, &side}}) {
        const auto out = from->session.output();
        const std::vector<std::byte> bytes(out.begin(), out.end());
        from->session.consume_output(bytes.size());
        to->session.on_bytes(bytes);
      }
    }
    std::vector<std::byte> noise(prng.below(600));
    for (auto& byte : noise) byte = static_cast<std::byte>(prng());
    side.session.on_bytes(noise);
    for (int i = 0; i < 1000 && side.answer(); ++i) {
    }
    side.session.on_closed();
    for (int i = 0; i < 1000 && side.answer(); ++i) {
    }
    const bool ended = side.session.phase() == Phase::FAILED || side.session.phase() == Phase::DONE;
    CHECK(ended);
  }
}
