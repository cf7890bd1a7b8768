// What the worker costs: RC WRITEs between two workers over the memory wire, on two threads or on
// one, and one requester alone against a port that acknowledges, each as a ratio to the bare loop
// (copy the payload, write the headers, compute the ICRC, give the frame to nobody).
//
// Figures are of whole runs: set-up is outside, the last completion inside. Run it on idle cores.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <boost/program_options.hpp>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/engine_bench_ports.hpp"
#include "engine/clock.hpp"
#include "engine/worker.hpp"
#include "port/memory/memory_wire.hpp"

namespace roce::bench {
namespace {

constexpr std::uint8_t kAllAccess = verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE |
                                    verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC;

struct Load {
  std::uint32_t size = 4096;  ///< bytes of a message
  std::uint32_t qps = 1;
  std::uint32_t depth = 128;  ///< WRs outstanding per QP
  std::uint32_t signal_every = 16;
  double seconds = 1.0;
  Rate pace{};                 ///< of each QP when not 0; above what it reaches: pacing alone costs
  std::uint64_t messages = 0;  ///< instead of seconds when not 0: the same work on every run
};

void modify(engine::Worker& worker, Qpn qpn, const verbs::QpAttributes& attributes) {
  if (const auto done = worker.modify_qp(qpn, attributes); !done)
    throw std::runtime_error(done.error().to_string());
}

struct Figure {
  std::uint64_t messages = 0;
  double seconds = 0;
  [[nodiscard]] double per_second() const { return static_cast<double>(messages) / seconds; }
};

/// One worker with an interface, a buffer that it reads or that is written to, and its QPs.
class Side {
 public:
  Side(unsigned index, engine::PacketIo& io, const Load& load)
      : mac_(io.info().mac),
        ip_(IpAddress::v4(198, 18, 0, static_cast<std::uint8_t>(index + 1))),
        worker_({.index = static_cast<std::uint8_t>(index), .max_qps = load.qps}, io),
        bytes_(std::size_t{1} << 16, std::byte{0x5a}),
        pd_(worker_.memory().alloc_pd()),
        cq_(worker_.create_cq(std::size_t{load.qps} * load.depth + 1)) {
    (void)worker_.add_interface({mac_, {{ip_, 24}}, {}, {}, engine::NeighbourDuty::OURS});
    mr_ = worker_.memory().reg_mr(pd_, bytes_, kAllAccess).value();
    for (std::uint32_t i = 0; i < load.qps; ++i) {
      verbs::QpInitAttributes init;
      init.pd = pd_;
      init.send_cq = init.recv_cq = &cq_;
      init.cap = {load.depth, 1, 1, 1, 0};
      qps_.push_back(worker_.create_qp(init).value());
      verbs::QpAttributes attributes;
      attributes.qp_state = verbs::QpState::INIT;
      attributes.qp_access_flags = kAllAccess & ~verbs::ACCESS_LOCAL_WRITE;
      modify(worker_, qps_.back(), attributes);
      if (load.pace.mbps() > 0 &&
          !worker_.set_congestion_control(qps_.back(), congestion::FixedRate{load.pace}))
        throw std::runtime_error("a QP is not paced");
    }
  }

  /// Connects each QP to the peer's of the same place.
  void connect(const Side& peer) {
    for (std::size_t i = 0; i < qps_.size(); ++i) {
      verbs::QpAttributes rtr;
      rtr.qp_state = verbs::QpState::RTR;
      rtr.path_mtu = verbs::Mtu::MTU_4096;
      rtr.dest_qp_num = peer.qps_[i];
      rtr.rq_psn = Psn{0};
      rtr.max_dest_rd_atomic = 1;
      rtr.min_rnr_timer = 12;
      wire::PathAttributes path;
      path.source_mac = mac_;
      path.destination_mac = peer.mac_;
      path.source = ip_;
      path.destination = peer.ip_;
      rtr.path = path;
      modify(worker_, qps_[i], rtr);
      verbs::QpAttributes rts;
      rts.qp_state = verbs::QpState::RTS;
      rts.sq_psn = Psn{0};
      rts.max_rd_atomic = 1;
      rts.timeout = 18;
      rts.retry_cnt = 7;
      rts.rnr_retry = 7;
      modify(worker_, qps_[i], rts);
    }
  }

  [[nodiscard]] engine::Worker& worker() { return worker_; }
  [[nodiscard]] const std::vector<Qpn>& qps() const { return qps_; }
  [[nodiscard]] const verbs::MemoryRegion& mr() const { return mr_; }
  [[nodiscard]] verbs::CompletionQueue& cq() { return cq_; }

