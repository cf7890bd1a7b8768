// Replays the TCP side channel of real perftest runs (versions 6.06 and 6.20): our session is given
// what one side heard and knew, and must say byte for byte what that side said.
#include <pcap/pcap.h>

#include <bit>
#include <catch2/catch.hpp>
#include <map>

#include "cm/perftest/session.hpp"
#include "support/shared.hpp"
#include "support/skip.hpp"
#include "wire/headers.hpp"

using namespace roce;
using namespace roce::cm::perftest;

namespace {

using Messages = std::vector<std::string>;

/// One TCP connection: what each side sent, segment by segment (perftest sends a message in each).
struct Conversation {
  Messages client, server;
};

/// The TCP segment of a frame, or nothing.
std::span<const std::byte> segment_of(std::span<const std::byte> frame) {
  constexpr std::size_t kL3 = 14;
  if (frame.size() < kL3 + 40) return {};
  const auto* bytes = frame.data();
  const auto type = wire::view_as<wire::EthernetHeader>(bytes)->ether_type.get();
  std::size_t begin = 0, end = 0;
  if (type == wire::kEtherIpv4) {
    const auto& ip = *wire::view_as<wire::Ipv4Header>(bytes + kL3);
    if (ip.protocol != wire::kIpTcp) return {};
    begin = kL3 + sizeof ip;
    end = kL3 + ip.total_length.get();
  } else if (type == wire::kEtherIpv6) {
    const auto& ip = *wire::view_as<wire::Ipv6Header>(bytes + kL3);
    if (ip.next_header != wire::kIpTcp) return {};
    begin = kL3 + sizeof ip;
    end = begin + ip.payload_length.get();
  }
  if (end < begin + 20 || end > frame.size()) return {};
  return frame.subspan(begin, end - begin);
}

/// The connections to TCP port 18515, in the order of their first data.
std::vector<Conversation> conversations(const std::string& path) {
  char error[PCAP_ERRBUF_SIZE];
  pcap_t* file = pcap_open_offline(path.c_str(), error);
  REQUIRE(file != nullptr);
  std::vector<Conversation> all;
  std::map<std::uint16_t, std::size_t> by_client_port;
  pcap_pkthdr* header = nullptr;
  const std::uint8_t* data = nullptr;
  while (pcap_next_ex(file, &header, &data) == 1) {
    const auto tcp = segment_of(std::as_bytes(std::span{data, header->caplen}));
    if (tcp.empty()) continue;
    const std::uint16_t source = wire::view_as<wire::Be16>(tcp.data())->get();
    const std::uint16_t destination = wire::view_as<wire::Be16>(tcp.data() + 2)->get();
    const std::size_t offset = (std::to_integer<std::size_t>(tcp[12]) >> 4) * 4;
    if (offset >= tcp.size() || (source != 18515 && destination != 18515)) continue;
    const bool to_server = destination == 18515;
    const auto [place, is_new] =
        by_client_port.try_emplace(to_server ? source : destination, all.size());
    if (is_new) all.emplace_back();
    Conversation& conversation = all[place->second];
    (to_server ? conversation.client : conversation.server)
        .emplace_back(reinterpret_cast<const char*>(tcp.data() + offset), tcp.size() - offset);
  }
  pcap_close(file);
  return all;
}

std::span<const std::byte> bytes_of(const std::string& message) {
  return std::as_bytes(std::span{message});
}

/// What the recorded side knew: its version, MTU, keys and figures, read from what it said.
struct Knowledge {
  explicit Knowledge(const Messages& said) {
    std::size_t word = 0;
    for (const std::string& message : said) {
      const auto bytes = bytes_of(message);
      if (message.size() == kVersionBytes) version = message.c_str();
      if (message.size() == kMtuBytes) mtu = *decode_mtu(bytes.first<kMtuBytes>());
      if (message.size() == kKeysBytes) keys.push_back(*decode_keys(bytes.first<kKeysBytes>()));
      if (message.size() != kReportWordBytes) continue;
      const std::uint64_t value = wire::view_as<wire::Be64>(bytes.data())->get();
      std::uint64_t* const integers[] = {&report.size, &report.iterations};
      double* const rates[] = {&report.peak, &report.average, &report.message_rate};
      if (word < 2)
        *integers[word] = value;
      else
        *rates[word - 2] = std::bit_cast<double>(value);
      ++word;
    }
  }
  std::string version;
  verbs::Mtu mtu{};
  std::vector<Keys> keys;
  BandwidthReport report;
};

/// Plays our session against the recorded other side; returns the messages that ours sent.
Messages play(const SessionConfig& config, const Knowledge& knowledge, const Messages& heard) {
  Session session{config};
  Messages sent;
  std::size_t at = 0;
  for (int guard = 0; guard < 10'000; ++guard) {
    if (const auto out = session.output(); !out.empty()) {
      sent.emplace_back(reinterpret_cast<const char*>(out.data()), out.size());
      session.consume_output(out.size());
      continue;
    }
    switch (session.phase()) {
      case Phase::NEED_KEYS:
        session.supply_keys(knowledge.keys.at(session.needed_qp()));
        continue;
      case Phase::CONNECT:
        session.connected();
        continue;
      case Phase::POST_RECEIVES:
        session.receives_posted();
        continue;
      case Phase::RUN:
        if (!session.waits_for_peer()) {
          session.run_done(knowledge.report);
          continue;
        }
        break;
      case Phase::DONE:
        return sent;
      case Phase::FAILED:
        FAIL(session.error().to_string());
        break;
      case Phase::EXCHANGE:
        break;
    }
    if (at == heard.size()) break;
    session.on_bytes(bytes_of(heard[at++]));
  }
  FAIL("the session did not end; phase " << int(session.phase()) << ", heard " << at << " of "
                                         << heard.size() << " messages");
  return sent;
}

struct Recorded {
  std::string file;
  std::size_t place;  ///< of the conversation in the file
  Shape shape;
  std::uint32_t qps = 1;
  Direction direction = Direction::ONE_WAY;
};

void check(const Recorded& recorded, const Conversation& conversation, Role role,
           std::uint32_t qps) {
  const bool client = role == Role::CLIENT;
  const Messages& said = client ? conversation.client : conversation.server;
  const Knowledge knowledge{said};
  SessionConfig config;
  config.role = role;
  config.shape = recorded.shape;
  config.direction = recorded.direction;
  config.qps = qps;
  config.version = knowledge.version;
  config.mtu = knowledge.mtu;
  const Messages sent = play(config, knowledge, client ? conversation.server : conversation.client);
  INFO(recorded.file << " #" << recorded.place << (client ? " as client" : " as server"));
  REQUIRE(sent.size() == said.size());
  // A server that measured nothing reports what its memory holds.
  const bool garbage = !client && recorded.direction == Direction::ONE_WAY;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    INFO("message " << i);
    if (garbage && said[i].size() == kReportWordBytes)
      CHECK(sent[i].size() == kReportWordBytes);
    else
      CHECK(sent[i] == said[i]);
  }
}

}  // namespace

