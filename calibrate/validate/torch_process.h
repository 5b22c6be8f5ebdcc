// PyTorch as a program: whether python3 has it, and ranks of it that run our script.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "traces/import/torch_profiler_kernels.h"

namespace ringside {

/// The version of the torch that python3 imports. Fails (missing capability) where there is none, saying what to install.
Result<std::string> torchVersion();

struct TorchAnswers {
    std::vector<Json> ranks;                 ///< what each wrote, by rank
    std::optional<ProfiledKernels> profile;  ///< what rank 0's profiler saw of the last step, if the job has steps and several ranks
};

/// Runs torchScript() once per rank, each on a core of its own where there are enough, over a shaped link if a rate is given. `job` is what
/// the script takes but for a rank's own place and files. Nothing is left behind.
/// REQUIRES: this process has one thread.
Result<TorchAnswers> runTorchRanks(int ranks, std::optional<double> linkBitsPerSecond, const Json& job);

}  // namespace ringside
