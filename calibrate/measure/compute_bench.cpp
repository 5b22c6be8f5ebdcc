#include "calibrate/measure/compute_bench.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "calibrate/execute/real_run.h"
#include "calibrate/fit/robust.h"
#include "sim/prediction.h"

namespace ringside {
namespace {

constexpr double kDisturbed = 1.1;

using WorkKey = std::tuple<std::string, int, int, double, double, std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool>;

WorkKey keyOf(const KernelWork& work) {
    return {std::string(work.name), static_cast<int>(work.cls), static_cast<int>(work.math), work.flops, work.bytes, work.shape.batch, work.shape.m, work.shape.n, work.shape.k, work.causal};
}

/// Whether a collective or a message was under way on the rank while the kernel ran.
bool besideCollective(const RankProgram& program, const std::vector<TaskTimes>& times, TaskId kernel) {
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const TaskKind kind = program.tasks[t].kind;
        if (kind != TaskKind::Collective && kind != TaskKind::Push && kind != TaskKind::Pull) continue;
        if (program.tasks[t].stream != program.tasks[kernel].stream && times[t].start < times[kernel].end && times[kernel].start < times[t].end) return true;
    }
    return false;
}

bool besideAnything(const RankProgram& program, const std::vector<TaskTimes>& times, TaskId collective) {
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (t != collective && (program.tasks[t].kind == TaskKind::Kernel || program.tasks[t].kind == TaskKind::Collective) && times[t].start < times[collective].end && times[collective].start < times[t].end) return true;
    return false;
}

/// Of those that all ranks take part in alike and that neither a kernel nor another one ran beside on any rank: from when the last rank came, which is the one
/// that it took least.
std::vector<StepCollective> collectivesOf(const RealRun& run) {
    std::map<std::pair<CollectiveOp, Bytes>, StepCollective> found;
    const RankProgram& first = run.schedule.programs[run.schedule.classes.front().program];
    for (std::size_t s = 0; s < run.ranks.front().tasks.size(); ++s)
        for (TaskId t = 0; t < first.tasks.size(); ++t) {
            if (first.tasks[t].kind != TaskKind::Collective) continue;
            const CollectiveWork& work = run.schedule.collectives[first.tasks[t].work];
            using enum CollectiveOp;
            if (work.op != AllReduce && work.op != AllGather && work.op != ReduceScatter && work.op != AllToAll) continue;
            double least = 0;
            bool alone = true;
            for (std::size_t r = 0; r < run.ranks.size() && alone; ++r) {
                const RankProgram& program = run.schedule.programs[run.schedule.classes[r].program];
                if (s >= run.ranks[r].tasks.size() || t >= program.tasks.size() || !(program.tasks[t].kind == TaskKind::Collective)) alone = false;
                else if (besideAnything(program, run.ranks[r].tasks[s], t)) alone = false;
                else {
                    const double seconds = (run.ranks[r].tasks[s][t].end - run.ranks[r].tasks[s][t].start).seconds();
                    least = r == 0 ? seconds : std::min(least, seconds);
                }
            }
            if (!alone || !(least > 0)) continue;
            StepCollective& entry = found[{work.op, work.bytes()}];
            entry.op = work.op;
            entry.bytes = work.bytes();
            entry.seconds.push_back(least);
        }
    std::vector<StepCollective> out;
    for (auto& [key, entry] : found) out.push_back(std::move(entry));
    return out;
}

// Steps well above the median were disturbed and do not count. Within a step equal kernels (those of equal layers) are
// taken together, so that a step's kernels add up to what they took in it: the sum of many medians would be too small.
StepTimings timingsOf(const Schedule& schedule, const RankProgram& program, const RealRank& rank) {
    const double middle = median(rank.stepSeconds);
    StepTimings out;
    std::map<WorkKey, KernelTimings> byWork;
    double inTasks = 0, inSteps = 0;
    for (std::size_t s = 0; s < rank.tasks.size(); ++s) {
        if (rank.stepSeconds[s] > kDisturbed * middle) continue;
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
            if (task.kind != TaskKind::Kernel) continue;
            if (besideCollective(program, rank.tasks[s], t)) continue;  // what it takes from the kernel is counted there
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
    if (schedule.world == 1)
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

Result<std::vector<StepTimings>> benchStrategy(const Scenario& scenario, const RunRanksOptions& ranks, const ComputeBenchOptions& options) {
    RealRunOptions run;
    run.ranks = ranks;
    run.warmUp = options.warmUp;
    run.steps = 2 * options.minSteps;
    TRY(const std::optional<RealRun> measured, runForReal(scenario, run));
    std::vector<StepTimings> out;
    if (!measured) return out;
    for (std::size_t r = 0; r < measured->ranks.size(); ++r)
        out.push_back(timingsOf(measured->schedule, measured->schedule.programs[measured->schedule.classes[r].program], measured->ranks[r]));
    out.front().collectives = collectivesOf(*measured);
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
    for (const RealRank& rank : measured) out.push_back(timingsOf(schedule, schedule.programs.front(), rank));
    return out;
}

}  // namespace ringside
