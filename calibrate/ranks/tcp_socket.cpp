#include "calibrate/ranks/tcp_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ringside {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// All addresses of a name; `reason` says why there are none.
Addresses resolve(const std::string& address, int port, int flags, std::string& reason) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    const int code = ::getaddrinfo(address.empty() ? nullptr : address.c_str(), std::to_string(port).c_str(), &hints, &list);
    if (code != 0) {
        reason = ::gai_strerror(code);
        list = nullptr;
    }
    return {list, &::freeaddrinfo};
}

std::string digitsOf(const sockaddr_storage& address, socklen_t length) {
    std::array<char, NI_MAXHOST> host{};
    const auto* plain = reinterpret_cast<const sockaddr*>(&address);
    if (::getnameinfo(plain, length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
    const std::string digits = host.data();
    constexpr std::string_view mapped = "::ffff:";  // an IPv4 peer of an IPv6 socket
    return digits.starts_with(mapped) && digits.find('.') != std::string::npos ? digits.substr(mapped.size()) : digits;
}

int millisecondsUntil(Deadline deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

/// Whether the socket was ready for `events` before the deadline.
bool waitFor(int descriptor, short events, Deadline deadline) {
    for (;;) {
        pollfd entry = {descriptor, events, 0};
        const int ready = ::poll(&entry, 1, millisecondsUntil(deadline));
        if (ready > 0) return true;
        if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return false;
        if (ready < 0 && errno != EINTR) return false;
    }
}

/// One attempt; the reason when it did not succeed.
std::string tryConnect(const addrinfo& to, Deadline deadline, Socket& connected) {
    Socket socket(::socket(to.ai_family, to.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to.ai_protocol));
    if (!socket.open()) return std::strerror(errno);
    if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) != 0) {
        if (errno != EINPROGRESS) return std::strerror(errno);
        if (!waitFor(socket.get(), POLLOUT, deadline)) return "no answer";
        int error = 0;
        socklen_t length = sizeof(error);
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
        if (error != 0) return std::strerror(error);
    }
    // A port that nobody listens at may be given to the very socket that knocks there: it then talks to itself.
    sockaddr_storage self{}, peer{};
    socklen_t selfLength = sizeof(self), peerLength = sizeof(peer);
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&self), &selfLength) != 0 ||
        ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &peerLength) != 0)
        return std::strerror(errno);
    if (selfLength == peerLength && std::memcmp(&self, &peer, selfLength) == 0) return "connection refused";
    ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    connected = std::move(socket);
    return {};
}

tl::unexpected<Error> lost(const std::string& reason) {
    return failure(ErrorCode::RuntimeFailure, "store", fmt::format("the connection to rank 0's store broke: {}; did rank 0 end?", reason));
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
    if (this != &other) {
        if (descriptor_ >= 0) ::close(descriptor_);
        descriptor_ = other.release();
    }
    return *this;
}

Socket::~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

int Socket::release() { return std::exchange(descriptor_, -1); }

bool isLoopbackAddress(const std::string& digits) { return digits.starts_with("127.") || digits == "::1" || digits == "localhost"; }

Result<Socket> listenAt(const std::string& address, int port) {
    const auto failed = [&](const std::string& reason) {
        return failure(ErrorCode::RuntimeFailure, "MASTER_PORT", fmt::format("cannot listen at port {}: {}", port, reason));
    };
    std::string reason;
    const Addresses named = resolve(address, port, 0, reason);
    if (!named) {
        return failure(ErrorCode::RuntimeFailure, "MASTER_ADDR",
                       fmt::format("found '{}', which cannot be resolved: {}; set it to the machine of rank 0", address, reason));
    }
    // The name of this machine may stand for a loopback address in its own tables and for another one elsewhere.
    sockaddr_storage at{};
    std::memcpy(&at, named->ai_addr, named->ai_addrlen);
    if (!isLoopbackAddress(address)) {
        if (named->ai_family == AF_INET) reinterpret_cast<sockaddr_in&>(at).sin_addr.s_addr = htonl(INADDR_ANY);
        else reinterpret_cast<sockaddr_in6&>(at).sin6_addr = in6addr_any;
    }
    Socket socket(::socket(named->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.open()) return failed(std::strerror(errno));
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), named->ai_addrlen) != 0 || ::listen(socket.get(), 1024) != 0) {
        if (errno == EADDRINUSE) {
            return failure(ErrorCode::RuntimeFailure, "MASTER_PORT",
                           fmt::format("port {} is in use on this machine, perhaps by another run; set MASTER_PORT or --port to a free one", port));
        }
        return failed(std::strerror(errno));
    }
    return socket;
}

int portOf(const Socket& listening) {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    if (::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
    return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
}

Result<Socket> connectTo(const std::string& address, int port, Deadline deadline) {
    std::string reason;
    std::chrono::milliseconds pause(5);
    for (;;) {
        // A name may become known, and rank 0 may come, while we try.
        const Addresses addresses = resolve(address, port, 0, reason);
        for (const addrinfo* to = addresses.get(); to != nullptr; to = to->ai_next) {
            Socket connected;
            reason = tryConnect(*to, deadline, connected);
            if (connected.open()) return connected;
        }
        if (std::chrono::steady_clock::now() + pause >= deadline) break;
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, std::chrono::milliseconds(200));
    }
    return failure(ErrorCode::RuntimeFailure, "MASTER_ADDR",
                   fmt::format("rank 0 does not answer at {}:{} ({}); check that it was started, that MASTER_ADDR names its machine, and that no "
                               "firewall closes the port",
                               address, port, reason));
}

std::string localAddressOf(const Socket& connected) {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    if (::getsockname(connected.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
    return digitsOf(address, length);
}

Result<void> sendFrame(const Socket& socket, const std::string& bytes) {
    const auto length = static_cast<std::uint32_t>(bytes.size());
    std::string frame(sizeof(length), '\0');
    std::memcpy(frame.data(), &length, sizeof(length));
    frame += bytes;
    std::size_t sent = 0;
    while (sent < frame.size()) {
        const ssize_t count = ::send(socket.get(), frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return lost(std::strerror(errno));
        sent += static_cast<std::size_t>(count);
    }
    return {};
}

Result<std::string> receiveFrame(const Socket& socket, Deadline deadline) {
    std::string bytes(sizeof(std::uint32_t), '\0');
    std::size_t received = 0;
    bool haveLength = false;
    while (!haveLength || received < bytes.size()) {
        if (!waitFor(socket.get(), POLLIN, deadline)) return lost("no answer in time");
        const ssize_t count = ::recv(socket.get(), bytes.data() + received, bytes.size() - received, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return lost(std::strerror(errno));
        if (count == 0) return lost("it was closed");
        received += static_cast<std::size_t>(count);
        if (!haveLength && received == bytes.size()) {
            std::uint32_t length = 0;
            std::memcpy(&length, bytes.data(), sizeof(length));
            if (length > kLargestFrame) return lost("what answers there is not Ringside");
            haveLength = true;
            bytes.assign(length, '\0');
            received = 0;
        }
    }
    return bytes;
}

}  // namespace ringside
