#include "cm/tcp.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace roce::cm {
namespace {

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

std::string system_text(int error) {
  return std::strerror(error);
}

std::string name_of_peer(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char host[NI_MAXHOST], service[NI_MAXSERV];
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof host, service,
                    sizeof service, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "unknown peer";
  constexpr std::string_view kMapped = "::ffff:";  // an IPv4 client on a socket of both families
  const std::string_view name{host};
  if (name.starts_with(kMapped) && name.find('.') != name.npos)
    return std::string{name.substr(kMapped.size())} + ":" + service;
  return (name.find(':') == name.npos ? std::string{name} : "[" + std::string{name} + "]") + ":" +
         service;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}
Socket::~Socket() {
  close();
}
void Socket::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

// --- TcpListener ---

Result<TcpListener> TcpListener::open(std::uint16_t port) {
  const std::string place = "TCP port " + std::to_string(port);
  // One socket for both families; without IPv6 in the kernel, IPv4 alone.
  Socket socket{::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  sockaddr_storage address{};
  socklen_t length = 0;
  if (socket.open()) {
    set_option(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    length = sizeof v6;
  } else {
    socket = Socket{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    length = sizeof v4;
  }
  if (!socket.open()) return failure(place, system_text(errno));
  set_option(socket.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(socket.fd(), 64) != 0)
    return failure(place, system_text(errno),
                   errno == EADDRINUSE ? "end the program that holds it or choose another with -p"
                                       : "choose another with -p");
  ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &length);
  // The port stands at the same place in both families.
  const std::uint16_t bound = ntohs(reinterpret_cast<sockaddr_in&>(address).sin_port);
  return TcpListener{std::move(socket), bound};
}

std::optional<Socket> TcpListener::accept() {
  Socket socket{::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
  if (!socket.open()) return std::nullopt;
  return socket;
}

// --- TcpConnector ---

Result<TcpConnector> TcpConnector::open(const std::string& host, std::uint16_t port,
                                        Duration limit) {
  TcpConnector connector;
  connector.place_ = host + ":" + std::to_string(port);
  connector.limit_ = limit;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    return failure(host, std::string{"cannot be resolved: "} + ::gai_strerror(error),
                   "give the server's address");
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    const auto* bytes = reinterpret_cast<const std::byte*>(info->ai_addr);
    connector.candidates_.push_back({{bytes, bytes + info->ai_addrlen}, info->ai_family});
  }
  ::freeaddrinfo(found);
  return connector;
}

void TcpConnector::begin(Instant now) {
  constexpr Duration kPause = Duration::milliseconds(100);
  constexpr Duration kTurn = Duration::seconds(1);
  turn_ends_ = candidates_.size() == 1 ? Instant::never() : now + kTurn;
  const Candidate& candidate = candidates_[at_++ % candidates_.size()];
  next_try_ = now + kPause;
  socket_ = Socket{::socket(candidate.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!socket_.open()) {
    error_ = errno;
    return;
  }
  if (::connect(socket_.fd(), reinterpret_cast<const sockaddr*>(candidate.address.data()),
                static_cast<socklen_t>(candidate.address.size())) != 0 &&
      errno != EINPROGRESS) {
    error_ = errno;
    socket_.close();
  }
}

Result<std::optional<Socket>> TcpConnector::step(Instant now) {
  if (!first_try_) first_try_ = next_try_ = now;
  if (socket_.open()) {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    sockaddr_storage peer{};
    length = sizeof peer;
    if (error != 0) {
      error_ = error;
      socket_.close();
    } else if (::getpeername(socket_.fd(), reinterpret_cast<sockaddr*>(&peer), &length) == 0) {
      return std::optional<Socket>{std::move(socket_)};
    }
  }
  if (now - *first_try_ > limit_)
    return failure(place_, "no connection: " + (error_ == 0 ? "no answer" : system_text(error_)),
                   "start the server first, and check address and -p");
  if (now >= turn_ends_) socket_.close();
  if (!socket_.open() && now >= next_try_) begin(now);
  return std::optional<Socket>{};
}

// --- TcpCarrier ---

TcpCarrier::TcpCarrier(Socket socket, perftest::SessionConfig config)
    : socket_(std::move(socket)), session_(std::move(config)), peer_(name_of_peer(socket_.fd())) {
  set_option(socket_.fd(), IPPROTO_TCP, TCP_NODELAY, 1);
  // A host that has gone without a word is noticed within a minute, in a run too.
  set_option(socket_.fd(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket_.fd(), IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(socket_.fd(), IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket_.fd(), IPPROTO_TCP, TCP_KEEPCNT, 5);
}

bool TcpCarrier::finished() const {
  const auto phase = session_.phase();
  return phase == perftest::Phase::FAILED ||
         (phase == perftest::Phase::DONE && (session_.output().empty() || !socket_.open()));
}

void TcpCarrier::step(Instant now) {
  if (socket_.open() && !finished()) {
    send();
    receive();
    send();
  }
  check_silence(now);
}

/// At most a few buffers a step: a peer that floods must not hold the thread.
void TcpCarrier::receive() {
  constexpr int kMostBuffers = 4;
  std::array<std::byte, 1024> buffer;
  for (int i = 0; i < kMostBuffers && socket_.open() && !ended_ && !finished(); ++i) {
    const ssize_t n = ::recv(socket_.fd(), buffer.data(), buffer.size(), 0);
    if (n > 0) {
      session_.on_bytes({buffer.data(), static_cast<std::size_t>(n)});
      continue;
    }
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0 && errno == EINTR) continue;
    // At its end in order (n == 0) it may still read what is to be sent.
    ended_ = true;
    session_.on_closed();
    if (n < 0) socket_.close();
  }
}

void TcpCarrier::send() {
  while (socket_.open() && !session_.output().empty()) {
    const auto bytes = session_.output();
    const ssize_t n = ::send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      session_.consume_output(static_cast<std::size_t>(n));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return;
    session_.on_closed();
    socket_.close();
  }
}

/// Where the session waits for the peer, or the peer does not take what it is sent; the
/// application's own time does not count. Single bytes are no progress, whole messages are.
void TcpCarrier::check_silence(Instant now) {
  const auto phase = session_.phase();
  const bool waits = phase == perftest::Phase::EXCHANGE || !session_.output().empty();
  if (!waits || finished() || session_.messages() != messages_seen_) {
    messages_seen_ = session_.messages();
    waiting_since_.reset();
    return;
  }
  if (!waiting_since_) waiting_since_ = now;
  const Duration limit = messages_seen_ == 0 ? kOpeningLimit : kMessageLimit;
  if (now - *waiting_since_ < limit) return;
  if (phase == perftest::Phase::DONE) return socket_.close();  // the rest interests nobody
  session_.fail({peer_,
                 "the peer has been silent for " + std::to_string(static_cast<int>(limit.s())) +
                     " s in the exchange",
                 "check that it runs the same test with the same options"});
}

}  // namespace roce::cm
