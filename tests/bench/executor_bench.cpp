// What playing a Schedule costs beyond its kernels: budget 3 % of a step. A step of one rank is its kernels one after another, so all
// that it takes longer than they do is the executor's: issuing, waking, events, allocation, notes of times.
#include <algorithm>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "calibrate/execute/local_scenario.h"
#include "calibrate/execute/real_run.h"
#include "calibrate/validate/validation_models.h"
#include "sim/prediction.h"

namespace ringside {
namespace {

double medianOf(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

void executorStep(benchmark::State& state, const std::string& name) {
    for (const ValidationModel& model : singleRankModels()) {
        if (model.name != name) continue;
        const Result<Scenario> scenario = [&]() -> Result<Scenario> {
            TRY(const Catalogs catalogs, Catalogs::builtin());
            TRY(const Json here, localScenario(model.document, 1, {}));
            return resolveScenario(here, model.name, catalogs);
        }();
        if (!scenario) return state.SkipWithError(scenario.error().toString().c_str());
        const Result<Schedule> schedule = writeSchedule(*scenario);
        if (!schedule) return state.SkipWithError(schedule.error().toString().c_str());
        RealRunOptions options;
        options.ranks.localRanks = 1;
        options.steps = 40;
        options.warmUp = 5;
        std::vector<double> steps, shares;
        for (auto _ : state) {
            const Result<std::vector<RealRank>> ranks = runAlone(*schedule, *scenario, options);
            if (!ranks || ranks->empty()) return state.SkipWithError(ranks ? "no rank" : ranks.error().toString().c_str());
            const RankProgram& program = schedule->programs.front();
            for (std::size_t s = 0; s < ranks->front().tasks.size(); ++s) {
                double inTasks = 0;
                for (TaskId t = 0; t < program.tasks.size(); ++t)
                    if (program.tasks[t].stream != kHostStream) inTasks += (ranks->front().tasks[s][t].end - ranks->front().tasks[s][t].start).seconds();
                steps.push_back(ranks->front().stepSeconds[s]);
                shares.push_back(1 - inTasks / ranks->front().stepSeconds[s]);
            }
        }
        state.counters["step_ms"] = medianOf(steps) * 1e3;
        state.counters["outside_kernels_pct"] = medianOf(shares) * 100;
        state.counters["tasks"] = static_cast<double>(schedule->programs.front().tasks.size());
    }
}

BENCHMARK_CAPTURE(executorStep, mlp, std::string("mlp-1536-1536-768-384-b96"))->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(executorStep, gpt, std::string("gpt-320x3-s160-b3"))->Iterations(3)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(executorStep, resnet, std::string("resnet-1-1-1-1-basic-i80-b3"))->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ringside
