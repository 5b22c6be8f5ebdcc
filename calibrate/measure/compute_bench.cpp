#include "calibrate/measure/compute_bench.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "calibrate/execute/real_run.h"
#include "calibrate/fit/robust.h"
#include "sim/prediction.h"

namespace ringside {
namespace {

using WorkKey = std::tuple<std::string, int, int, double, double, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>;

WorkKey keyOf(const KernelWork& work) {
    return {std::string(work.name), static_cast<int>(work.cls), static_cast<int>(work.math), work.flops, work.bytes, work.shape.batch, work.shape.m, work.shape.n, work.shape.k, work.causal};
}

// The faster half of the steps counts: what disturbs a step makes it slower. Within a step equal kernels (those of equal layers) are
// taken together, so that a step's kernels add up to what they took in it: the sum of many medians would be too small.
StepTimings timingsOf(const Schedule& schedule, const RankProgram& program, const RealRank& rank, bool strategyOnly) {
    const double middle = median(rank.stepSeconds);
    StepTimings out;
    std::map<WorkKey, KernelTimings> byWork;
    double inTasks = 0, inSteps = 0;
    for (std::size_t s = 0; s < rank.tasks.size(); ++s) {
        if (rank.stepSeconds[s] > middle) continue;
        out.stepSeconds.push_back(rank.stepSeconds[s]);
        inSteps += rank.stepSeconds[s];
        struct Sum {
            double seconds = 0;
            int count = 0;
        };
        std::map<WorkKey, Sum> sums;
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const Task& task = program.tasks[t];
            if (task.stream == kHostStream) continue;
            const double seconds = std::max(1e-9, (rank.tasks[s][t].end - rank.tasks[s][t].start).seconds());
            inTasks += seconds;
            if (task.kind == TaskKind::Copy) out.copyBytesPerSecond.push_back(static_cast<double>(schedule.copies[task.work].bytes) / seconds);
            if (task.kind != TaskKind::Kernel || (strategyOnly && (task.role == TaskRole::Op || task.role == TaskRole::OptimizerKernel))) continue;
            const KernelWork& work = schedule.kernels[task.work];
            const WorkKey key = keyOf(work);
            KernelTimings& timings = byWork[key];
            timings.name = work.name;
            timings.work = work;
            sums[key].seconds += seconds;
            ++sums[key].count;
        }
        for (const auto& [key, sum] : sums) byWork[key].seconds.push_back(sum.seconds / sum.count);
    }
    const double steps = static_cast<double>(out.stepSeconds.size());
    out.overheadSeconds = (inSteps - inTasks) / steps;
    if (!strategyOnly)
        for (const Task& task : program.tasks) out.tasks += task.stream == kHostStream ? 0 : 1;
    for (auto& [key, timings] : byWork) out.kernels.push_back(std::move(timings));
    return out;
}

}  // namespace

Json toJson(const KernelWork& work) {
    return {{"name", work.name}, {"class", static_cast<int>(work.cls)}, {"math", nameOf(work.math)}, {"flops", work.flops}, {"bytes", work.bytes},
            {"shape", {work.shape.batch, work.shape.m, work.shape.n, work.shape.k}}, {"causal", work.causal}};
}

KernelWork kernelWorkFrom(const Json& json) {
    KernelWork work;
    work.cls = static_cast<KernelClass>(json["class"].get<int>());
    for (const DType type : {DType::Fp32, DType::Bf16, DType::Fp16, DType::Tf32, DType::Fp64})
        if (json["math"] == nameOf(type)) work.math = type;
    work.flops = json["flops"].get<double>();
    work.bytes = json["bytes"].get<double>();
    work.shape = {json["shape"][0].get<std::int64_t>(), json["shape"][1].get<std::int64_t>(), json["shape"][2].get<std::int64_t>(), json["shape"][3].get<std::int64_t>()};
    work.causal = json["causal"].get<bool>();
    return work;
}

Result<std::vector<StepTimings>> benchStrategy(const Scenario& scenario, const RunRanksOptions& ranks, const ComputeBenchOptions& options, bool all) {
    RealRunOptions run;
    run.ranks = ranks;
    run.warmUp = options.warmUp;
    run.steps = 2 * options.minSteps;
    TRY(const std::optional<RealRun> measured, runForReal(scenario, run));
    std::vector<StepTimings> out;
    if (!measured) return out;
    for (std::size_t r = 0; r < measured->ranks.size(); ++r)
        out.push_back(timingsOf(measured->schedule, measured->schedule.programs[measured->schedule.classes[r].program], measured->ranks[r], !all));
    return out;
}

Result<std::vector<StepTimings>> benchSteps(const Scenario& scenario, const RunRanksOptions& ranks, const ComputeBenchOptions& options) {
    TRY(const Schedule schedule, writeSchedule(scenario));
    RealRunOptions run;
    run.ranks = ranks;
    run.warmUp = options.warmUp;
    run.steps = options.minSteps;
    run.leastSeconds = options.seconds;
    run.mostSteps = options.maxSteps;
    TRY(const std::vector<RealRank> measured, runAlone(schedule, scenario, run));
    std::vector<StepTimings> out;
    for (const RealRank& rank : measured) out.push_back(timingsOf(schedule, schedule.programs.front(), rank, false));
    return out;
}

}  // namespace ringside
