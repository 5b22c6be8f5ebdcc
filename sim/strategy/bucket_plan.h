// Buckets in gradient-ready order with DDP's limits, for strategies that bucket as DDP does without being it.
#pragma once

#include <optional>
#include <vector>

#include "sim/strategy/step_writer.h"

namespace ringside {

struct PlannedBucket {
    std::vector<std::uint32_t> parameters;
    std::int64_t elements = 0;
};

/// `bucketMb` empty: 25 MiB, the first 1 MiB.
std::vector<PlannedBucket> readyOrderBuckets(StepWriter& step, std::optional<double> bucketMb);

}  // namespace ringside
