// GEMM model: the time of a matrix product from its shape, by tiles and waves.
//
// docs/models/compute.md derives it; the constants were fitted to published tables and say so in gemm_model.cpp.
#pragma once

#include <array>

#include "model/base/dtype.h"
#include "model/base/units.h"
#include "model/hardware/device.h"
#include "model/workload/kernel_work.h"

namespace ringside {

/// What differs between generations of matmul kernels.
struct GemmConstants {
    double headroom = 1;      ///< rate of an endless product relative to the best shape anybody measured
    double rampK = 100;       ///< prologue and epilogue of a tile, as extra columns of k
    double extraSeconds = 0;  ///< per kernel, beyond that of an empty one
    double overlapLoss = 0;   ///< share of the shorter of (arithmetic, memory) that does not hide behind the longer
    double quantisation = 1;  ///< 1: a partial wave costs a whole one; 0: work is spread evenly (stream-K)
    double tileLoss = 40;     ///< c in efficiency ∝ 1 / (1 + c·(1/tileM + 1/tileN)): operand traffic per flop
    double splitSeconds = 0;  ///< of starting a split-K reduction
    bool largeTile = false;   ///< has a 256 × 256 tile (pairs of multiprocessors)

    /// FLOP of one column of k per tile, tileLoss included: filled by gemmConstants so that pricing is multiplications only.
    std::array<double, 7> flopsPerColumn{};
};
/// For operands of 2 bytes (bf16, fp16; also 1), or of 4 (tf32, fp32; also 8). `flopsPerSm`: peak of one multiprocessor in that type, FLOP/s
/// (0: not known). Constants that were fitted on another kind of multiprocessor keep the time of its ramp, not its columns.
GemmConstants gemmConstants(GpuArch arch, Bytes elementSize, double flopsPerSm);

/// Rates left to one kernel.
struct GemmModel {
    const GemmConstants& constants;
    double rate = 0;       ///< FLOP/s of an endless product on the whole device
    double sms = 1;        ///< multiprocessors of the device
    double freeSms = 1;    ///< of which this kernel may use; at least 1
    double bandwidth = 0;  ///< bytes/s

    /// Seconds without the fixed time of an empty kernel. `bytes` as in KernelWork. Grows with every dimension as long as
    /// they stay multiples of 16 bytes. REQUIRES: shape positive.
    double seconds(const GemmShape& shape, double bytes, Bytes elementSize) const;
};

/// Fraction of the rate left to a product whose rows are not multiples of 16 bytes (1 where they are).
double alignmentEfficiency(const GemmShape& shape, Bytes elementSize);
/// Bytes of two operands read and one result written once.
double gemmBytes(const GemmShape& shape, Bytes elementSize);

}  // namespace ringside
