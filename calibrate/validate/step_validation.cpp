#include "calibrate/validate/step_validation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "calibrate/execute/local_scenario.h"
#include "calibrate/execute/real_run.h"
#include "calibrate/fit/robust.h"
#include "calibrate/ranks/shaped_link.h"
#include "calibrate/validate/drift.h"
#include "calibrate/validate/task_sums.h"
#include "sim/prediction.h"

namespace ringside {
namespace {

constexpr double kRoundSeconds = 1;
constexpr int kLeastSteps = 5, kMostSteps = 40;

/// One case on its way to a row.
class CaseRun {
public:
    static Result<std::unique_ptr<CaseRun>> create(const ValidationCase& one, const StepValidationOptions& options, const Catalogs& catalogs) {
        auto run = std::unique_ptr<CaseRun>(new CaseRun());
        run->runOptions_.ranks = options.ranks;
        if (options.ranks.localRanks > 0) run->runOptions_.ranks.localRanks = one.ranks;
        if (one.ranks == 1) run->runOptions_.ranks.linkBitsPerSecond.reset();
        TRY(Json document, localScenario(one.document, one.ranks, run->runOptions_.ranks.linkBitsPerSecond));
        document["profile"] = options.profile;
        TRY(run->scenario_, resolveScenario(document, fmt::format("{} with {}", one.model, one.strategy), catalogs));
        if (options.paced) run->scenario_ = pacedScenario(std::move(run->scenario_));
        run->row_.strategy = one.strategy;
        run->row_.model = one.model;
        run->row_.ranks = one.ranks;
        run->runOptions_.device = options.device;
        run->runOptions_.warmUp = options.warmUp;
        run->runOptions_.paced = options.paced;
        run->runOptions_.steps = 0;
        run->keepTraces_ = options.traces;
        return run;
    }

    /// `drift`: kernels take so many times as long as in the profile.
    Result<void> predictStep(const StepValidationOptions& options, double drift) {
        PricingOptions& pricing = scenario_.pricing;
        pricing.computeScale = pricing.memoryScale = pricing.hostScale = 1 / drift;
        // Over loopback a message is work of the same cores; a slow link takes what it takes.
        if (!runOptions_.ranks.linkBitsPerSecond) pricing.networkScale = 1 / drift;
        TRY(const Prediction prediction, predict(scenario_, {false, options.traces, false}));
        row_.predicted = prediction.stepSeconds;
        row_.p10 = prediction.p10Seconds;
        row_.p90 = prediction.p90Seconds;
        row_.exposed = {"communication_exposed", prediction.breakdown.communicationExposed.seconds(), 0};
        row_.communication = {"communication", prediction.breakdown.communication().seconds(), 0};
        predictedSums_ = taskSums(*prediction.schedule, prediction.timeline.classes);
        period_ = prediction.schedule->period;
        if (options.traces) row_.predictedTrace = traceOf(prediction);
        if (runOptions_.steps > 0) return {};  // planned already
        int steps = options.steps > 0 ? options.steps : std::clamp(static_cast<int>(std::lround(kRoundSeconds / std::max(row_.predicted, 1e-4))), kLeastSteps, kMostSteps);
        // Steps of several kinds take turns: whole turns, or their mean says nothing.
        if (period_ > 1) steps = static_cast<int>((steps + period_ - 1) / period_ * period_);
        runOptions_.steps = row_.steps = steps;
        return {};
    }

    /// False in a process that is not rank 0.
    Result<bool> round(StepValidation& out) {
        TRY(const std::optional<RealRun> run, runForReal(scenario_, runOptions_));
        if (!run) return false;
        out.device = run->deviceName;
        out.libraries = run->libraries;
        steps_.push_back(run->stepSeconds);
        row_.rounds.push_back(period_ > 1 ? std::accumulate(run->stepSeconds.begin(), run->stepSeconds.end(), 0.0) / static_cast<double>(run->stepSeconds.size()) : median(run->stepSeconds));
        // The same Schedule, the same bytes: of the ranks as they were run. (predict() may stand one rank for all, and knows when the
        // device hands back what was freed late.)
        row_.predictedPeak = 0;
        for (const RankClass& rank : run->schedule.classes) row_.predictedPeak = std::max(row_.predictedPeak, trackMemory(run->schedule.programs[rank.program], {.setup = false}).peakAllocated);
        for (const RealRank& rank : run->ranks) row_.measuredPeak = std::max(row_.measuredPeak, rank.memory.peakAllocated);
        for (std::size_t s = 0; s < run->stepSeconds.size(); ++s) {
            std::vector<std::vector<TaskTimes>> times;
            for (const RealRank& rank : run->ranks) times.push_back(rank.tasks[s]);
            sums_.push_back(taskSums(run->schedule, times));
        }
        const Timeline timeline = run->timeline();
        Trace trace = run->trace();
        const Breakdown breakdown = breakdownOf(trace, lastRank(timeline), timeline.stepTime);
        exposed_.push_back(breakdown.communicationExposed.seconds());
        communication_.push_back(breakdown.communication().seconds());
        if (keepTraces_) traces_.push_back(std::move(trace));
        return true;
    }

