// The optimizer's kernels for real: what each pass of torch.optim does to each target.
#pragma once

#include <span>
#include <vector>

#include "calibrate/execute/bind_program.h"
#include "calibrate/execute/bound_call.h"
#include "calibrate/execute/contents.h"
#include "model/base/result.h"

namespace ringside {

/// A run of elements that is updated together, and where all its tensors are.
struct UpdateRun {
    Operand gradient, parameter, master, first, second;  ///< first: m, or the momentum buffer; second: v
    std::int64_t elements = 0;

    Operand updated() const { return master.kind == Operand::Kind::None ? parameter : master; }
};

/// Whether the optimizer keeps two moments. Fails (missing capability) on one that cannot be run for real.
Result<bool> hasTwoMoments(const Optimizer& optimizer);

/// The optimizer's kernels over the runs, in launch order: appends to `calls` and returns how many calls each kernel has.
Result<std::vector<std::uint32_t>> bindPasses(std::span<const KernelWork> kernels, std::span<const UpdateRun> runs, const Optimizer& optimizer, const Hyperparameters& hyper,
                                              std::vector<BoundCall>& calls, ScratchSizes& scratch);

/// `group`: the optimizer's tasks, in issue order; the last one's uses name the targets (gradient, parameter, state, master). Appends
/// to `calls` and returns how many calls each task has.
Result<std::vector<std::uint32_t>> bindOptimizer(const Schedule& schedule, const RankProgram& program, std::span<const Task> group, Contents& contents, const Optimizer& optimizer,
                                                 const Hyperparameters& hyper, std::vector<BoundCall>& calls, ScratchSizes& scratch);

}  // namespace ringside
