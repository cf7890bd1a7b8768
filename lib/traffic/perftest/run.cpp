#include "traffic/perftest/run.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace roce::traffic::perftest {
namespace {

using cm::perftest::Phase;

/// A system call costs as much as many packets: TCP is looked at that often while data flow.
constexpr Duration kTcpPeriodInRun = Duration::milliseconds(1);
constexpr Duration kTcpPeriod = Duration::microseconds(50);

cm::perftest::Shape shape_of(const Plan& plan) {
  using cm::perftest::Shape;
  if (plan.verb() == Verb::SEND) return plan.is_bw() ? Shape::SEND_BW : Shape::SEND_LAT;
  if (plan.is_bw()) return Shape::ONE_SIDED_BW;
  return plan.verb() == Verb::WRITE ? Shape::WRITE_LAT : Shape::ONE_SIDED_LAT;
}

cm::perftest::SessionConfig session_config(const Plan& plan, std::size_t sizes) {
  cm::perftest::SessionConfig config;
  config.role = plan.role == Role::SERVER ? cm::perftest::Role::SERVER : cm::perftest::Role::CLIENT;
  config.shape = shape_of(plan);
  config.direction = plan.direction == Direction::ONE_WAY ? cm::perftest::Direction::ONE_WAY
                                                          : cm::perftest::Direction::BOTH_WAYS;
  config.measured = plan.until == Until::DURATION ? cm::perftest::Measured::BY_DURATION
                                                  : cm::perftest::Measured::BY_ITERATIONS;
  config.qps = plan.qps;
  config.sizes = static_cast<std::uint32_t>(sizes);
  config.all_sizes = plan.all_sizes == Switch::ON;
  config.mtu = plan.mtu;
  return config;
}

cm::perftest::BandwidthReport report_of(const BandwidthResult& result, RateUnit unit) {
  return {result.size, result.iterations, in_rate_unit(result.peak_bytes_per_s.value_or(0), unit),
          in_rate_unit(result.average_bytes_per_s, unit), result.messages_per_s / 1e6};
}

/// The peer's unit is not told; its message rate and size say the same without one.
BandwidthResult result_of(const cm::perftest::BandwidthReport& report) {
  BandwidthResult result;
  result.size = report.size;
  result.iterations = result.messages = report.iterations;
  result.messages_per_s = report.message_rate * 1e6;
  result.average_bytes_per_s = result.messages_per_s * static_cast<double>(report.size);
  if (report.peak > 0 && report.average > 0)
    result.peak_bytes_per_s = result.average_bytes_per_s * (report.peak / report.average);
  return result;
}

}  // namespace

std::optional<BandwidthResult> SizeResult::shown() const {
  if (!bandwidth) return peer_bandwidth;
  if (!peer_bandwidth) return bandwidth;
  BandwidthResult sum = *bandwidth;
  sum.average_bytes_per_s += peer_bandwidth->average_bytes_per_s;
  sum.messages_per_s += peer_bandwidth->messages_per_s;
  if (sum.peak_bytes_per_s && peer_bandwidth->peak_bytes_per_s)
    *sum.peak_bytes_per_s += *peer_bandwidth->peak_bytes_per_s;
  return sum;
}

Run::Run(engine::Worker& worker, engine::InterfaceId interface, cm::Socket socket,
         const RunConfig& config)
    : worker_(worker),
      interface_(interface),
      config_(config),
      plan_(config.plan),
      sizes_(sizes_of(config.plan)),
      qps_(worker, interface, config.plan,
           config.plan.qps == 0 ? config.most_learnt_qps : config.plan.qps, config.random),
      carrier_(std::move(socket), session_config(config.plan, sizes_.size())) {}

void Run::step(Instant now) {
  if (finished()) return;
  cm::perftest::Session& session = carrier_.session();
  if (now >= next_tcp_) {
    carrier_.step(now);
    next_tcp_ = now + (session.phase() == Phase::RUN ? kTcpPeriodInRun : kTcpPeriod);
  }
  if (!results_.empty()) take_peer_report();
  switch (session.phase()) {
    case Phase::NEED_KEYS:
      return supply_keys();
    case Phase::CONNECT:
      return connect(now);
    case Phase::POST_RECEIVES:
      if (begin_plane()) session.receives_posted();
      return;
    case Phase::RUN:
      return run(now);
    case Phase::DONE:
      if (carrier_.finished()) conclude();
      return;
    case Phase::FAILED:
      // Only the session can have failed by itself: fail() ends the run at once.
      return fail(session.peer_version().empty() ? Cause::PEER_REFUSED : Cause::PEER_VANISHED,
                  session.error());
    case Phase::EXCHANGE:
      return;
  }
}

void Run::supply_keys() {
  if (const auto added = qps_.add_lane(); !added) return fail(Cause::LOCAL, added.error());
  const QpAddress& ours = qps_.lanes().back().ours;
  cm::perftest::Keys keys;
  keys.out_reads = ours.out_reads;
  keys.qpn = ours.qpn;
  keys.psn = ours.psn;
  keys.rkey = ours.rkey;
  keys.vaddr = ours.vaddr;
  keys.gid = ours.gid;
  carrier_.session().supply_keys(keys);
}

