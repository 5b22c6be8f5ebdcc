// Collective bench: times every operation over sizes, and how it and compute slow each other down.
#pragma once

#include <string>
#include <vector>

#include "calibrate/execute/run_ranks.h"
#include "calibrate/fit/assemble_profile.h"
#include "model/base/collective_op.h"
#include "model/base/result.h"

namespace ringside {

struct CollectiveBenchOptions {
    std::vector<CollectiveOp> ops;
    std::vector<Bytes> sizes;      ///< of the whole buffer, as nccl-tests counts
    int warmUp = 2, minRepeats = 5, maxRepeats = 200;
    double seconds = 0.15;         ///< per operation and size
    std::string link = "loopback";
    bool beside = false;           ///< measure each beside kernels, too
    bool bothWays = false;         ///< send/recv: of all ranks to the first and back at once (both_ways.h); sizes are what goes each way
};

struct CollectiveBenchResult {
    std::vector<CollectiveTimings> timings;  ///< each repetition: of the slowest rank
    std::vector<double> rankSeconds;         ///< per rank: mean time over all operations relative to the fastest rank's, to find slow links
};

/// All ranks of the run as one group. REQUIRES: at least two ranks.
Result<CollectiveBenchResult> benchCollectives(const RunRanksOptions& ranks, const CollectiveBenchOptions& options);

}  // namespace ringside
