// The Python program that trains a step of ours with PyTorch: DDP, FSDP2 or ZeroRedundancyOptimizer on Gloo.
#pragma once

#include <string_view>

namespace ringside {

/// Arguments: a JSON file with what to do and the file to write the answer to. Of every job: "rank", "world", "store", "interface", "core".
/// Steps: "model", "batch", "strategy", "optimizer", "bucket_mb" (or null), "steps", "warm_up", "trace"; the answer has their "seconds". Collectives by
/// themselves: "collectives", a list of [operation, bytes, times]; the answer has "calls", for each of them [begin, end] of each time, on
/// the machine's clock. Needs torch 2.6 or later.
std::string_view torchScript();

}  // namespace ringside
