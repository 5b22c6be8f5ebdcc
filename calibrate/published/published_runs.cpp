#include "calibrate/published/published_runs.h"

#include <mutex>
#include <set>

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include "sim/study/threads.h"

namespace ringside {
namespace {

bool isRun(const PublishedRecord& record) { return record.unreadable.empty() && (record.kind == RecordKind::Training || record.kind == RecordKind::Memory); }

/// The device's profile with other figures, but what the scenario sets for itself (a compiled model's launches, say).
Profile profileWith(const Device& device, const Profile& own, const PublishedFigures& figures) {
    if (own.environment || !own.kernels.empty()) return own;  // measured: no figure of ours
    const Profile shipped = datasheetProfile(device);
    Profile profile = datasheetProfile(device, figures);
    for (const std::string& key : profileFigureKeys()) {
        const Figure* set = findProfileFigure(own, key);
        const Figure* before = findProfileFigure(shipped, key);
        Figure* after = findProfileFigure(profile, key);
        if (set && before && after && *set != *before) *after = *set;
    }
    return profile;
}

Result<PredictedRun> predicted(const Scenario& scenario, bool memory) {
    TRY(const Prediction prediction, predict(scenario, {.sensitivity = false, .memoryTimeline = false, .explain = false, .memory = memory}));
    PredictedRun run;
    run.stepSeconds = prediction.stepSeconds;
    run.p10Seconds = prediction.p10Seconds;
    run.p90Seconds = prediction.p90Seconds;
    run.mfu = prediction.mfu;
    run.causes = causesOf(prediction, scenario.parallel.pp > 1);
    if (!memory) return run;
    run.peakAllocated = prediction.memory.peakAllocated;
    run.peakReserved = prediction.memory.peakReserved;
    run.atPeak = prediction.memory.atPeak;
    run.peakDevice = prediction.memory.peakDevice();
    run.outOfMemory = prediction.verdict == MemoryVerdict::OutOfMemory;
    return run;
}

/// Runs of one source with one name of a model on one device are taken to be configured alike where the source is silent.
std::string seriesOf(const PublishedRecord& record) { return record.source + "|" + record.model.name + "|" + record.hardware.gpu; }

void predictInto(PublishedRun& run) {
    auto result = predicted(run.mapped.scenario, true);
    if (result) run.predicted = *result;
    else run.reason = result.error().message;
}

/// True if its silence on recompute was settled by itself.
bool prepare(PublishedRun& run, const PublishedRecord& record, const Catalogs& catalogs) {
    auto mapped = toScenario(record, catalogs);
    if (!mapped) {
        run.reason = mapped.error().message;
        return false;
    }
    run.mapped = std::move(*mapped);
    predictInto(run);
    if (!run.reason.empty() || !run.mapped.recomputeOpen || !run.predicted.outOfMemory) return false;
    takeFullRecompute(run.mapped, "it does not fit without");
    predictInto(run);
    return true;
}

}  // namespace

void forEachOnThreads(std::size_t count, int threads, const std::function<void(std::size_t)>& work, const std::function<void(std::size_t)>& progress) {
    std::size_t done = 0;
    std::mutex reporting;
    onThreads(threads, [&] {
        tbb::parallel_for(
            tbb::blocked_range<std::size_t>(0, count, 1),
            [&](const tbb::blocked_range<std::size_t>& range) {
                for (std::size_t i = range.begin(); i < range.end(); ++i) {
                    work(i);
                    if (!progress) continue;
                    const std::lock_guard lock(reporting);
                    progress(++done);
                }
            },
            tbb::simple_partitioner());
    });
}

PeakCheck peakCheck(const PredictedRun& predicted, double measuredSeconds) {
    constexpr double kMostMfu = 1.05;
    const double mfu = predicted.mfu * predicted.stepSeconds / measuredSeconds;
    return {mfu, mfu <= kMostMfu};
}

Result<PredictedRun> predictRun(const Scenario& scenario, const PublishedFigures& figures, bool memory) {
    Scenario other = scenario;
    for (std::size_t g = 0; g < other.profiles.size(); ++g) other.profiles[g] = profileWith(other.cluster.nodes[g].kind.device, other.profiles[g], figures);
    return predicted(other, memory);
}

std::vector<PublishedRun> prepareRuns(const std::vector<PublishedRecord>& records, const Catalogs& catalogs, int threads, const std::function<void(std::size_t)>& progress) {
    std::vector<PublishedRun> runs(records.size());
    std::vector<char> needed(records.size(), 0);
    forEachOnThreads(
        records.size(), threads,
        [&](std::size_t i) {
            if (isRun(records[i])) needed[i] = prepare(runs[i], records[i], catalogs) ? 1 : 0;
        },
        progress);
    std::set<std::string> recomputing;
    for (std::size_t i = 0; i < records.size(); ++i)
        if (needed[i]) recomputing.insert(seriesOf(records[i]));
    std::vector<std::size_t> again;
    for (std::size_t i = 0; i < records.size(); ++i)
        if (isRun(records[i]) && runs[i].reason.empty() && runs[i].mapped.recomputeOpen && recomputing.contains(seriesOf(records[i]))) again.push_back(i);
    forEachOnThreads(again.size(), threads, [&](std::size_t a) {
        PublishedRun& run = runs[again[a]];
        takeFullRecompute(run.mapped, "other runs of this series do not fit without");
        predictInto(run);
    });
    return runs;
}

}  // namespace ringside
