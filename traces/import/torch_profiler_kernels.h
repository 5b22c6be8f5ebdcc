// Kernel samples of a PyTorch-profiler (Kineto) trace: matrix products with their shapes, collectives with their sizes.
//
// Only what can be priced is taken; the whole trace is another reader's matter. docs/formats/torch-profiler.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/result.h"
#include "traces/import/import_notes.h"

namespace ringside {

/// batch × (m × k)·(k × n). `seconds` is that of the device's kernels of the operator together; of the operator itself on a CPU.
struct ProfiledGemm {
    std::string op;      ///< "aten::addmm"
    std::string dtype;   ///< "fp32", "bf16", …
    std::int64_t batch = 1, m = 0, n = 0, k = 0;
    double seconds = 0;
};

/// `bytes` as nccl-tests counts. The time includes waiting for the peers: take the least of several (docs/formats/torch-profiler.md).
struct ProfiledCollective {
    std::string op;       ///< "all_reduce", …
    std::string backend;  ///< "nccl" or "gloo"
    std::string dtype;
    std::int64_t bytes = 0;
    std::int64_t ranks = 0;  ///< 0 if the trace does not say
    double seconds = 0;
};

struct ProfiledKernels {
    std::vector<ProfiledGemm> gemms;
    std::vector<ProfiledCollective> collectives;
    std::int64_t worldSize = 0;  ///< 0 if the trace does not say
    std::int64_t events = 0;
    bool hasDevice = false;      ///< kernels of a device are in it; else operators ran on the CPU
    ImportNotes notes;           ///< what was left out
};

/// Fails (bad input) where the text is no JSON at all, or has no "traceEvents". JSON that breaks off is used up to there, with a note.
Result<ProfiledKernels> parseTorchProfile(std::string_view text, const std::string& source);
/// Plain or gzip-compressed.
Result<ProfiledKernels> readTorchProfile(const std::string& path);

}  // namespace ringside
