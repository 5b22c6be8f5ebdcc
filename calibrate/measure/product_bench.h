// Product bench: matrix products over a grid of shapes, by arithmetic type, each alone: what the machine can do at best, and the table
// that products of other shapes than the calibrated models' are read from.
#pragma once

#include <vector>

#include "calibrate/execute/run_ranks.h"
#include "calibrate/fit/assemble_profile.h"
#include "model/base/result.h"

namespace ringside {

struct ProductBenchOptions {
    std::vector<GemmShape> shapes;
    std::vector<DType> types{DType::Fp32, DType::Bf16};
    double seconds = 0.05;  ///< per shape and type, at most
};

/// All ranks at once; the samples of all are taken together. Empty in a process that is not rank 0. Samples during which the thread
/// waited for its core are left out (calibrate/measure/sampler.h); `dropped` counts them.
Result<std::vector<KernelTimings>> benchProducts(const RunRanksOptions& ranks, const ProductBenchOptions& options, int& dropped);

}  // namespace ringside
