// The optimizer's kernels for real: what each pass of torch.optim does to each target.
#pragma once

#include <span>
#include <vector>

#include "calibrate/execute/bind_program.h"
#include "calibrate/execute/bound_call.h"
#include "calibrate/execute/contents.h"
#include "model/base/result.h"

namespace ringside {

/// `group`: the optimizer's tasks, in issue order; the last one's uses name the targets (gradient, parameter, state, master). Appends
/// to `calls` and returns how many calls each task has.
Result<std::vector<std::uint32_t>> bindOptimizer(const Schedule& schedule, const RankProgram& program, std::span<const Task> group, Contents& contents, const Optimizer& optimizer,
                                                 const Hyperparameters& hyper, std::vector<BoundCall>& calls, ScratchSizes& scratch);

}  // namespace ringside