std::optional<MacAddress> Run::resolve(Instant now) {
  const IpAddress& gid = carrier_.session().peer_keys().front().gid;
  const IpAddress& ours = qps_.lanes().front().ours.gid;
  if (gid.is_v4() != ours.is_v4()) {
    fail(Cause::LOCAL, {"GID " + gid.to_string(),
                        fmt::format("is of another family than ours, {}", ours.to_string()),
                        "--ipv6 here, or another -x there"});
    return std::nullopt;
  }
  const auto mac = worker_.resolve(interface_, gid, now);
  if (mac) return mac;
  if (!resolving_since_) resolving_since_ = now;
  if (now - *resolving_since_ >= config_.resolve_limit)
    fail(Cause::LOCAL, {"GID " + gid.to_string(), "nobody answers for this address",
                        "see whether the port reaches the peer, and --gateway for other subnets"});
  return std::nullopt;
}

void Run::connect(Instant now) {
  const auto mac = resolve(now);
  if (!mac) return;
  cm::perftest::Session& session = carrier_.session();
  std::vector<QpAddress> peers;
  for (const cm::perftest::Keys& keys : session.peer_keys())
    peers.push_back({keys.qpn, keys.psn, keys.rkey, keys.vaddr,
                     static_cast<std::uint8_t>(std::min<std::uint16_t>(keys.out_reads, 128)),
                     keys.gid});
  plan_.qps = static_cast<std::uint32_t>(peers.size());
  plan_.mtu = session.mtu();
  if (plan_.transport == verbs::QpType::UD)
    for (std::uint64_t& size : sizes_) size = std::min<std::uint64_t>(size, bytes_of(plan_.mtu));
  if (const auto done = qps_.connect(peers, *mac, plan_.mtu); !done)
    return fail(Cause::LOCAL, done.error());
  connected_ = true;
  session.connected();
}

bool Run::begin_plane() {
  plane_ = std::make_unique<DataPlane>(qps_, plan_, sizes_[carrier_.session().run()]);
  if (plane_->prepare() != Step::FAILED) return true;
  fail(Cause::LOCAL, *plane_->failure());
  return false;
}

void Run::run(Instant now) {
  cm::perftest::Session& session = carrier_.session();
  if (session.waits_for_peer()) return;
  if (!plane_ && !begin_plane()) return;
  if (session.peer_is_done()) plane_->peer_ended();
  switch (plane_->step(now)) {
    case Step::RUNNING:
      return;
    case Step::FAILED:
      return fail(plane_->peer_is_silent() ? Cause::PEER_VANISHED : Cause::PEER_REFUSED,
                  *plane_->failure());
    case Step::DONE:
      break;
  }
  end_plane();
  const auto& bandwidth = results_.back().bandwidth;
  session.run_done(bandwidth ? report_of(*bandwidth, config_.unit)
                             : cm::perftest::BandwidthReport{});
  next_tcp_ = now;
}

void Run::end_plane() {
  SizeResult result;
  result.size = sizes_[carrier_.session().run()];
  result.bandwidth = plane_->bandwidth();
  if (result.bandwidth && plan_.until == Until::PEER_ENDS) result.size = result.bandwidth->size;
  result.latency = plane_->latency();
  if (plane_->histogram() != nullptr) result.histogram = *plane_->histogram();
  verdict_.merge(plane_->verdict());
  results_.push_back(std::move(result));
  plane_.reset();
}

void Run::take_peer_report() {
  const auto& report = carrier_.session().peer_report();
  if (!report) return;
  // A one-way client's peer has measured nothing.
  if (plan_.role == Role::CLIENT && plan_.direction == Direction::ONE_WAY) return;
  if (results_.empty()) results_.push_back({.size = report->size});
  // Until the next one has come, the report of the size before still stands.
  SizeResult& last = results_.back();
  if (!last.peer_bandwidth && last.size == report->size) last.peer_bandwidth = result_of(*report);
}

void Run::conclude() {
  take_peer_report();
  check_exposed();
  if (verdict_.passed()) {
    state_ = State::PASSED;
    return;
  }
  fail(Cause::LOCAL, {"data validation", verdict_.to_string(), "see docs/data-validation.md"});
}

void Run::check_exposed() {
  if (!plan_.validates() || !plan_.receives()) return;
  std::optional<std::uint64_t> operations;
  const auto& report = carrier_.session().peer_report();
  if (plan_.is_bw() && report && plan_.until != Until::DURATION) operations = report->iterations;
  if (!plan_.is_bw() && plan_.until == Until::ITERATIONS) operations = plan_.iterations;
  // Who serves any client learns the size from its report.
  const bool told = plan_.until == Until::PEER_ENDS && report && report->size <= sizes_.back();
  DataPlane probe(qps_, plan_, told ? report->size : sizes_.back());
  probe.check_exposed(operations);
  verdict_.merge(probe.verdict());
}

void Run::fail(Cause cause, Error error) {
  if (finished()) return;
  if (plane_) end_plane();
  state_ = State::FAILED;
  cause_ = cause;
  error_ = std::move(error);
  if (carrier_.session().phase() != Phase::FAILED) carrier_.session().fail(error_);
}

void Run::interrupt() {
  fail(Cause::INTERRUPTED, {"", "interrupted", ""});
}

}  // namespace roce::traffic::perftest
