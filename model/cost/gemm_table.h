// GemmTable: measured matmuls that correct the formula. At a measured shape the correction is exact; between shapes it is
// interpolated, so the formula only carries the answer from one measurement to the next.
#pragma once

#include <vector>

#include "model/cost/gemm_model.h"
#include "model/cost/profile.h"

namespace ringside {

class GemmTable {
public:
    /// REQUIRES: samples not empty. `fixedSeconds` is the part of a measured time that the formula leaves out. Samples of one
    /// shape (other layouts, repetitions) are averaged.
    GemmTable(const std::vector<GemmSample>& samples, const GemmModel& formula, double fixedSeconds, Bytes elementSize);

    /// Measured time over formula time for the shape: that of the sample where it was measured, else the mean of all samples'
    /// logarithms weighted by distance⁻⁴ in (log batch, log m, log n, log k). O(samples), allocates nothing.
    double correction(const GemmShape& shape) const;

private:
    // Columns apart and padded to a multiple of the lanes, so that the scan is vectorised.
    std::vector<float> batch_, m_, n_, k_, logRatio_;
    std::vector<double> ratio_;  // exact, for hits
    std::vector<GemmShape> shapes_;
};

}  // namespace ringside
