// The unmodified perftest programs of this machine against our session over TCP, in both roles.
// They run on a stand-in for libibverbs (stock/verbs_standin.cpp), so no device is needed and the
// data plane is empty: what is tested is the exchange, message by message.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "cm/tcp.hpp"
#include "support/skip.hpp"

extern char** environ;

using namespace roce;
using namespace roce::cm;
using perftest::Direction;
using perftest::Measured;
using perftest::Phase;
using perftest::Role;
using perftest::Shape;

namespace {

constexpr std::uint32_t kSizes = 23;  // 2, 4, ... 8388608

struct Program {
  std::string name;
  Shape shape;
};
const std::vector<Program> kPrograms = {
    {"ib_write_bw", Shape::ONE_SIDED_BW},    {"ib_read_bw", Shape::ONE_SIDED_BW},
    {"ib_atomic_bw", Shape::ONE_SIDED_BW},   {"ib_send_bw", Shape::SEND_BW},
    {"ib_write_lat", Shape::WRITE_LAT},      {"ib_read_lat", Shape::ONE_SIDED_LAT},
    {"ib_atomic_lat", Shape::ONE_SIDED_LAT}, {"ib_send_lat", Shape::SEND_LAT},
};

/// One conversation: which program, with what options, and our side of it.
struct Case {
  std::string program;
  std::string options;
  perftest::SessionConfig ours;
  std::string gid = "::ffff:198.18.0.2";
};

Instant now() {
  return Instant::from_ns(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// A running program with its output in a file.
class Child {
 public:
  Child(const Case& c, std::uint16_t port, bool client) {
    std::string line = c.program + " -F -x 1 --use_old_post_send -n 5 -p " + std::to_string(port) +
                       " " + c.options + (client ? " 127.0.0.1" : "");
    std::istringstream words{line};
    std::vector<std::string> arguments{std::istream_iterator<std::string>{words}, {}};
    std::vector<char*> argv;
    for (auto& word : arguments) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::vector<std::string> settings = {std::string{"LD_PRELOAD="} + ROCE_VERBS_STANDIN,
                                         "STANDIN_GID=" + c.gid};
    if (c.program == "ib_write_lat") settings.push_back("STANDIN_ECHO=1");
    std::vector<char*> environment;
    for (char** e = environ; *e != nullptr; ++e) environment.push_back(*e);
    for (auto& setting : settings) environment.push_back(setting.data());
    environment.push_back(nullptr);

    char path[] = "/tmp/roce-stock-XXXXXX";
    const int out = ::mkstemp(path);
    file_ = path;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, out, 1);
    ::posix_spawn_file_actions_adddup2(&actions, out, 2);
    const int error =
        ::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(out);
    if (error != 0) FAIL("cannot start " << line);
  }
  ~Child() {
    if (!exit_code()) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove(file_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Nothing while it runs; -1 when a signal ended it.
  std::optional<int> exit_code() {
    int status = 0;
    if (!code_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return code_;
  }
  std::string output() const {
    std::ifstream in{file_};
    return {std::istreambuf_iterator<char>{in}, {}};
  }

 private:
  pid_t pid_ = 0;
  std::string file_;
  std::optional<int> code_;
};

/// One case under way.
class Conversation {
 public:
  explicit Conversation(const Case& c) : case_(c) {
    auto listener = TcpListener::open(0);
    REQUIRE(listener);
    const std::uint16_t port = listener->port();
    if (c.ours.role == Role::SERVER) {
      listener_ = std::move(*listener);
    } else {
      { const TcpListener gone = std::move(*listener); }
      connector_ = std::move(*TcpConnector::open("127.0.0.1", port, Duration::seconds(20)));
    }
    child_ = std::make_unique<Child>(c, port, c.ours.role == Role::SERVER);
  }

  /// False when nothing is left to do.
  bool step() {
    if (!carrier_) find_peer();
    if (carrier_) {
      carrier_->step(now());
      answer(carrier_->session());
      if (carrier_->finished() && !done_) {
        done_ = true;
        phase = carrier_->session().phase();
        error = carrier_->session().error().to_string();
        runs = carrier_->session().run();
        qps = carrier_->session().peer_keys().size();
        version = carrier_->session().peer_version();
        report = carrier_->session().peer_report();
        carrier_.reset();  // closes the connection, as our programs do
      }
    }
    exit_code = child_->exit_code();
    return !(done_ && exit_code);
  }
  std::string output() const { return child_->output(); }

  Phase phase = Phase::EXCHANGE;
  std::string error, version;
  std::uint32_t runs = 0;
  std::size_t qps = 0;
  std::optional<perftest::BandwidthReport> report;
  std::optional<int> exit_code;

 private:
  void find_peer() {
    if (done_) return;
    std::optional<Socket> socket;
    if (listener_) socket = listener_->accept();
    if (connector_) {
      auto tried = connector_->step(now());
      if (!tried) FAIL(case_.program << ": " << tried.error().to_string());
      socket = std::move(*tried);
    }
    if (socket) carrier_.emplace(std::move(*socket), case_.ours);
  }

  void answer(perftest::Session& session) {
    perftest::Keys keys;
    switch (session.phase()) {
      case Phase::NEED_KEYS:
        keys.qpn = Qpn{0x100 + session.needed_qp()};
        keys.psn = Psn{session.needed_qp()};
        keys.out_reads = 16;
        keys.gid = *IpAddress::from_string(case_.gid.find('.') == std::string::npos ? "fd00::1"
                                                                                    : "198.18.0.1");
        return session.supply_keys(keys);
      case Phase::CONNECT:
        return session.connected();
      case Phase::POST_RECEIVES:
        return session.receives_posted();
      case Phase::RUN:
        if (!session.waits_for_peer()) session.run_done({65536, 5, 2, 1, 0.5});
        return;
      default:
        return;
    }
  }

  Case case_;
  std::optional<TcpListener> listener_;
  std::optional<TcpConnector> connector_;
  std::optional<TcpCarrier> carrier_;
  std::unique_ptr<Child> child_;
  bool done_ = false;
};

bool stock_programs_here() {
  for (const auto& [name, shape] : kPrograms)
    if (!std::filesystem::exists("/usr/bin/" + name)) {
      test::skip("/usr/bin/" + name + " is absent; install perftest");
      return false;
    }
  return true;
}

/// Runs the cases, several at a time: they mostly sleep.
void run(const std::vector<Case>& cases, std::size_t at_a_time = 12) {
  constexpr Duration kLimit = Duration::seconds(100);
  for (std::size_t from = 0; from < cases.size(); from += at_a_time) {
    const std::size_t n = std::min(at_a_time, cases.size() - from);
    std::vector<std::unique_ptr<Conversation>> all;
    for (std::size_t i = 0; i < n; ++i)
      all.push_back(std::make_unique<Conversation>(cases[from + i]));
    const Instant end = now() + kLimit;
    for (bool busy = true; busy && now() < end; ::usleep(500)) {
      busy = false;
      for (auto& conversation : all) busy = conversation->step() || busy;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const Case& c = cases[from + i];
      const Conversation& it = *all[i];
      const bool client = c.ours.role == Role::CLIENT;
      INFO(c.program << " " << c.options << (client ? ", we are client" : ", we serve")
                     << "\nour error: " << it.error << "\nits output:\n"
                     << it.output());
      CHECK(it.phase == Phase::DONE);
      CHECK(it.exit_code == 0);
      CHECK(it.version == "6.06");
      if (c.ours.qps > 0) CHECK(it.qps == c.ours.qps);
      const bool waits =
          !client &&
          (c.ours.shape == Shape::ONE_SIDED_LAT ||
           (c.ours.shape == Shape::ONE_SIDED_BW && c.ours.direction == Direction::ONE_WAY));
      CHECK(it.runs == (waits ? 1 : c.ours.sizes));
      CHECK(it.output().find("Couldn't") == std::string::npos);
      CHECK(it.output().find("Failed") == std::string::npos);
    }
  }
}

Case make(const std::string& program, const std::string& options, Shape shape) {
  Case c;
  c.program = program;
  c.options = options;
  c.ours.shape = shape;
  return c;
}

/// The same case with us as server and as client.
void add_roles(std::vector<Case>& cases, Case c) {
  for (const Role role : {Role::SERVER, Role::CLIENT}) {
    c.ours.role = role;
    cases.push_back(c);
  }
}

bool is_bandwidth(Shape shape) {
  return shape == Shape::ONE_SIDED_BW || shape == Shape::SEND_BW;
}

}  // namespace

TEST_CASE("stock perftest completes every test against us, as client and as server",
          "[cm][stock]") {
  if (!stock_programs_here()) return;
  std::vector<Case> cases;
  for (const auto& [name, shape] : kPrograms) {
    Case c = make(name, "", shape);
    add_roles(cases, c);
  }
  run(cases);
}

TEST_CASE("stock perftest completes with several QPs, both ways, and by duration", "[cm][stock]") {
  if (!stock_programs_here()) return;
  std::vector<Case> cases;
  for (const auto& [name, shape] : kPrograms) {
    if (!is_bandwidth(shape)) continue;
    Case c = make(name, "-q 4 -b", shape);
    c.ours.qps = 4;
    c.ours.direction = Direction::BOTH_WAYS;
    add_roles(cases, c);
    c.options = "-D 2 -f 0";
    c.ours.qps = 1;
    c.ours.direction = Direction::ONE_WAY;
    c.ours.measured = Measured::BY_DURATION;
    add_roles(cases, c);
    c.options += " -b";
    c.ours.direction = Direction::BOTH_WAYS;
    add_roles(cases, c);
  }
  run(cases);
}

TEST_CASE("stock perftest completes all message sizes", "[cm][stock]") {
  if (!stock_programs_here()) return;
  std::vector<Case> cases;
  for (const auto& [name, shape] : kPrograms) {
    // Atomics have one size; the WRITE ping-pong has no data plane that could follow the sizes.
    if (name.find("atomic") != std::string::npos || shape == Shape::WRITE_LAT) continue;
    Case c = make(name, "-a", shape);
    c.ours.sizes = kSizes;
    c.ours.all_sizes = true;
    add_roles(cases, c);
    if (!is_bandwidth(shape)) continue;
    c.options = "-a -b";
    c.ours.direction = Direction::BOTH_WAYS;
    add_roles(cases, c);
  }
  run(cases, 4);
}

TEST_CASE("stock perftest completes over UC, UD and IPv6", "[cm][stock]") {
  if (!stock_programs_here()) return;
  std::vector<Case> cases;
  for (const auto& [name, shape] : kPrograms) {
    Case c = make(name, "", shape);
    c.gid = "fd00::2";
    add_roles(cases, c);
    if (shape != Shape::SEND_BW && shape != Shape::SEND_LAT) continue;
    c.gid = "::ffff:198.18.0.2";
    for (const auto* transport : {"-c UC", "-c UD -s 512"}) {
      c.options = transport;
      add_roles(cases, c);
    }
    c.options = "-c UD -a";
    c.ours.all_sizes = true;
    c.ours.sizes = 10;  // up to the MTU of 1024
    add_roles(cases, c);
  }
  run(cases);
}

TEST_CASE("a server that learns the number of QPs serves stock clients", "[cm][stock]") {
  if (!stock_programs_here()) return;
  std::vector<Case> cases;
  for (const auto& [name, shape] : kPrograms)
    for (const std::string qps : {"", "-q 3"}) {
      if (!is_bandwidth(shape) && !qps.empty()) continue;
      Case c = make(name, qps, shape);
      c.ours.qps = 0;
      cases.push_back(c);
    }
  run(cases);
}

TEST_CASE("stock perftest takes every version that we may advertise", "[cm][stock]") {
  if (!stock_programs_here()) return;
  std::vector<Case> cases;
  for (const auto* version : {"6.06", "6.16", "6.17", "6.27"}) {
    Case c = make("ib_send_bw", "-b", Shape::SEND_BW);
    c.ours.direction = Direction::BOTH_WAYS;
    c.ours.version = version;
    add_roles(cases, c);
  }
  run(cases);
}
