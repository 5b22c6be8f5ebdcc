// PyTorch's own collectives: measured by themselves before its steps are predicted.
//
// It brings another Gloo than ours and copies around it, so our curves are not its curves: a reduce-scatter is an all-reduce there, and its
// all-gather takes half as long again as the link does, where ranks come a moment apart.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/fit/assemble_profile.h"
#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/cost/profile.h"

namespace ringside {

/// What the script is asked to time: [operation, bytes, times] each.
Json torchCollectivesAsked();

/// Timings from the ranks' answers. A call lasts from when the last rank came to when the last was done; means of a few runs of neighbours,
/// for an all-gather is of two kinds. Fails (runtime failure) on answers that are not what was asked for.
Result<std::vector<CollectiveTimings>> torchCollectivesOf(const std::vector<Json>& ranks, const std::string& link);

/// The profile's collectives become these. What one takes from its core stays what calibration measured for its operation.
Result<void> useTorchCollectives(Profile& profile, std::span<const CollectiveTimings> timings);

}  // namespace ringside
