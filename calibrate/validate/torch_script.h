// The Python program that trains a step of ours with PyTorch: DDP, FSDP2 or ZeroRedundancyOptimizer on Gloo.
#pragma once

#include <string_view>

namespace ringside {

/// Arguments: a JSON file with what to run ("model", "batch", "strategy", "bucket_mb", "steps", "warm_up", "rank", "world", "store",
/// "interface", "core", "trace") and the file to write step times to. Needs torch 2.6 or later.
std::string_view torchScript();

}  // namespace ringside
