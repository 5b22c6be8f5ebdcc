// Compute cost: how long one kernel takes on one device.
//
// Formulas and sources: docs/models/compute.md.
#pragma once

#include <array>
#include <memory>

#include "model/base/result.h"
#include "model/base/units.h"
#include "model/cost/gemm_model.h"
#include "model/cost/profile.h"
#include "model/hardware/device.h"
#include "model/workload/kernel_work.h"

namespace ringside {

class GemmTable;
class KernelTable;

/// What-if factors: 1.1 makes that resource of the device 10 % faster, measured kernels included.
struct ComputeScales {
    double compute = 1, memory = 1;
};

/// Device figures that kernels need, checked once. Value type, cheap to copy, safe to read from many threads.
class ComputeCost {
public:
    /// Fails (bad input) where the device lacks a figure that `math` needs; the error names it. An unknown number of
    /// multiprocessors is no error: the count is then assumed by architecture and waves are not quantised.
    /// `busy`: the share of the peak that the device gives over the whole step. The power limit takes the more of the clock, the busier it is.
    static Result<ComputeCost> create(const Device& device, const Profile& profile, DType math, const ComputeScales& scales = {}, double busy = 1);

    /// Device time of one kernel that has `busySms` of the multiprocessors and `busyBandwidth` (0…1) of the memory
    /// bandwidth taken away by a collective that runs beside it. Never decreases as either grows.
    /// Kernels whose arithmetic type the device has no peak for are priced with that of `create`.
    /// Kernels that the profile has measured under their own name take that time (kernel_table.h); what a collective takes away
    /// stretches it as it does the formula. Allocates nothing; O(1), or O(samples) where the profile has measurements.
    double seconds(const KernelWork& work, double busySms = 0, double busyBandwidth = 0) const;

    /// What a product or convolution would take at the datasheet's peak; 0 for other kernels.
    double secondsAtPeak(const KernelWork& work) const;

    /// False where the device's number of multiprocessors is not known, so that waves are a smooth quotient.
    bool waveQuantised() const { return waveQuantised_; }
    /// Multiprocessors as used: the device's, or the assumed count.
    double multiprocessors() const { return sms_; }

private:
    struct Arithmetic {
        double peak = 0;          ///< FLOP/s of the datasheet
        double gemmRate = 0;      ///< FLOP/s of a matmul that is infinitely large in every way
        const GemmConstants* constants = nullptr;
        std::shared_ptr<const GemmTable> table;
    };

    double formulaSeconds(const KernelWork& work, double busySms, double busyBandwidth) const;
    GemmModel gemmModel(const Arithmetic& arithmetic, double busySms, double busyBandwidth) const;
    double gemmSeconds(const KernelWork& work, double busySms, double busyBandwidth, double gain = 1) const;  ///< gain: on a convolution's rate
    double attentionSeconds(const KernelWork& work, double busySms, double busyBandwidth) const;
    double piecesSeconds(const KernelWork& work, double busySms, double busyBandwidth) const;
    double convolutionSeconds(const KernelWork& work, double busySms, double busyBandwidth) const;
    double memorySeconds(double bytes, double elements, double busySms, double busyBandwidth) const;
    const Arithmetic& arithmetic(DType type) const;

    std::shared_ptr<const KernelTable> measured_;  ///< null: nothing was
    ComputeScales scales_;
    std::array<Arithmetic, 10> arithmetic_;  ///< by DType
    DType math_ = DType::Bf16;
    std::shared_ptr<const std::array<GemmConstants, 10>> constants_;  ///< by DType
    double sms_ = 1;
    bool waveQuantised_ = true;
    double bandwidth_ = 0;  ///< bytes/s that streaming kernels reach
    double fixedSeconds_ = 0;
    double elementRate_ = 0;  ///< elements/s of kernels that go element by element; 0: not known, and no limit
    double convolutionEfficiency_ = 1, winogradGain_ = 1, transposedShare_ = 0;
    double attentionForward_ = 1, attentionBackward_ = 1, flash1_ = 1, flash3_ = 1, flash4_ = 1, fp8Attention_ = 1, gatherEfficiency_ = 1;
};

}  // namespace ringside