    ValidationRow finish() {
        row_.measured = median(row_.rounds);
        row_.noiseFloor = noiseFloorOf(steps_, row_.rounds);
        row_.exposed.measured = median(exposed_);
        row_.communication.measured = median(communication_);
        row_.phases = compared(&TaskSums::phases);
        row_.classes = compared(&TaskSums::classes);
        std::stable_sort(row_.classes.begin(), row_.classes.end(), [](const Compared& a, const Compared& b) { return a.measured > b.measured; });
        if (keepTraces_) {
            std::size_t middle = 0;
            for (std::size_t r = 1; r < row_.rounds.size(); ++r)
                if (std::abs(row_.rounds[r] - row_.measured) < std::abs(row_.rounds[middle] - row_.measured)) middle = r;
            row_.measuredTrace = std::move(traces_[middle]);
        }
        return std::move(row_);
    }

private:
    std::vector<Compared> compared(std::map<std::string, double> TaskSums::*which) const {
        std::map<std::string, std::vector<double>> measured;
        for (const auto& [name, seconds] : predictedSums_.*which) measured[name];
        for (const TaskSums& sums : sums_)
            for (const auto& [name, seconds] : sums.*which) measured[name].push_back(seconds);
        std::vector<Compared> out;
        for (const auto& [name, seconds] : measured) {
            const auto predicted = (predictedSums_.*which).find(name);
            out.push_back({name, predicted == (predictedSums_.*which).end() ? 0 : predicted->second, seconds.empty() ? 0 : median(seconds)});
        }
        return out;
    }

    Scenario scenario_;
    RealRunOptions runOptions_;
    ValidationRow row_;
    std::int64_t period_ = 1;
    bool keepTraces_ = false;
    TaskSums predictedSums_;
    std::vector<std::vector<double>> steps_;  // [round][step]
    std::vector<TaskSums> sums_;              // of every measured step
    std::vector<double> exposed_, communication_;
    std::vector<Trace> traces_;
};

}  // namespace

Result<std::optional<StepValidation>> validateSteps(const std::vector<ValidationCase>& cases, const StepValidationOptions& options, const Catalogs& catalogs, const ValidationProgress& progress) {
    TRY(const int world, rankCount(options.ranks));
    if (options.ranks.linkBitsPerSecond) TRY_VOID(shapedLinkSupport());
    StepValidation out;
    bool isRank0 = true;
    std::vector<std::unique_ptr<CaseRun>> runs(cases.size());
    const auto skip = [&](std::size_t c, const std::string& reason) {
        out.skipped.push_back({cases[c].strategy, cases[c].model, cases[c].ranks, reason});
        runs[c].reset();
    };
    for (std::size_t c = 0; c < cases.size(); ++c) {
        if (options.ranks.localRanks == 0 && cases[c].ranks != world) {
            skip(c, fmt::format("needs {} rank, but {} were started", cases[c].ranks, world));
            continue;
        }
        TRY(runs[c], CaseRun::create(cases[c], options, catalogs));
        const Result<void> predicted = runs[c]->predictStep(options, 1);
        if (!predicted && predicted.error().code == ErrorCode::BadInput) skip(c, predicted.error().toString());
        else TRY_VOID(predicted);
    }
    const auto rounds = static_cast<std::size_t>(options.rounds);
    std::vector<std::vector<double>> probes;
    for (std::size_t r = 0; r < rounds; ++r) {
        if (!options.paced) {  // those that sleep know no drift
            TRY(std::vector<double> probe, probeDrift(options.references, options.ranks, catalogs));
            if (!probe.empty()) probes.push_back(std::move(probe));
        }
        for (std::size_t c = 0; c < cases.size(); ++c) {
            if (progress) progress(r * cases.size() + c, rounds * cases.size());
            if (!runs[c]) continue;
            const Result<bool> done = runs[c]->round(out);
            if (!done && done.error().code == ErrorCode::MissingCapability && r == 0) skip(c, done.error().toString());
            else TRY_VOID(done);
            if (done) isRank0 = *done;
        }
    }
    if (!isRank0) return std::optional<StepValidation>();
    if (!probes.empty()) {
        out.drift = driftOf(probes);
        for (std::unique_ptr<CaseRun>& run : runs)
            if (run) TRY_VOID(run->predictStep(options, *out.drift));
    }
    for (std::unique_ptr<CaseRun>& run : runs)
        if (run) out.rows.push_back(run->finish());
    if (out.rows.empty())
        return failure(ErrorCode::MissingCapability, "validate", out.skipped.empty() ? "there is nothing to run" : fmt::format("none of {} cases can be run here; the first: {}", out.skipped.size(), out.skipped.front().reason));
    return std::optional(std::move(out));
}

}  // namespace ringside
