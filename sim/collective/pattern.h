// Message pattern: which message of a collective may leave when, without listing the messages.
//
// A collective runs over connections (source, destination, lane). All messages of a connection have one size and arrive
// in the order sent, so a pattern needs no tags: it counts. Its memory is O(connections), never O(messages).
// A pattern is a class with these functions (a template parameter of the player; nothing is virtual):
//
//     std::vector<Connection> connections() const;
//     std::uint64_t messageCount() const;                      // of a complete run
//     template <class Emit> void ready(std::uint32_t rank, Emit emit);          // the rank has entered the collective
//     template <class Emit> void delivered(std::uint32_t connection, Emit emit); // one more message of it has arrived
//
// Both may call emit(connection, count): `count` messages are handed to the connection now; it sends them one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/base/units.h"

namespace ringside {

struct Connection {
    std::uint32_t source = 0, destination = 0;
    Bytes messageBytes = 0;
    std::uint32_t lane = 0;  ///< which of several parallel wires between two ranks (a tree, a channel)
};

/// The α–β terms of a closed form: a message of b bytes takes latencySeconds + b / bytesPerSecond, and holds its wire for
/// the second part only.
struct AlphaBeta {
    double latencySeconds = 0;
    double bytesPerSecond = 1;

    double seconds(double bytes) const { return latencySeconds + bytes / bytesPerSecond; }
    double wireSeconds(double bytes) const { return bytes / bytesPerSecond; }
};

/// Bytes of one of `parts` equal messages; rounded up, so that all are equal (NCCL does the same with its last loop).
constexpr Bytes partOf(Bytes bytes, std::int64_t parts) { return (bytes + parts - 1) / parts; }

/// Default size of one message of a pipelined chain or tree: NCCL's Simple protocol moves 512 KiB per step there.
constexpr Bytes kPipelineChunk = 512 * kKiB;
constexpr std::int64_t pipelineChunks(Bytes bytes, Bytes chunk) { return std::max<std::int64_t>(1, partOf(bytes, chunk)); }

}  // namespace ringside
