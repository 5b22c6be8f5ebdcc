// GemmTable: measured matmuls that correct the formula. At a measured shape the correction is exact; between shapes it is
// interpolated, so the formula only carries the answer from one measurement to the next.
#pragma once

#include <vector>

#include "model/cost/gemm_model.h"
#include "model/cost/profile.h"
#include "model/cost/shape_regression.h"

namespace ringside {

class GemmTable {
public:
    /// REQUIRES: samples not empty. `fixedSeconds` is the part of a measured time that the formula leaves out. Samples of one
    /// shape (other layouts, repetitions) are averaged.
    GemmTable(const std::vector<GemmSample>& samples, const GemmModel& formula, double fixedSeconds, Bytes elementSize);

    /// Measured time over formula time for the shape: that of the sample where it was measured, else what the nearest samples'
    /// logarithms say (shape_regression.h). O(samples), allocates nothing.
    double correction(const GemmShape& shape) const;
    /// Measured seconds per FLOP, likewise, without the formula: for devices whose tiles and waves nobody knows (CPUs).
    double secondsPerFlop(const GemmShape& shape) const;

private:
    ShapeRegression logRatio_, logSecondsPerFlop_;
};

}  // namespace ringside
