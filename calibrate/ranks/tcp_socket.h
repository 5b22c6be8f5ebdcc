// TCP sockets for the store: open one to listen, connect with a deadline, send and receive frames (a 4-byte length, then bytes).
#pragma once

#include <chrono>
#include <string>

#include "model/base/result.h"

namespace ringside {

/// Owns a file descriptor.
class Socket {
public:
    Socket() = default;
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
    Socket& operator=(Socket&& other) noexcept;
    ~Socket();

    int get() const { return descriptor_; }
    bool open() const { return descriptor_ >= 0; }
    int release();

private:
    int descriptor_ = -1;
};

using Deadline = std::chrono::steady_clock::time_point;

/// Listens at `port` (0: any free one): on loopback only when `address` is a loopback one, on all interfaces otherwise.
/// Fails (runtime failure) when the port is in use, saying what to do.
Result<Socket> listenAt(const std::string& address, int port);
int portOf(const Socket& listening);

/// Tries again until somebody answers or the deadline has passed.
Result<Socket> connectTo(const std::string& address, int port, Deadline deadline);

/// The two ends of a connection, as digits; empty when unknown.
std::string localAddressOf(const Socket& connected);
bool isLoopbackAddress(const std::string& digits);

inline constexpr std::size_t kLargestFrame = 16 << 20;
Result<void> sendFrame(const Socket& socket, const std::string& bytes);
Result<std::string> receiveFrame(const Socket& socket, Deadline deadline);

}  // namespace ringside
