// Import samples: what nccl-tests and PyTorch's profiler measured, as tables of a profile.
#pragma once

#include <string>
#include <vector>

#include "model/base/result.h"
#include "model/cost/profile.h"
#include "traces/import/nccl_tests.h"
#include "traces/import/torch_profiler_kernels.h"

namespace ringside {

struct ImportOptions {
    std::string link;  ///< that the collectives ran over; "": any (model/cost/measured_collectives.h)
    int minSamples = 3;  ///< products seen less often are left out of a profile made from a trace
};

/// What was taken and left out, for the user.
struct ImportReport {
    int gemmShapes = 0, collectivePoints = 0;
    std::vector<std::string> notes;
};

/// Out-of-place times; in-place ones where there are no others. Rows with wrong values are left out. Fails (bad input) where the
/// operation or the number of ranks is not said, or nothing is left.
Result<ImportReport> importNcclTests(Profile& profile, const NcclTestsTable& table, const ImportOptions& options = {});

/// Products go to the table of their type (which is replaced). A collective's time includes waiting for its peers, so that of each
/// size the fastest tenth counts. Fails (bad input) where the trace holds neither.
Result<ImportReport> importTorchProfile(Profile& profile, const ProfiledKernels& kernels, const ImportOptions& options = {});

}  // namespace ringside
