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

}  // namespace ringside
