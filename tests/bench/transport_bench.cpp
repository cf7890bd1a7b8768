// What a QP costs: RC WRITEs of one packet, requester and responder alone and both together,
// without worker and port. Compare with bare_loop of the same run.
#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <vector>

#include "bench/bench.hpp"
#include "transport/qp.hpp"
#include "wire/build.hpp"
#include "wire/packet.hpp"
#include "wire/syndrome.hpp"

namespace roce::bench {
namespace {

using namespace roce::wire;

constexpr std::size_t kBurst = 32;
constexpr std::uint8_t kAccess = verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE;
constexpr Instant kNow = Instant::from_ns(1'000'000);

struct Frame {
  std::array<std::byte, kMaxFrameBytes> bytes;
  std::size_t length = 0;
  [[nodiscard]] std::span<const std::byte> view() const { return {bytes.data(), length}; }
};
using Burst = std::array<Frame, kBurst>;

/// A connected QP with memory of its own; index 0 and 1 face each other.
class Host {
 public:
  explicit Host(unsigned index) : index_(index), pd_(memory_.alloc_pd()) {
    mr_ = memory_.reg_mr(pd_, buffer_, 0x10'0000, kAccess).value();
    verbs::QpInitAttributes init;
    init.pd = pd_;
    init.send_cq = init.recv_cq = &cq_;
    init.cap = {2 * kBurst, 1, 1, 1, 0};
    qp_ = std::make_unique<transport::Qp>(Qpn{0x100 + index}, init,
                                          transport::Environment{memory_, counters_});
    verbs::QpAttributes attributes;
    attributes.qp_state = verbs::QpState::INIT;
    attributes.qp_access_flags = verbs::ACCESS_REMOTE_WRITE;
    modify(attributes);
    modify(rtr());
    modify(rts());
  }

  [[nodiscard]] PathAttributes path() const {
    PathAttributes path;
    path.source = IpAddress::v4(198, 18, 0, static_cast<std::uint8_t>(1 + index_));
    path.destination = IpAddress::v4(198, 18, 0, static_cast<std::uint8_t>(2 - index_));
    return path;
  }
  /// Posts a burst of WRITEs to peer, of which the last is signalled.
  void post_writes(const Host& peer, std::uint32_t bytes) {
    const verbs::Sge list[] = {{mr_.addr, bytes, mr_.lkey}};
    verbs::SendWr wr;
    wr.opcode = verbs::WrOpcode::RDMA_WRITE;
    wr.sg_list = list;
    wr.remote_addr = peer.mr_.addr;
    wr.rkey = peer.mr_.rkey;
    for (std::size_t i = 0; i < kBurst; ++i) {
      wr.send_flags = i + 1 == kBurst ? verbs::SEND_SIGNALED : 0;
      if (qp_->post_send(wr) != transport::PostResult::OK) throw std::runtime_error("not posted");
    }
  }
  /// Builds what the QP wants to send; returns how many frames.
  std::size_t pull(Burst& burst) {
    std::size_t n = 0;
    while (n < kBurst && qp_->wants_tx()) {
      burst[n].length = qp_->build_next(kNow, burst[n].bytes, effects_);
      n += burst[n].length != 0 ? 1u : 0u;
    }
    return n;
  }
  void take(std::span<const Frame> frames) {
    for (const Frame& frame : frames) {
      Packet packet;
      if (parse(frame.view(), IcrcCheck::VERIFY, packet) != Verdict::ROCE)
        throw std::runtime_error("a frame was refused");
      qp_->on_packet(kNow, packet, effects_);
    }
  }
  /// Takes the burst's completion.
  void complete() {
    verbs::Wc wc;
    if (cq_.poll({&wc, 1}) != 1 || wc.status != verbs::WcStatus::SUCCESS)
      throw std::runtime_error("no completion");
  }

 private:
  void modify(const verbs::QpAttributes& attributes) {
    if (const auto done = qp_->modify(attributes, effects_); !done)
      throw std::runtime_error(done.error().to_string());
  }
  [[nodiscard]] verbs::QpAttributes rtr() const {
    verbs::QpAttributes q;
    q.qp_state = verbs::QpState::RTR;
    q.path_mtu = verbs::Mtu::MTU_4096;
    q.path = path();
    q.dest_qp_num = Qpn{0x101 - index_};
    q.rq_psn = Psn{0};
    q.max_dest_rd_atomic = 1;
    q.min_rnr_timer = 12;
    return q;
  }
  [[nodiscard]] static verbs::QpAttributes rts() {
    verbs::QpAttributes q;
    q.qp_state = verbs::QpState::RTS;
    q.sq_psn = Psn{0};
    q.max_rd_atomic = 1;
    q.timeout = 14;
    q.retry_cnt = 7;
    q.rnr_retry = 7;
    return q;
  }

  unsigned index_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(1 << 16);
  verbs::MemoryTable memory_{8};
  transport::Counters counters_;
  transport::Effects effects_;
  verbs::CompletionQueue cq_{64};
  verbs::Pd pd_;
  verbs::MemoryRegion mr_;
  std::unique_ptr<transport::Qp> qp_;
};

/// An ACK from host 1 to host 0 of everything up to psn.
void build_ack(Frame& frame, const PathHeaders& path, Psn psn) {
  FrameBuilder ack(frame.bytes, path,
                   {.opcode = Opcode::RC_ACKNOWLEDGE, .dest_qpn = Qpn{0x100}, .psn = psn}, 0);
  ack.aeth().syndrome = ack_syndrome();
  ack.aeth().msn.set(psn.value() + 1);
  frame.length = ack.finish();
}

/// Runs step once per iteration; what throws ends the benchmark with its message.
template <class Step>
void run(benchmark::State& state, Step step) {
  try {
    for (auto _ : state) step();
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
  count_packets(state, kBurst, static_cast<std::size_t>(state.range(0)));
}

/// Posting, building and completing; one ACK per burst.
void requester(benchmark::State& state) {
  Host a{0}, b{1};
  const PathHeaders back = make_path_headers(b.path());
  const auto burst = std::make_unique<Burst>();
  Frame ack;
  Psn psn{0};
  run(state, [&] {
    a.post_writes(b, static_cast<std::uint32_t>(state.range(0)));
    if (a.pull(*burst) != kBurst) throw std::runtime_error("frames are missing");
    psn += kBurst;
    build_ack(ack, back, psn - 1);
    a.take({&ack, 1});
    a.complete();
  });
}

/// Parsing with ICRC, placing, and one ACK per burst; the frames are made outside the measured
/// time.
void responder(benchmark::State& state) {
  Host a{0}, b{1};
  const auto burst = std::make_unique<Burst>();
  const auto answers = std::make_unique<Burst>();
  run(state, [&] {
    a.post_writes(b, static_cast<std::uint32_t>(state.range(0)));
    if (a.pull(*burst) != kBurst) throw std::runtime_error("frames are missing");
    const auto start = std::chrono::steady_clock::now();
    b.take(*burst);
    const std::size_t n = b.pull(*answers);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(took.count());
    a.take(std::span{*answers}.first(n));
    a.complete();
  });
}

/// Both ends on one core.
void pair(benchmark::State& state) {
  Host a{0}, b{1};
  const auto burst = std::make_unique<Burst>();
  const auto answers = std::make_unique<Burst>();
  run(state, [&] {
    a.post_writes(b, static_cast<std::uint32_t>(state.range(0)));
    b.take(std::span{*burst}.first(a.pull(*burst)));
    a.take(std::span{*answers}.first(b.pull(*answers)));
    a.complete();
  });
}

BENCHMARK(requester)->Apply(payload_sizes);
BENCHMARK(responder)->Apply(payload_sizes)->UseManualTime();
BENCHMARK(pair)->Apply(payload_sizes);

}  // namespace
}  // namespace roce::bench
