// FailureSimulation: plays failures, checkpoints and restarts out, to check goodput's closed form (docs/models/goodput.md).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/study/goodput.h"

namespace ringside {

struct FailureRun {
    double goodput = 0;
    double seconds = 0;         ///< wall-clock time that was played
    std::int64_t failures = 0;
};

/// Failures come after exponential times of mean `mtbfSeconds`, drawn by (seed, number of the failure): the same for every
/// interval, so that intervals compare without noise between them. Runs until `failures` of them have struck. Only work that
/// is in a finished checkpoint counts as useful; a failure during a restart begins it anew. O(failures). REQUIRES: interval ≥ cost.writeSeconds, interval > 0, failures ≥ 1.
FailureRun simulateFailures(double interval, const CheckpointCost& cost, double restartSeconds, double mtbfSeconds, std::int64_t failures,
                            std::uint64_t seed);

/// One interval in both ways.
struct GoodputPoint {
    double intervalSeconds = 0, closedForm = 0, simulated = 0;
};
/// At ¼, ½, 1, 2 and 4 times the best interval; an interval that is shorter than the asynchronous write is left out.
std::vector<GoodputPoint> checkGoodput(const Goodput& best, std::int64_t failures, std::uint64_t seed);

}  // namespace ringside
