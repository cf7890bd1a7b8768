// Generator: a host without a worker that sends one kind of frame as fast as its NIC takes them,
// and counts what comes.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "fabric/network.hpp"
#include "fabric/raw.hpp"
#include "wire/headers.hpp"

namespace roce::test {

class Generator final : public fabric::HostApplication {
 public:
  struct Options {
    RawFrame frame{};
    /// Sends for on_time, then rests for off_time, and so on from start. on_time 0: only receives.
    Duration on_time = Duration::seconds(1000);
    Duration off_time{};
    Instant start{};
    std::uint64_t most = ~std::uint64_t{0};  ///< frames in all
  };

  Generator(fabric::Network& network, fabric::HostId host, fabric::HostId to,
            const Options& options)
      : port_(network.host_port(host)),
        options_(options),
        frame_(make_frame(host, to, options.frame)),
        sequence_at_(frame_.size() < 64 ? 42 : (options.frame.pcp < 8 ? 46 : 42)) {
    network.attach(host, *this);
  }

  bool step(Instant now) override {
    std::array<engine::Frame, engine::kBurst> burst;
    while (const std::size_t n = port_.rx_burst(now, burst)) {
      received_ += n;
      for (std::size_t i = 0; i < n; ++i) received_bytes_ += burst[i].length;
      port_.rx_release({burst.data(), n});
    }
    if (!sending(now)) return false;
    const std::size_t wanted = std::min<std::uint64_t>(burst.size(), options_.most - sent_);
    const std::size_t n = port_.tx_reserve(std::span(burst).first(wanted));
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(burst[i].data, frame_.data(), frame_.size());
      wire::view_as<wire::Be32>(burst[i].data + sequence_at_)
          ->set(static_cast<std::uint32_t>(sent_++));
      burst[i].length = static_cast<std::uint32_t>(frame_.size());
    }
    return n > 0 && port_.tx_burst(now, {burst.data(), n}) > 0;
  }

  Instant next_step() const override { return next_; }

  [[nodiscard]] std::uint64_t sent() const { return sent_; }
  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] std::uint64_t received_bytes() const { return received_bytes_; }

 private:
  /// Whether it is time to send; notes when that changes.
  bool sending(Instant now) {
    next_ = Instant::never();
    if (options_.on_time <= Duration{} || sent_ >= options_.most) return false;
    if (now < options_.start) {
      next_ = options_.start;
      return false;
    }
    const std::int64_t period = (options_.on_time + options_.off_time).ns();
    const std::int64_t phase = (now - options_.start).ns() % period;
    const bool on = phase < options_.on_time.ns();
    next_ = now + Duration::nanoseconds((on ? options_.on_time.ns() : period) - phase);
    return on;
  }

  engine::PacketIo& port_;
  Options options_;
  std::vector<std::byte> frame_;
  std::size_t sequence_at_;
  std::uint64_t sent_ = 0, received_ = 0, received_bytes_ = 0;
  Instant next_ = Instant::never();
};

}  // namespace roce::test
