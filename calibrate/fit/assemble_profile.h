// Assembling a profile: timings of kernels and collectives become its tables, and the tables its figures.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/base/result.h"
#include "model/cost/profile.h"

namespace ringside {

/// Repetitions of one kernel. `work.name` is not used, as it need not live as long.
struct KernelTimings {
    std::string name;              ///< KernelWork::name; "" for a GEMM: goes to the table of all products (Profile::gemmTable)
    KernelWork work;
    std::vector<double> seconds;
};

/// Repetitions of one collective, each the time of the slowest rank. May be empty: `cpuSeconds`, what it takes from the kernels of a
/// rank; `besideSeconds`, how long it takes while kernels run.
struct CollectiveTimings {
    CollectiveBackend backend = CollectiveBackend::Gloo;
    CollectiveOp op = CollectiveOp::AllReduce;
    std::int64_t ranks = 2;
    std::string link;
    Bytes bytes = 0;
    std::vector<double> seconds, cpuSeconds, besideSeconds;
};

/// Adds to Profile::kernels and gemmTable; what the profile had of these kernels is replaced. Memory kernels become curves that never
/// fall with bytes. Fails (bad input, naming the kernel) on times that are not finite or not above 0.
Result<void> addKernelTimings(Profile& profile, std::span<const KernelTimings> timings);

/// Adds to Profile::collectives; curves of the same operation, ranks and link are replaced. Curves never fall with bytes.
Result<void> addCollectiveTimings(Profile& profile, std::span<const CollectiveTimings> timings);

/// Sets the figures that tables answer for a host without a datasheet: device figures (peak = the best product measured, memory
/// bandwidth = the best curve's rate), efficiencies relative to them, and every spread = the median one of what was measured.
/// Figures of what was not measured stay. `source` goes into each figure set.
void deriveFigures(Profile& profile, const std::string& source);

}  // namespace ringside
