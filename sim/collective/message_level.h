// Message level: how long a collective takes when every one of its messages is simulated over shared links.
//
// Agrees with the closed forms of the algorithms' headers where nothing contends, and is what to ask where links are
// shared, ranks arrive late or links differ. docs/models/message-level.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/base/result.h"
#include "model/base/units.h"
#include "model/cost/collective_cost.h"
#include "sim/collective/message_network.h"
#include "sim/collective/pattern.h"

namespace ringside {

struct MessageLevelResult {
    Time duration;                      ///< from the first rank's arrival to the last message's
    std::uint64_t messages = 0;
    std::vector<double> bytesPerLink;   ///< per link in use; linkIds names them
    std::vector<std::uint64_t> linkIds; ///< folded: of link classes
    std::vector<Time> rankFinish;       ///< absolute time of the last message each rank received; folded: of one turn
    bool folded = false;                ///< ranks were represented by one turn of the rotation
};

struct MessageLevelOptions {
    Time baseLatency;                   ///< a library's constant per collective, before the first message
    std::int64_t groups = 1;            ///< ring only: ranks r, r + groups, … form a ring each, all at once, `bytes` each
    Bytes chunkBytes = kPipelineChunk;  ///< of pipelined chains and trees
};

/// Plays one collective. `arrivals`: per rank, when it enters; empty: all at zero. `bytes` counts as nccl-tests does.
/// All-reduce: Ring, Tree, HalvingDoubling, Hierarchical. All-gather, reduce-scatter: Ring. Broadcast, reduce: Ring,
/// Binomial. None means Ring. One rank, or no bytes, costs nothing. Fails (bad input) for any other pair, negative bytes
/// or arrivals, a number of arrivals that is not the number of ranks, and more than 2^28 ranks.
/// O(messages) time, O(ranks) memory (halving-doubling O(ranks · log ranks)).
Result<MessageLevelResult> playCollective(const MessageNetwork& network, CollectiveOp op, CollectiveAlgorithm algorithm, Bytes bytes,
                                          std::span<const Time> arrivals = {}, const MessageLevelOptions& options = {});

/// The same result where the network has a rotation symmetry, from one turn of it: ranks that differ by whole turns do the
/// same at the same time. The rhythm of the ring is detected and its repetitions are multiplied out, so that the cost does
/// not depend on the number of ranks. Equal to playCollective to the picosecond. Ring all-reduce, all-gather and
/// reduce-scatter; everything else, and networks without symmetry, are played unfolded (`folded` says which).
Result<MessageLevelResult> playCollectiveFolded(const MessageNetwork& network, CollectiveOp op, CollectiveAlgorithm algorithm, Bytes bytes,
                                                const MessageLevelOptions& options = {});

}  // namespace ringside
