// TcpStoreServer: the thread in rank 0 that holds the keys and answers. A request whose key is not there yet is parked until it is
// set or its time is over, so that nobody polls.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "calibrate/ranks/tcp_socket.h"

namespace ringside {

enum class StoreOp : std::uint8_t { Hello, Set, Get, Has, Add };

/// What a client asks, as it goes over the wire. `number`: milliseconds to wait (Get), the delta (Add).
struct StoreRequest {
    StoreOp op = StoreOp::Hello;
    std::int64_t number = 0;
    std::string key, value;
};
std::string encodeRequest(const StoreRequest& request);

inline constexpr char kStoreGreeting[] = "ringside store 1";  ///< the value of Hello and of its answer
/// Set by the server: its machine's address on the network, when somebody came over the network.
inline constexpr char kServedAtKey[] = "ringside/served_at";

/// An answer is one of these and then the value. NotThere: time is over.
inline constexpr char kStoreOk = '+', kStoreNotThere = '-';

class TcpStoreServer {
public:
    static std::unique_ptr<TcpStoreServer> start(Socket listening);
    virtual ~TcpStoreServer() = default;  ///< stops at once; clients see a closed connection
    /// Waits until at most `clients` are connected, no longer than `timeout`.
    virtual void waitUntilClientsAreAtMost(std::size_t clients, std::chrono::milliseconds timeout) = 0;
};

}  // namespace ringside