 private:
  MacAddress mac_;
  IpAddress ip_;
  engine::Worker worker_;
  std::vector<std::byte> bytes_;
  verbs::Pd pd_;
  verbs::CompletionQueue& cq_;
  verbs::MemoryRegion mr_;
  std::vector<Qpn> qps_;
};

/// Keeps every QP of a side full of WRITEs to a peer's region.
class Writer {
 public:
  Writer(Side& side, const verbs::MemoryRegion& target, const Load& load)
      : side_(side), load_(load), sge_{side.mr().addr, load.size, side.mr().lkey} {
    wr_.opcode = verbs::WrOpcode::RDMA_WRITE;
    wr_.sg_list = {&sge_, 1};
    wr_.remote_addr = target.addr;
    wr_.rkey = target.rkey;
    posted_.resize(side.qps().size());
    for (std::uint32_t qp = 0; qp < load.qps; ++qp) post(qp, load.depth);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Takes completions and posts as many again.
  void refill() {
    std::array<verbs::Wc, 64> wcs;
    const std::size_t n = side_.cq().poll(wcs);
    for (std::size_t i = 0; i < n; ++i) {
      if (wcs[i].status != verbs::WcStatus::SUCCESS)
        throw std::runtime_error(fmt::format("WRITE ended in {}", name_of(wcs[i].status)));
      done_ += load_.signal_every;
      post(static_cast<std::uint32_t>(wcs[i].wr_id), load_.signal_every);
    }
  }
  [[nodiscard]] std::uint64_t done() const { return done_; }

 private:
  void post(std::uint32_t qp, std::uint32_t count) {
    wr_.wr_id = qp;
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool signal = ++posted_[qp] % load_.signal_every == 0;
      wr_.send_flags = signal ? verbs::SEND_SIGNALED : 0;
      if (side_.worker().post_send(side_.qps()[qp], wr_) != transport::PostResult::OK)
        throw std::runtime_error("a WRITE was not taken");
    }
  }

