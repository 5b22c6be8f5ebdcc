// Gloo cost: closed forms of Gloo's algorithms over TCP, from a cost per message, a link rate and a rate of CPU reduction.
//
// Formulas and sources: docs/models/gloo.md.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/collective_cost.h"
#include "model/cost/copy_cost.h"

namespace ringside {

/// How Gloo's ring all-reduce cuts a buffer: at least two segments per rank, at most 1 MiB each.
struct GlooSegments {
    std::int64_t count = 0;  ///< a multiple of the ranks
    Bytes bytes = 0;         ///< of each; the last may be shorter
};
/// REQUIRES: bytes ≥ 0, ranks ≥ 1.
GlooSegments glooSegments(Bytes bytes, std::int64_t ranks);

/// Immutable value; safe to use from many threads.
class GlooModel {
public:
    /// Fails (bad input) where the group does not fit the cluster, the nodes have no network, or an option is out of range.
    static Result<GlooModel> create(const Cluster& cluster, const GroupShape& group, const GlooOptions& options = {});

    /// One rank, or no bytes, costs nothing. `channels` is 0: no multiprocessor is taken. O(log ranks).
    CollectiveCost cost(CollectiveOp op, Bytes bytes) const;
    /// All-reduce by each algorithm (the configured one first, then by time); other ops have one way only.
    std::vector<CollectiveCost> candidates(CollectiveOp op, Bytes bytes) const;

private:
    GlooModel() = default;

    // One message: fixed part and rate. A ring sends one message per node across the network, the exchanges of bcube and
    // halving-doubling one per rank.
    struct Hop {
        double alpha = 0;           // seconds
        double secondsPerByte = 0;
    };
    struct Parts {
        double latency = 0, transfer = 0;  // seconds
    };

    Hop exchangeHop(std::int64_t distance) const;
    Parts ringPhase(Bytes bytes, bool reduces) const;
    Parts ringAllReduce(Bytes bytes) const;
    Parts bcubeAllReduce(Bytes bytes) const;
    Parts halvingDoublingAllReduce(Bytes bytes) const;
    Parts broadcast(Bytes bytes) const;
    Parts allReduce(CollectiveAlgorithm algorithm, Bytes bytes) const;
    CollectiveCost finish(Parts parts, CollectiveAlgorithm algorithm, Bytes bytes) const;

    Hop loopback_, ringHop_, sharedNet_;
    double reduceSecondsPerByte_ = 0;
    std::int64_t ranks_ = 1, nodes_ = 1, ranksPerNode_ = 1;
    GlooOptions options_;
    std::vector<CopyCost> staging_;  // one entry where tensors live on the device
};

}  // namespace ringside
