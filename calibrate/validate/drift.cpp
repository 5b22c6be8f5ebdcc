#include "calibrate/validate/drift.h"

#include <algorithm>

#include "calibrate/fit/robust.h"
#include "calibrate/measure/calibration_models.h"
#include "calibrate/measure/compute_bench.h"

namespace ringside {

Result<std::vector<double>> probeDrift(std::span<const ReferenceStep> steps, const RunRanksOptions& ranks, const Catalogs& catalogs) {
    std::vector<double> out;
    const std::vector<CalibrationModel> models = referenceModels();
    TRY(const int world, rankCount(ranks));
    RunRanksOptions probe = ranks;
    probe.linkBitsPerSecond.reset();
    for (const ReferenceStep& step : steps) {
        const auto model = std::find_if(models.begin(), models.end(), [&](const CalibrationModel& one) { return one.name == step.model; });
        // What slows one of two cores down does not slow a rank on the other: steps of as many ranks only.
        if (model == models.end() || step.ranks != world) continue;
        TRY(const Scenario scenario, resolveScenario(model->document, model->name, catalogs));
        TRY(const std::vector<StepTimings> timings, benchSteps(scenario, probe, {1, 6, 40, 0.3}));
        std::vector<double> seconds;
        for (const StepTimings& rank : timings) seconds.insert(seconds.end(), rank.stepSeconds.begin(), rank.stepSeconds.end());
        if (!seconds.empty()) out.push_back(median(seconds) / step.seconds);
    }
    return out;
}

double driftOf(std::span<const std::vector<double>> probes) {
    // Of each step the median over the probes, as the rows' own figures are medians over rounds; then the median of the steps.
    std::vector<std::vector<double>> bySteps;
    for (const std::vector<double>& probe : probes)
        for (std::size_t s = 0; s < probe.size(); ++s) {
            if (bySteps.size() <= s) bySteps.emplace_back();
            bySteps[s].push_back(probe[s]);
        }
    std::vector<double> factors;
    for (const std::vector<double>& step : bySteps) factors.push_back(median(step));
    return factors.empty() ? 1 : median(factors);
}

}  // namespace ringside
