#include "port/dpdk/memif_socket.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace roce::port::dpdk {
namespace {

/// Whether some process accepts connections there.
bool answers(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool connected =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return connected;
}

}  // namespace

Result<MemifServerSocket> MemifServerSocket::prepare(const std::string& path) {
  if (answers(path))
    return failure(path, "another memif server has this socket", "name another socket");
  MemifServerSocket socket(path);
  (void)::unlink(socket.temporary_path().c_str());
  return socket;
}

MemifServerSocket::MemifServerSocket(MemifServerSocket&& other) noexcept
    : path_(std::move(other.path_)), published_(std::exchange(other.published_, false)) {}

MemifServerSocket::~MemifServerSocket() {
  if (published_) (void)::unlink(path_.c_str());
}

Result<void> MemifServerSocket::publish() {
  if (std::rename(temporary_path().c_str(), path_.c_str()) != 0)
    return failure(path_, fmt::format("the socket cannot be put there ({})", std::strerror(errno)),
                   "name a socket in a folder that you may write to");
  published_ = true;
  return {};
}

}  // namespace roce::port::dpdk
