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

StepTimings timingsOf(const Schedule& schedule, const RealRank& rank) {
    const RankProgram& program = schedule.programs.front();
    std::map<WorkKey, KernelTimings> byWork;
    StepTimings out;
    out.stepSeconds = rank.stepSeconds;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.stream == kHostStream) continue;
        ++out.tasks;
        std::vector<double> seconds;
        for (const std::vector<TaskTimes>& step : rank.tasks) seconds.push_back(std::max(1e-9, (step[t].end - step[t].start).seconds()));
        out.kernelSeconds += median(seconds);
        if (task.kind == TaskKind::Copy)
            for (const double s : seconds) out.copyBytesPerSecond.push_back(static_cast<double>(schedule.copies[task.work].bytes) / s);
        if (task.kind != TaskKind::Kernel) continue;
        const KernelWork& work = schedule.kernels[task.work];
        KernelTimings& timings = byWork[keyOf(work)];
        timings.name = work.name;
        timings.work = work;
        timings.seconds.insert(timings.seconds.end(), seconds.begin(), seconds.end());
    }
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
    for (const RealRank& rank : measured) out.push_back(timingsOf(schedule, rank));
    return out;
}

}  // namespace ringside
