// What a gradient goes through, where the order of a stream says it and no flow does: from the kernel that made it into its bucket, and
// from what a collective gave back to the optimizer.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace ringside {

/// Flows of kind Dependency beside those that the trace has. Where a communication waits for a slice that itself waits for no other (the
/// copy into a bucket): from the backward slice before that one on its track, or else from the slice before it. Where a slice waits
/// for a communication: to the first slice of the optimizer after it on its track. Both hold by stream order, so no path changes its
/// length. O(slices + flows).
std::vector<Flow> gradientFlows(const Trace& trace);

}  // namespace ringside
