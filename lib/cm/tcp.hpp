// TCP carriers: thin, non-blocking sockets under a perftest Session, for a thread that also turns a
// worker. Nothing here blocks, waits or starts a thread; call step() about once a millisecond.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "cm/perftest/session.hpp"

namespace roce::cm {

/// A file descriptor that closes itself.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

/// Accepts connections on a TCP port of all addresses, IPv4 and IPv6.
class TcpListener {
 public:
  /// port: 0 takes a free one. Fails with the system's reason, e.g. when the port is taken.
  [[nodiscard]] static Result<TcpListener> open(std::uint16_t port);
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// The next waiting connection, if any.
  [[nodiscard]] std::optional<Socket> accept();

 private:
  TcpListener(Socket socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}
  Socket socket_;
  std::uint16_t port_;
};

/// Connects to a server that may not be listening yet: tries again until a limit.
class TcpConnector {
 public:
  /// host: name or address. Resolves at once (which may take the resolver's time).
  [[nodiscard]] static Result<TcpConnector> open(const std::string& host, std::uint16_t port,
                                                 Duration limit = Duration::seconds(5));
  /// The connected socket once there is one; nothing while it tries; an error after the limit.
  [[nodiscard]] Result<std::optional<Socket>> step(Instant now);

 private:
  struct Candidate {
    std::vector<std::byte> address;  ///< a sockaddr
    int family;
  };
  TcpConnector() = default;
  void begin(Instant now);

  std::string place_;
  Duration limit_{};
  std::vector<Candidate> candidates_;
  std::size_t at_ = 0;
  Socket socket_;
  std::optional<Instant> first_try_;
  Instant next_try_;
  Instant turn_ends_ = Instant::never();  ///< with several addresses, each gets a turn
  int error_ = 0;
};

/// One connection that carries a session.
class TcpCarrier {
 public:
  /// How long a peer may take for its next message where the exchange waits for it: for the first
  /// one, and for each later one (perftest fills its buffers meanwhile, which takes a slow host
  /// long). During a run it may be silent for ever; a connection that is closed or reset ends the
  /// session at once.
  static constexpr Duration kOpeningLimit = Duration::seconds(10);
  static constexpr Duration kMessageLimit = Duration::seconds(60);

  TcpCarrier(Socket socket, perftest::SessionConfig config);

  [[nodiscard]] perftest::Session& session() { return session_; }
  [[nodiscard]] const perftest::Session& session() const { return session_; }
  /// "198.18.0.2:40312"
  [[nodiscard]] const std::string& peer() const { return peer_; }

  /// Moves bytes both ways as far as they go, and keeps the time limits.
  void step(Instant now);
  /// Nothing is left to move: the session is DONE and sent, or FAILED.
  [[nodiscard]] bool finished() const;

 private:
  void receive();
  void send();
  void check_silence(Instant now);

  Socket socket_;
  perftest::Session session_;
  std::string peer_;
  std::optional<Instant> waiting_since_;
  std::uint64_t messages_seen_ = 0;
  bool ended_ = false;  ///< the peer sends no more
};

}  // namespace roce::cm
