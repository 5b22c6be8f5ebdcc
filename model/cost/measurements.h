// Measurements: what was timed on a machine, as a profile keeps it: kernels by name, collectives by group and link.
//
// Plain data. kernel_table.h and measured_collectives.h read between the points; docs/models/measured-tables.md says how.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/base/dtype.h"
#include "model/base/units.h"
#include "model/cost/collective_kinds.h"
#include "model/workload/kernel_work.h"

namespace ringside {

/// One timed kernel. A point without `flops` is one of a memory curve: its bytes count and nothing else.
struct KernelPoint {
    double flops = 0;            ///< as KernelWork counts them
    double bytes = 0;
    GemmShape shape{1, 0, 0, 0}; ///< of arithmetic kernels
    DType math = DType::Fp32;    ///< likewise
    bool causal = false;         ///< likewise
    double seconds = 0;
    double relativeSpread = 0;

    bool operator==(const KernelPoint&) const = default;
};

/// By KernelWork::name. kAnyMemoryKernel stands for memory kernels that have no points of their own.
using KernelPoints = std::map<std::string, std::vector<KernelPoint>, std::less<>>;
inline constexpr const char* kAnyMemoryKernel = "*";

struct CollectivePoint {
    Bytes bytes = 0;  ///< as nccl-tests counts: the whole buffer for all-gather and reduce-scatter
    double seconds = 0;
    double relativeSpread = 0;

    bool operator==(const CollectivePoint&) const = default;
};

/// One operation of one group size over one kind of link: the time of the slowest rank by size, and what it takes from a rank's
/// own core meanwhile (docs/models/cpu-interference.md).
struct CollectiveCurve {
    CollectiveBackend backend = CollectiveBackend::Gloo;
    CollectiveOp op = CollectiveOp::AllReduce;
    std::int64_t ranks = 2;
    std::string link;                ///< "loopback", "1gbit", …; "": any
    std::vector<CollectivePoint> points;
    double cpuSecondsPerCall = 0;    ///< CPU time of a rank's own core: fixed part …
    double cpuSecondsPerByte = 0;    ///< … and per byte of the buffer
    double computeSlowdown = 0;      ///< measured factor on kernels while it runs; 0: from the CPU time
    double slowdownByCompute = 0;    ///< measured factor on it while kernels run; 0: from the CPU time

    bool operator==(const CollectiveCurve&) const = default;
};

/// A training step of a calibration model, each rank for itself: how fast the machine was when the profile was measured.
struct ReferenceStep {
    std::string model;
    int ranks = 1;  ///< that ran at the same time
    double seconds = 0;

    bool operator==(const ReferenceStep&) const = default;
};

}  // namespace ringside
