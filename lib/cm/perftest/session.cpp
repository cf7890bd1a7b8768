#include "cm/perftest/session.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/check.hpp"
#include "wire/endian.hpp"

namespace roce::cm::perftest {
namespace {

/// No peer sends that much ahead in lock-step; more is not perftest.
constexpr std::size_t kMostInput = 4096;

/// From 6.17 on perftest no longer sends "done" behind the last swap.
bool sends_done(std::string_view version) {
  double number = 0;
  std::from_chars(version.data(), version.data() + version.size(), number);
  return number < 6.17;
}

std::array<std::byte, kSystemWordBytes> system_word(std::uint32_t value) {
  wire::Be32 word;
  word.set(value);
  return std::bit_cast<std::array<std::byte, kSystemWordBytes>>(word);
}

}  // namespace

Session::Session(SessionConfig config) : config_(std::move(config)), mtu_(config_.mtu) {
  ROCE_CHECK(config_.qps > 0 || config_.role == Role::SERVER);
  ROCE_CHECK(config_.sizes > 0);
  script_opening();
  advance();
}

// --- carrier ---

void Session::on_bytes(std::span<const std::byte> bytes) {
  if (phase_ == Phase::DONE || phase_ == Phase::FAILED) return;
  if (input_.size() + bytes.size() > kMostInput)
    return fail({"perftest exchange", "the peer sends without waiting for answers",
                 "check that a perftest program is at the other end"});
  input_.insert(input_.end(), bytes.begin(), bytes.end());
  advance();
}

void Session::on_closed() {
  if (phase_ == Phase::DONE || phase_ == Phase::FAILED) return;
  closed_ = true;
  // In a run its last messages may be here already, and the WRITE ping-pong ends without any.
  if (phase_ == Phase::RUN && (!input_.empty() || config_.shape == Shape::WRITE_LAT)) return;
  output_.clear();
  output_sent_ = 0;
  wait_for_peer();
}

void Session::wait_for_peer() {
  wait(Phase::EXCHANGE);
  if (closed_)
    fail({"perftest exchange", "the peer closed the connection before the test was over",
          "look at its output; both ends need the same test and the same options"});
}

std::span<const std::byte> Session::output() const {
  if (output_.empty()) return {};
  return std::span{output_.front()}.subspan(output_sent_);
}

void Session::consume_output(std::size_t n) {
  output_sent_ += n;
  if (!output_.empty() && output_sent_ >= output_.front().size()) {
    output_.erase(output_.begin());
    output_sent_ = 0;
  }
}

// --- application ---

void Session::supply_keys(const Keys& keys) {
  ours_.push_back(keys);
  if (phase_ == Phase::NEED_KEYS) advance();
}

void Session::set_sizes(std::uint32_t sizes) {
  ROCE_CHECK(phase_ == Phase::CONNECT && sizes > 0);
  config_.sizes = sizes;
}

void Session::connected() {
  ROCE_CHECK(phase_ == Phase::CONNECT);
  answered_ = true;
  script_rest();
  advance();
}

void Session::receives_posted() {
  ROCE_CHECK(phase_ == Phase::POST_RECEIVES);
  answered_ = true;
  advance();
}

void Session::run_done(const BandwidthReport& report) {
  ROCE_CHECK(phase_ == Phase::RUN && step() == Step::RUN);
  our_report_ = report;
  answered_ = true;
  advance();
}

bool Session::waits_for_peer() const {
  return phase_ == Phase::RUN && step() == Step::PASSIVE_RUN;
}

void Session::fail(Error error) {
  error_ = std::move(error);
  wait(Phase::FAILED);
}

// --- the script ---

void Session::advance() {
  while (phase_ != Phase::FAILED && phase_ != Phase::DONE && go()) {
  }
}

void Session::next() {
  ++at_;
  done_ = 0;
  wrote_ = answered_ = false;
  wait(Phase::EXCHANGE);
}

bool Session::go() {
  switch (step()) {
    case Step::FIRST_KEYS:
      return swap_first_keys();
    case Step::CONNECT:
    case Step::POST_RECEIVES:
    case Step::RUN:
      if (!answered_) {
        wait(step() == Step::CONNECT         ? Phase::CONNECT
             : step() == Step::POST_RECEIVES ? Phase::POST_RECEIVES
                                             : Phase::RUN);
        return false;
      }
      if (step() == Step::RUN) ++run_;
      next();
      return true;
    case Step::PASSIVE_RUN:
      wait(Phase::RUN);
      if (input_.empty()) return false;
      ++run_;
      next();
      return true;
    case Step::DONE_TAIL:
      if (sends_done(config_.version)) put(std::as_bytes(std::span{kDone}));
      next();
      return true;
    case Step::END:
      wait(Phase::DONE);
      return false;
    default:
      return swap();
  }
}

std::size_t Session::message_bytes() const {
  switch (step()) {
    case Step::VERSION:
      return kVersionBytes;
    case Step::SYSTEM_CYCLE:
    case Step::SYSTEM_LINE:
      return kSystemWordBytes;
    case Step::MTU:
      return kMtuBytes;
    case Step::REPORT:
      return kReportWordBytes;
    default:
      return kKeysBytes;
  }
}

bool Session::swap() {
  const std::uint32_t swaps = step() == Step::KEYS     ? static_cast<std::uint32_t>(ours_.size())
                              : step() == Step::REPORT ? kReportWords
                                                       : 1;
  if (config_.role == Role::CLIENT && !wrote_) {
    put_message();
    wrote_ = true;
  }
  const std::size_t size = message_bytes();
  if (input_.size() < size) {
    wait_for_peer();
    return false;
  }
  if (!take_message(std::span{input_}.first(size))) return false;
  drop_input(size);
  if (config_.role == Role::SERVER) put_message();
  wrote_ = false;
  if (++done_ == swaps) {
    if (step() == Step::REPORT) peer_report_ = report_in_;
    next();
  }
  return true;
}

/// The first round, in which a server's keys come into being one by one.
bool Session::swap_first_keys() {
  const bool client = config_.role == Role::CLIENT;
  if (!client && theirs_.size() == done_) {
    if (input_.size() < kKeysBytes) {
      wait_for_peer();
      return false;
    }
    const auto keys = read_keys(std::span{input_}.first(kKeysBytes));
    if (!keys) return false;
    // The client's first QP again: that was the last one, and this message opens the next round.
    if (config_.qps == 0 && done_ > 0 && keys->qpn == theirs_[0].qpn &&
        keys->psn == theirs_[0].psn) {
      config_.qps = done_;
      next();
      return true;
    }
    theirs_.push_back(*keys);
    drop_input(kKeysBytes);
  }
  if (ours_.size() <= done_) {
    wait(Phase::NEED_KEYS);
    return false;
  }
  if (!client || !wrote_) put(encode_keys(ours_[done_]));
  wrote_ = client;
  if (client) {
    if (input_.size() < kKeysBytes) {
      wait_for_peer();
      return false;
    }
    if (!take_keys(std::span{input_}.first(kKeysBytes), done_)) return false;
    drop_input(kKeysBytes);
    wrote_ = false;
  }
  if (++done_ == config_.qps) next();
  return true;
}

void Session::put_message() {
  switch (step()) {
    case Step::VERSION:
      return put(encode_version(config_.version));
    case Step::SYSTEM_CYCLE:
      return put(system_word(kCycleBufferBytes));
    case Step::SYSTEM_LINE:
      return put(system_word(kCacheLineBytes));
    case Step::MTU:
      return put(encode_mtu(config_.mtu));
    case Step::REPORT:
      return put(encode_report_word(our_report_, done_));
    case Step::KEYS:
      return put(encode_keys(ours_[done_]));
    default:
      return put(encode_keys(ours_[0]));
  }
}

bool Session::take_message(std::span<const std::byte> bytes) {
  switch (step()) {
    case Step::VERSION: {
      auto version = decode_version(bytes.first<kVersionBytes>());
      if (version)
        peer_version_ = *version;
      else
        fail(version.error());
      return version.has_value();
    }
    case Step::MTU: {
      const auto mtu = decode_mtu(bytes.first<kMtuBytes>());
      if (mtu)
        mtu_ = std::min(config_.mtu, *mtu);
      else
        fail(mtu.error());
      return mtu.has_value();
    }
    // The ring's shape is told by both and taken as the larger; ours is the largest that is known.
    case Step::SYSTEM_CYCLE:
    case Step::SYSTEM_LINE:
      return true;
    case Step::REPORT:
      decode_report_word(bytes.first<kReportWordBytes>(), done_, report_in_);
      return true;
    case Step::KEYS:
      return take_keys(bytes, done_);
    default:
      return take_keys(bytes, 0);
  }
}

std::optional<Keys> Session::read_keys(std::span<const std::byte> bytes) {
  auto keys = decode_keys(bytes.first<kKeysBytes>());
  if (keys) return *keys;
  fail(std::move(keys.error()));
  return std::nullopt;
}

/// Later rounds repeat what the first one said; only their form is checked.
bool Session::take_keys(std::span<const std::byte> bytes, std::uint32_t index) {
  const auto keys = read_keys(bytes);
  if (!keys) return false;
  if (index == theirs_.size()) theirs_.push_back(*keys);
  return true;
}

void Session::drop_input(std::size_t n) {
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(n));
  ++messages_;
}

void Session::put(std::span<const std::byte> bytes) {
  output_.emplace_back(bytes.begin(), bytes.end());
}

}  // namespace roce::cm::perftest