  Side& side_;
  Load load_;
  verbs::Sge sge_;
  verbs::SendWr wr_;
  std::vector<std::uint32_t> posted_;
  std::uint64_t done_ = 0;
};

/// Turns until the time is over, or the messages are through; the clock is read once a turn.
template <class Turn>
Figure measure(const Load& load, Writer& writer, Turn turn) {
  const Instant start = engine::SteadyClock::now();
  const Instant end = start + Duration::nanoseconds(static_cast<std::int64_t>(load.seconds * 1e9));
  Instant now = start;
  const std::uint64_t before = writer.done();
  while (load.messages == 0 ? now < end : writer.done() - before < load.messages) {
    turn(now);
    writer.refill();
    now = engine::SteadyClock::now();
  }
  return {writer.done() - before, (now - start).s()};
}

Figure two_threads(const Load& load) {
  port::MemoryWire wire{{.transfer = port::Transfer::STREAMED}};
  Side a{0, wire.first(), load}, b{1, wire.second(), load};
  a.connect(b);
  b.connect(a);
  std::atomic<bool> stop = false;
  std::thread peer{[&] {
    while (!stop.load(std::memory_order_relaxed)) b.worker().turn(engine::SteadyClock::now());
  }};
  Figure figure;
  std::exception_ptr failed;
  try {
    Writer writer{a, b.mr(), load};
    figure = measure(load, writer, [&](Instant now) { a.worker().turn(now); });
  } catch (...) {
    failed = std::current_exception();
  }
  stop = true;
  peer.join();
  if (failed) std::rethrow_exception(failed);
  return figure;
}

Figure one_thread(const Load& load) {
  port::MemoryWire wire{{.transfer = port::Transfer::IN_PLACE}};
  Side a{0, wire.first(), load}, b{1, wire.second(), load};
  a.connect(b);
  b.connect(a);
  Writer writer{a, b.mr(), load};
  return measure(load, writer, [&](Instant now) {
    a.worker().turn(now);
    b.worker().turn(now);
  });
}

Figure requester_alone(const Load& load) {
  AcknowledgingPort port;
  Side a{0, port, load};
  a.connect(a);
  port.answer_to(a.qps());
  Writer writer{a, a.mr(), load};
  return measure(load, writer, [&](Instant now) { a.worker().turn(now); });
}

/// Bursts of WRITE_ONLY frames, each with its payload copied and its ICRC made, to a port that
/// drops them.
Figure bare_loop(const Load& load) {
  NullPort port;
  wire::PathAttributes attributes;
  attributes.source = IpAddress::v4(198, 18, 0, 1);
  attributes.destination = IpAddress::v4(198, 18, 0, 2);
  const wire::PathHeaders path = wire::make_path_headers(attributes);
  const std::vector<std::byte> source(std::size_t{1} << 16, std::byte{0x5a});
  Figure figure;
  const Instant start = engine::SteadyClock::now();
  const Instant end = start + Duration::nanoseconds(static_cast<std::int64_t>(load.seconds * 1e9));
  Instant now = start;
  std::uint32_t psn = 0;
  while (now < end) {
    std::array<engine::Frame, engine::kBurst> frames;
    const std::size_t n = port.tx_reserve(frames);
    for (std::size_t i = 0; i < n; ++i) {
      wire::FrameBuilder builder{{frames[i].data, frames[i].capacity},
                                 path,
                                 {.opcode = wire::Opcode::RC_RDMA_WRITE_ONLY,
                                  .dest_qpn = Qpn{0x11},
                                  .psn = Psn{psn++},
                                  .ack_request = true},
                                 load.size};
      builder.reth().dma_length.set(load.size);
      std::memcpy(builder.payload().data(), source.data(), load.size);
      frames[i].length = static_cast<std::uint32_t>(builder.finish());
    }
    figure.messages += port.tx_burst(now, std::span(frames).first(n));
    now = engine::SteadyClock::now();
  }
  figure.seconds = (now - start).s();
  return figure;
}

/// The best of three: the others had company on the core.
template <class Run>
Figure best(const Load& load, Run run) {
  Figure top;
  const int runs = load.messages == 0 ? 3 : 1;
  for (int i = 0; i < runs; ++i) {
    const Figure figure = run(load);
    if (top.messages == 0 || figure.per_second() > top.per_second()) top = figure;
  }
  return top;
}

void print(const char* name, const Load& load, const Figure& figure, const Figure& bare) {
  fmt::print("{:<28} {:>5} B {:>6} QPs {:>8.3f} M/s {:>8.2f} Gb/s  {:.2f} of the bare loop\n", name,
             load.size, load.qps, figure.per_second() / 1e6,
             figure.per_second() * load.size * 8 / 1e9, figure.per_second() / bare.per_second());
  std::fflush(stdout);
}

void run_all(double seconds, const std::string& only, std::uint32_t most_qps,
             std::uint64_t messages) {
  const auto wanted = [&](const char* name) { return only.empty() || only == name; };
  for (const std::uint32_t size : {4096u, 64u}) {
    const Load one{.size = size, .seconds = seconds, .messages = messages};
    const Figure bare = best({.size = size, .seconds = messages == 0 ? seconds : 0.01}, bare_loop);
    print("bare loop", one, bare, bare);
    if (wanted("requester")) print("requester alone", one, best(one, requester_alone), bare);
    if (wanted("paced")) {
      const Load paced{
          .size = size, .seconds = seconds, .pace = Rate::gbps(1000), .messages = messages};
      print("requester alone, paced", paced, best(paced, requester_alone), bare);
    }
    if (wanted("one-thread")) print("both ends, one thread", one, best(one, one_thread), bare);
    if (wanted("two-threads")) print("both ends, two threads", one, best(one, two_threads), bare);
    if (!wanted("qps")) continue;
    for (std::uint32_t qps = 16; qps <= most_qps; qps *= 32) {
      const Load many{.size = size,
                      .qps = qps,
                      .depth = 16,
                      .signal_every = 4,
                      .seconds = seconds,
                      .messages = messages};
      print("both ends, one thread", many, best(many, one_thread), bare);
    }
  }
}

}  // namespace
}  // namespace roce::bench

int main(int argc, char** argv) {
  namespace po = boost::program_options;
  double seconds = 0;
  std::string only;
  std::uint32_t most_qps = 0;
  std::uint64_t messages = 0;
  po::options_description options("Options");
  options.add_options()("help", "this text");
  options.add_options()("seconds", po::value(&seconds)->default_value(1.0), "of each run");
  options.add_options()("only", po::value(&only),
                        "requester, paced, one-thread, two-threads or qps");
  options.add_options()("most-qps", po::value(&most_qps)->default_value(16384), "of 'qps'");
  options.add_options()("messages", po::value(&messages)->default_value(0),
                        "end each run after so many instead, for counting instructions");
  try {
    po::variables_map values;
    po::store(po::parse_command_line(argc, argv, options), values);
    po::notify(values);
    if (values.contains("help")) {
      fmt::print("engine_bench: what the worker costs\n");
      return 0;
    }
    roce::bench::run_all(seconds, only, most_qps, messages);
  } catch (const std::exception& error) {
    fmt::print(stderr, "engine_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
