// Session: one side of perftest's TCP exchange as a state machine, sans-IO.
//
// A carrier (cm/tcp.hpp) feeds on_bytes() and sends output(); the application looks at phase() and
// answers it. Every exchange is a swap of fixed-size messages in lock-step: the client writes then
// reads, the server reads then writes. The session never waits, never reads a clock and never fails
// other than by Phase::FAILED; time limits are the carrier's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cm/perftest/messages.hpp"

namespace roce::cm::perftest {

enum class Role : std::uint8_t { SERVER, CLIENT };

/// The shapes that the eight tests' exchanges have.
enum class Shape : std::uint8_t {
  ONE_SIDED_BW,  ///< write_bw, read_bw, atomic_bw
  SEND_BW,
  WRITE_LAT,
  ONE_SIDED_LAT,  ///< read_lat, atomic_lat
  SEND_LAT,
};
enum class Direction : std::uint8_t { ONE_WAY, BOTH_WAYS };
/// Whether a two-way run of SENDs ends with a report: only runs by iterations do.
enum class Measured : std::uint8_t { BY_ITERATIONS, BY_DURATION };

struct SessionConfig {
  Role role = Role::SERVER;
  Shape shape = Shape::ONE_SIDED_BW;
  Direction direction = Direction::ONE_WAY;
  Measured measured = Measured::BY_ITERATIONS;
  /// QPs; 0: a server that learns the number from the client. It answers QP by QP until the
  /// client's first QP comes again, which every test's exchange does right after the last one; only
  /// then does it reach CONNECT. Two QPs of one client never share number and PSN, so it cannot
  /// err; the application sets a limit by fail() in NEED_KEYS.
  std::uint32_t qps = 1;
  std::uint32_t sizes = 1;                ///< message sizes that are run in turn
  bool all_sizes = false;                 ///< -a: more swaps between sizes
  verbs::Mtu mtu = verbs::Mtu::MTU_1024;  ///< most that this side can do
  std::string version{kOldestVersion};    ///< advertised, kOldestVersion..kNewestVersion
};

/// What the session wants of the application.
enum class Phase : std::uint8_t {
  EXCHANGE,       ///< nothing; messages are under way
  NEED_KEYS,      ///< supply_keys() for QP number needed_qp()
  CONNECT,        ///< peer_keys() and mtu() are known: bring the QPs to RTS, then connected()
  POST_RECEIVES,  ///< SENDs only: post the receives of run run(), then receives_posted()
  RUN,            ///< do run number run(), then run_done(); see waits_for_peer()
  DONE,           ///< the exchange is over, once output() is empty
  FAILED,         ///< error() says why
};

class Session {
 public:
  explicit Session(SessionConfig config);

  // --- carrier ---
  /// Takes received bytes, split anywhere.
  void on_bytes(std::span<const std::byte> bytes);
  /// The peer has closed or reset the connection.
  void on_closed();
  /// What is to be sent, one message at a time; send each in one piece (perftest reads once).
  [[nodiscard]] std::span<const std::byte> output() const;
  /// n bytes of output() have been sent.
  void consume_output(std::size_t n);

  // --- application ---
  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] const Error& error() const { return error_; }

  [[nodiscard]] std::uint32_t needed_qp() const { return static_cast<std::uint32_t>(ours_.size()); }
  void supply_keys(const Keys& keys);
  /// In CONNECT: the number of message sizes, where it depends on the MTU (UD with all sizes).
  void set_sizes(std::uint32_t sizes);
  void connected();
  void receives_posted();
  [[nodiscard]] std::uint32_t run() const { return run_; }
  /// report: this side's figures, sent where the exchange asks for them.
  void run_done(const BandwidthReport& report = {});
  /// In RUN: this side has nothing to do but answer, until the peer says that it is done; the
  /// session then leaves RUN by itself.
  [[nodiscard]] bool waits_for_peer() const;
  /// In RUN: the peer has sent its next message or, where none follows, closed: its run is over.
  [[nodiscard]] bool peer_is_done() const {
    return phase_ == Phase::RUN && (!input_.empty() || closed_);
  }

  /// The application gives up; the carrier then closes.
  void fail(Error error);

  [[nodiscard]] std::span<const Keys> peer_keys() const { return theirs_; }
  /// The smaller of both sides'; from CONNECT on.
  [[nodiscard]] verbs::Mtu mtu() const { return mtu_; }
  [[nodiscard]] const std::string& peer_version() const { return peer_version_; }
  /// Messages taken from the peer so far: a measure of progress that single bytes do not move.
  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  /// The peer's figures of the last reported run.
  [[nodiscard]] const std::optional<BandwidthReport>& peer_report() const { return peer_report_; }

 private:
  enum class Step : std::uint8_t {
    VERSION,
    SYSTEM_CYCLE,
    SYSTEM_LINE,
    MTU,
    FIRST_KEYS,
    CONNECT,
    KEYS,
    SYNC,
    POST_RECEIVES,
    RUN,
    PASSIVE_RUN,
    REPORT,
    CLOSE,
    DONE_TAIL,
    END,
  };

  void script_opening();
  void script_rest();
  void script_runs();
  void add(Step step) { script_.push_back(step); }
  void advance();
  /// One go at the step at hand; false when it waits for bytes or for the application.
  [[nodiscard]] bool go();
  /// One swap of the lock-step; false while it waits for the peer's message.
  [[nodiscard]] bool swap();
  [[nodiscard]] bool swap_first_keys();
  [[nodiscard]] std::size_t message_bytes() const;
  void put_message();
  [[nodiscard]] bool take_message(std::span<const std::byte> bytes);
  /// The keys of a message, or nothing after fail().
  [[nodiscard]] std::optional<Keys> read_keys(std::span<const std::byte> bytes);
  [[nodiscard]] bool take_keys(std::span<const std::byte> bytes, std::uint32_t index);
  void drop_input(std::size_t n);
  void put(std::span<const std::byte> bytes);
  [[nodiscard]] Step step() const { return script_[at_]; }
  void next();
  void wait(Phase phase) { phase_ = phase; }
  /// Waits for the peer's next message, which never comes once it has closed.
  void wait_for_peer();

  SessionConfig config_;
  std::vector<Step> script_;
  std::size_t at_ = 0;
  std::uint32_t done_ = 0;  ///< swaps of the step at hand that are complete
  bool wrote_ = false;      ///< client: this swap's message is written
  bool answered_ = false;   ///< the application has answered the step at hand
  Phase phase_ = Phase::EXCHANGE;
  Error error_;

  bool closed_ = false;  ///< by the peer
  std::uint64_t messages_ = 0;
  std::vector<std::byte> input_;
  std::vector<std::vector<std::byte>> output_;
  std::size_t output_sent_ = 0;  ///< of the first message

  std::vector<Keys> ours_, theirs_;
  std::uint32_t run_ = 0;
  verbs::Mtu mtu_;
  std::string peer_version_;
  BandwidthReport our_report_;
  BandwidthReport report_in_;
  std::optional<BandwidthReport> peer_report_;
};

}  // namespace roce::cm::perftest
