// Collectives of a rank as a table with the bandwidths of nccl-tests (docs/models/breakdown.md).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/trace.h"

namespace ringside {

struct CollectiveRow {
    std::int32_t collective = 0;  ///< index into Trace::collectives
    Time start;
    Time duration;                ///< of this rank's slice, so with its waiting for slower ranks
    Time transfer;                ///< the shortest slice of this collective on any rank: from the last arrival on
    double algbw = 0;             ///< bytes / transfer, in bytes per second; 0 if the transfer took no time
    double busbw = 0;             ///< algbw × busbwFactor
};

/// nccl-tests' factor: 2(n−1)/n for all-reduce, (n−1)/n for all-gather, reduce-scatter and all-to-all, 1 for the rest.
/// `op` in Kineto's, NCCL's or PyTorch's spelling ("allreduce", "_allgather_base", "ReduceScatter"). REQUIRES: n ≥ 1.
double busbwFactor(std::string_view op, std::int64_t n);

/// One row per communication slice of `rank` that has details, by start. O(slices).
std::vector<CollectiveRow> collectivesOf(const Trace& trace, std::int64_t rank);

/// One collective on all the ranks of the trace that took part.
struct MatchedCollective {
    std::int32_t collective = 0;        ///< details: an index into Trace::collectives
    std::vector<std::uint32_t> slices;  ///< one per rank, by rank
    Time begin, end;                    ///< from the first arrival to the last end
    Time transfer;                      ///< the shortest slice: that of the rank that came last. Needs no common clock
    double algbw = 0, busbw = 0;        ///< of the transfer, in bytes per second; 0 if bytes or time are not known
    bool isComplete = false;            ///< as many ranks as the group has
};

/// How long a slice of it waited for the slowest rank: what it took longer than the transfer.
inline Time waitOf(const Trace& trace, const MatchedCollective& matched, std::uint32_t slice) { return trace.duration[slice] - matched.transfer; }

/// All collectives, by begin. Slices of different ranks are one collective if they have the same details, or group, operation and
/// sequence number, or (where the file has none) are the n-th of that operation and size in their group. O(n log n).
std::vector<MatchedCollective> matchCollectives(const Trace& trace);

/// Flows of kind Collective from rank to rank through each collective, to draw and to walk along.
std::vector<Flow> collectiveFlows(const std::vector<MatchedCollective>& matched);

/// Bytes per second that collectives put on each rank's link over time, one counter "link load" per rank: a collective's bytes ×
/// busbwFactor over its transfer, which ends with its slice. Sums where several run at once.
std::vector<CounterSeries> linkLoad(const Trace& trace, const std::vector<MatchedCollective>& matched);

/// Bytes of the collectives that a rank has begun and not finished, waiting for slower ranks included: one counter "bytes in flight" per
/// rank. Collectives whose bytes are not known do not count.
std::vector<CounterSeries> bytesInFlight(const Trace& trace, const std::vector<MatchedCollective>& matched);

}  // namespace ringside
