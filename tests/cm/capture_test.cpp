// Replays the TCP side channel of real perftest runs (version 6.06) against our session of either
// role.
#include <pcap/pcap.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <map>

#include "cm/perftest/session.hpp"
#include "support/shared.hpp"
#include "support/skip.hpp"
#include "wire/headers.hpp"

using namespace roce;
using namespace roce::cm::perftest;

namespace {

/// One TCP connection: what each side sent, message by message.
struct Conversation {
  std::vector<std::string> client, server;
};

std::vector<Conversation> conversations(const std::string& path) {
  char error[PCAP_ERRBUF_SIZE];
  pcap_t* file = pcap_open_offline(path.c_str(), error);
  REQUIRE(file != nullptr);
  std::map<std::uint16_t, Conversation> by_client_port;
  pcap_pkthdr* header = nullptr;
  const std::uint8_t* data = nullptr;
  while (pcap_next_ex(file, &header, &data) == 1) {
    constexpr std::size_t kL3 = 14, kTcp = kL3 + sizeof(wire::Ipv4Header);
    if (header->caplen < kTcp + 20) continue;
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    if (wire::view_as<wire::EthernetHeader>(bytes)->ether_type.get() != wire::kEtherIpv4) continue;
    const auto& ip = *wire::view_as<wire::Ipv4Header>(bytes + kL3);
    if (ip.protocol != wire::kIpTcp) continue;
    const std::uint16_t source = wire::view_as<wire::Be16>(bytes + kTcp)->get();
    const std::uint16_t destination = wire::view_as<wire::Be16>(bytes + kTcp + 2)->get();
    const std::size_t offset = kTcp + (std::to_integer<std::size_t>(bytes[kTcp + 12]) >> 4) * 4;
    const std::size_t end = kL3 + ip.total_length.get();
    if (end <= offset || end > header->caplen) continue;
    std::string text(reinterpret_cast<const char*>(bytes + offset), end - offset);
    if (destination == 18515)
      by_client_port[source].client.push_back(std::move(text));
    else if (source == 18515)
      by_client_port[destination].server.push_back(std::move(text));
  }
  pcap_close(file);
  std::vector<Conversation> all;
  for (auto& [port, conversation] : by_client_port) all.push_back(std::move(conversation));
  // Client ports do not tell the order of runs; the number of swaps and the keys do, so the caller
  // picks by content.
  return all;
}

std::size_t bytes_of(const std::vector<std::string>& messages) {
  std::size_t n = 0;
  for (const auto& message : messages) n += message.size();
  return n;
}

/// Plays our session against the recorded side; returns the messages that ours sent.
std::vector<std::string> play(SessionConfig config, const std::vector<std::string>& recorded) {
  Session session{config};
  std::vector<std::string> sent;
  std::size_t at = 0;
  for (int guard = 0; guard < 10'000; ++guard) {
    if (const auto out = session.output(); !out.empty()) {
      sent.emplace_back(reinterpret_cast<const char*>(out.data()), out.size());
      session.consume_output(out.size());
      continue;
    }
    switch (session.phase()) {
      case Phase::NEED_KEYS:
        session.supply_keys({});
        continue;
      case Phase::CONNECT:
        session.connected();
        continue;
      case Phase::POST_RECEIVES:
        session.receives_posted();
        continue;
      case Phase::RUN:
        if (!session.waits_for_peer()) {
          session.run_done();
          continue;
        }
        break;
      case Phase::DONE:
        return sent;
      case Phase::FAILED:
        FAIL(session.error().to_string());
        break;
      default:
        break;
    }
    if (at == recorded.size()) break;
    session.on_bytes(std::as_bytes(std::span{recorded[at++]}));
  }
  FAIL("the session did not end; phase " << int(session.phase()) << ", " << at << " of "
                                         << recorded.size() << " messages");
  return sent;
}

std::vector<std::size_t> lengths(const std::vector<std::string>& messages) {
  std::vector<std::size_t> result;
  for (const auto& message : messages) result.push_back(message.size());
  return result;
}

}  // namespace

TEST_CASE("our session says what perftest's client and server said, message by message",
          "[cm][capture]") {
  const auto path = test::shared("captures/rxe/rxe_perftest_cm_all.pcap");
  if (!path) return;
  std::size_t tried = 0;
  for (const Conversation& run : conversations(path->string())) {
    const std::size_t client_bytes = bytes_of(run.client);
    // 26 bytes of preamble, 108 a swap, 40 of a report, 5 of "done".
    std::vector<Shape> shapes;
    if (client_bytes == 26 + 5 * 108 + 40 + 5) shapes = {Shape::ONE_SIDED_BW};
    if (client_bytes == 26 + 5 * 108 + 5) shapes = {Shape::SEND_BW};
    if (client_bytes == 26 + 4 * 108) shapes = {Shape::WRITE_LAT};
    for (const Shape shape : shapes) {
      ++tried;
      for (const Role role : {Role::CLIENT, Role::SERVER}) {
        SessionConfig config;
        config.role = role;
        config.shape = shape;
        const bool client = role == Role::CLIENT;
        INFO("shape " << int(shape) << (client ? " as client" : " as server"));
        const auto sent = play(config, client ? run.server : run.client);
        CHECK(lengths(sent) == lengths(client ? run.client : run.server));
        CHECK(sent.front() == run.client.front());  // the version, NUL-padded
      }
    }
  }
  CHECK(tried >= 6);
}