TEST_CASE("our session says byte for byte what perftest said, as client and as server",
          "[cm][capture]") {
  const std::string all = "captures/rxe/rxe_perftest_cm_all.pcap";
  const std::string jumbo = "captures/rxe/rxe_ipv6_jumbo_4qp.pcap";
  const std::string public_run = "captures/public/linlinw5_rdma_";
  const std::vector<Recorded> runs = {
      {all, 0, Shape::ONE_SIDED_BW},
      {all, 1, Shape::SEND_BW},
      {all, 2, Shape::ONE_SIDED_BW},
      {all, 3, Shape::ONE_SIDED_BW},
      {all, 4, Shape::ONE_SIDED_BW},
      {all, 5, Shape::WRITE_LAT},
      {all, 6, Shape::SEND_BW},
      {all, 7, Shape::SEND_BW},
      {jumbo, 0, Shape::ONE_SIDED_BW, 4, Direction::BOTH_WAYS},
      {jumbo, 1, Shape::ONE_SIDED_BW},
      {jumbo, 2, Shape::SEND_LAT},
      {public_run + "write_bw.pcap", 0, Shape::ONE_SIDED_BW},
      {public_run + "read_bw.pcap", 0, Shape::ONE_SIDED_BW},
      {public_run + "atomic_bw.pcap", 0, Shape::ONE_SIDED_BW},
      {public_run + "send_bw.pcap", 0, Shape::SEND_BW},
      {public_run + "write_lat.pcap", 0, Shape::WRITE_LAT},
  };
  for (const Recorded& recorded : runs) {
    const auto path = test::shared(recorded.file);
    if (!path) return;
    const auto found = conversations(path->string());
    REQUIRE(recorded.place < found.size());
    check(recorded, found[recorded.place], Role::CLIENT, recorded.qps);
    check(recorded, found[recorded.place], Role::SERVER, recorded.qps);
    check(recorded, found[recorded.place], Role::SERVER, 0);  // learns the number of QPs
  }
}
