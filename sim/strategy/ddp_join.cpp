#include "sim/strategy/ddp_join.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace ringside {

Result<void> checkJoin(const StrategyInput& input) {
    const ParallelConfig& parallel = input.parallel;
    if (parallel.exhaustedRanks == 0) {
        if (parallel.asyncGradients && parallel.join) return badInput("strategy.async_gradients", "cannot be combined with join; choose one of them");
        return {};
    }
    if (!parallel.join) return badInput("strategy.exhausted_ranks", "ranks run out of inputs only under the join context; give join = true");
    if (parallel.asyncGradients) return badInput("strategy.async_gradients", "cannot be combined with join; choose one of them");
    if (parallel.tp * parallel.pp * parallel.cp * parallel.ep > 1)
        return badInput("strategy.exhausted_ranks", "the join context knows data parallelism only; leave tp, pp, cp and ep at 1");
    if (parallel.exhaustedRanks >= input.cluster.deviceCount())
        return badInput("strategy.exhausted_ranks", fmt::format("found {}, but at least one of the {} ranks must have inputs left", parallel.exhaustedRanks, input.cluster.deviceCount()));
    return {};
}

std::int64_t firstExhausted(const StrategyInput& input) { return input.cluster.deviceCount() - input.parallel.exhaustedRanks; }

void JoinNotifier::beforeForwardPass(StepWriter& step, const Pass& pass) {
    const TaskId asked = step.collective(kComputeStream, Phase::Forward, TaskRole::JoinNotify, CollectiveOp::AllReduce, DType::Fp32, 1, step.axes().data);
    step.hostWait(Phase::Forward, TaskRole::JoinNotify, std::array{asked});
    reducer_.beforeForwardPass(step, pass);
}

void shadowCollectives(StepWriter& step) {
    const RankProgram active = step.schedule().programs.front();  // a copy: this program grows in the same schedule
    const StreamId communication = step.program().addStream(StreamKind::Communication, "nccl dp");
    std::int64_t most = 0;
    for (const Task& task : active.tasks)
        if (task.kind == TaskKind::Collective) most = std::max<std::int64_t>(most, step.schedule().collectives[task.work].bytes());
    const BufferId zeros = step.addBuffer({most, MemoryCategory::Buckets, BufferRole::Workspace, DType::Fp32, true, false, -1, 0});
    for (const Task& task : active.tasks) {
        if (task.kind != TaskKind::Collective) continue;
        const CollectiveWork work = step.schedule().collectives[task.work];
        step.setMicroStep(task.microStep);
        const bool asks = task.role == TaskRole::JoinNotify;
        if (task.role == TaskRole::BucketReduce) {
            step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::BucketZero, "zero", work.bytes(), -1, task.part);
            step.program().use(zeros, UseKind::Write);
        }
        const TaskId shadow = step.collective(asks ? kComputeStream : communication, task.phase, task.role, work.op, work.dtype, work.elements, work.axis, task.layer, task.part);
        if (task.role == TaskRole::BucketReduce) step.program().dependOn(step.lastCompute());
        if (asks) step.hostWait(Phase::Forward, TaskRole::JoinNotify, std::array{shadow});
        else step.waitOnCompute(shadow);
    }
    step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::BucketZero, "zero", 4);  // it waits for the last of them
    step.endStep();
}

}  // namespace ringside
