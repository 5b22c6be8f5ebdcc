#include "sim/study/scaling.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <variant>

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include "model/base/check.h"
#include "sim/study/scenario_patch.h"
#include "sim/study/threads.h"

namespace ringside {
namespace {

constexpr std::size_t kMostPoints = 100000;

/// What every point of one strategy shares: the scenario and the batch.
struct Line {
    std::string strategy;
    Json document;                               // without device count and batch
    std::int64_t microBatch = 1, gradAccum = 1;  // weak: of every point; strong: the micro-batch wanted
    std::int64_t globalBatch = 0;                // strong
    std::string unusable;                        // why the line cannot be drawn at all
    std::string model, device;                   // names, for titles
};

struct Cell {
    std::size_t line = 0;
    std::int64_t devices = 0;
};

using Outcome = std::variant<SkippedPoint, ScalingPoint>;

std::int64_t batchKey(const Json& document, const char* key) {  // 0: not given, or not a count (resolveScenario says so)
    const auto training = document.find("training");
    if (training == document.end() || !training->is_object() || !training->contains(key) || !(*training)[key].is_number()) return 0;
    return (*training)[key].get<std::int64_t>();
}

void eraseBatch(Json& document) {
    if (!document.contains("training")) return;
    for (const char* key : {"micro_batch", "grad_accum", "global_batch"}) document["training"].erase(key);
}

void setBatch(Json& document, std::int64_t microBatch, std::int64_t gradAccum) {
    document["training"]["micro_batch"] = microBatch;
    document["training"]["grad_accum"] = gradAccum;
}

void takeNames(Line& line, const Scenario& scenario) {
    line.model = scenario.model.name;
    line.device = scenario.cluster.nodes.front().kind.device.fullName;
}

/// The batch of a line: what the scenario says, read at the baseline's device count.
Result<Line> lineFor(const std::string& strategy, const ScalingRequest& request, std::int64_t baseline, const Catalogs& catalogs) {
    Line line;
    line.strategy = strategy;
    line.document = request.scenario;
    setStrategy(line.document, strategy);
    const std::int64_t micro = batchKey(line.document, "micro_batch"), accum = batchKey(line.document, "grad_accum"),
                       global = batchKey(line.document, "global_batch");
    Json atBaseline = line.document;
    TRY_VOID(setDevices(atBaseline, baseline, request.source, catalogs));
    if (request.mode == ScalingMode::Strong && global > 0) {
        // Any count must do, also one that the baseline cannot split: only the shape of the rest is checked here.
        eraseBatch(atBaseline);
        TRY(const Scenario scenario, resolveScenario(atBaseline, request.source, catalogs));
        takeNames(line, scenario);
        line.globalBatch = global;
        line.microBatch = micro;
        line.gradAccum = std::max<std::int64_t>(1, accum);
    } else {
        if (micro > 0 && accum > 0 && global > 0) atBaseline["training"].erase("global_batch");  // a result names all three
        TRY(const Scenario scenario, resolveScenario(atBaseline, request.source, catalogs));
        takeNames(line, scenario);
        line.microBatch = scenario.training.microBatch;
        line.gradAccum = scenario.training.gradAccum;
        line.globalBatch = scenario.globalBatch();
    }
    eraseBatch(line.document);
    return line;
}

Result<Scenario> scenarioAt(const Line& line, std::int64_t devices, const ScalingRequest& request, const Catalogs& catalogs) {
    Json document = line.document;
    TRY_VOID(setDevices(document, devices, request.source, catalogs));
    if (request.mode == ScalingMode::Weak) {
        setBatch(document, line.microBatch, line.gradAccum);
    } else {
        // One sample per replica and step: the global batch of that is the number of replicas.
        TRY(const Scenario probe, resolveScenario(document, request.source, catalogs));
        const std::int64_t replicas = probe.globalBatch();
        const std::int64_t wanted = line.microBatch > 0 ? line.microBatch : std::max<std::int64_t>(1, line.globalBatch / replicas / line.gradAccum);
        const auto split = splitBatch(line.globalBatch, replicas, wanted);
        if (!split)
            return badInput(
                "", fmt::format("a global batch of {} cannot be split evenly over {} replicas; take a --global-batch that is a multiple of {}",
                                line.globalBatch, replicas, replicas));
        setBatch(document, split->microBatch, split->gradAccum);
    }
    return resolveScenario(document, request.source, catalogs);
}

Outcome outcomeOf(const Line& line, std::int64_t devices, const ScalingRequest& request, const Catalogs& catalogs) {
    const auto skip = [&](const std::string& reason) { return SkippedPoint{devices, line.strategy, reason}; };
    if (!line.unusable.empty()) return skip(line.unusable);
    const auto scenario = scenarioAt(line, devices, request, catalogs);
    if (!scenario) return skip(scenario.error().message);
    PredictOptions options;
    options.sensitivity = false;
    options.explain = false;
    const auto prediction = predict(*scenario, options);
    if (!prediction) return skip(prediction.error().message);
    ScalingPoint point;
    point.devices = devices;
    point.strategy = line.strategy;
    point.stepSeconds = prediction->stepSeconds;
    point.samplesPerSecond = prediction->samplesPerSecond;
    point.tokensPerSecond = prediction->tokensPerSecond;
    point.exposedSeconds = prediction->breakdown.communicationExposed.seconds();
    point.mfu = prediction->mfu;
    point.peakBytes = prediction->memory.peakDevice();
    point.verdict = prediction->verdict;
    point.microBatch = scenario->training.microBatch;
    point.gradAccum = scenario->training.gradAccum;
    point.globalBatch = scenario->globalBatch();
    return point;
}

Line unusableLine(const std::string& strategy, const std::string& why) {
    Line line;
    line.strategy = strategy;
    line.unusable = why;
    return line;
}

std::string scenarioStrategy(const Json& document) {
    const auto strategy = document.find("strategy");
    if (strategy == document.end()) return "ddp";
    if (strategy->is_string()) return strategy->get<std::string>();
    if (strategy->is_object() && strategy->contains("name") && (*strategy)["name"].is_string()) return (*strategy)["name"].get<std::string>();
    return "ddp";
}

}  // namespace

std::string_view nameOf(ScalingMode mode) { return mode == ScalingMode::Weak ? "weak" : "strong"; }

SpeedUp speedUpOf(ScalingMode mode, std::int64_t baselineDevices, double baselineStepSeconds, std::int64_t devices, double stepSeconds) {
    CHECK(baselineDevices > 0 && devices > 0 && baselineStepSeconds > 0 && stepSeconds > 0);
    const double growth = static_cast<double>(devices) / static_cast<double>(baselineDevices), times = baselineStepSeconds / stepSeconds;
    return mode == ScalingMode::Weak ? SpeedUp{growth * times, times} : SpeedUp{times, times / growth};
}

std::optional<BatchSplit> splitBatch(std::int64_t globalBatch, std::int64_t replicas, std::int64_t wantedMicroBatch) {
    CHECK(globalBatch >= 1 && replicas >= 1 && wantedMicroBatch >= 1);
    if (globalBatch % replicas != 0) return std::nullopt;
    const std::int64_t perReplica = globalBatch / replicas;
    std::int64_t micro = std::min(wantedMicroBatch, perReplica);
    while (perReplica % micro != 0) --micro;
    return BatchSplit{micro, perReplica / micro};
}

Result<ScalingStudy> studyScaling(const ScalingRequest& request, const Catalogs& catalogs) {
    if (request.devices.empty()) return badInput("--devices", "expected at least one device count, as in 1,2,4,8");
    const std::set<std::int64_t> counts(request.devices.begin(), request.devices.end());
    if (*counts.begin() < 1) return badInput("--devices", fmt::format("{} is not a device count; expected 1 or more", *counts.begin()));
    if (request.baseline && *request.baseline < 1)
        return badInput("--baseline", fmt::format("{} is not a device count; expected 1 or more", *request.baseline));

    ScalingStudy study;
    study.mode = request.mode;
    study.baseline = request.baseline.value_or(*counts.begin());
    std::vector<std::string> names = request.strategies;
    if (names.empty()) names.push_back(scenarioStrategy(request.scenario));
    if (names.size() * (counts.size() + 1) > kMostPoints)
        return badInput("--devices", fmt::format("{} points are too many; expected at most {}", names.size() * counts.size(), kMostPoints));

    std::vector<Line> lines;
    std::optional<Error> firstFault;
    for (const std::string& name : names) {
        if (const auto known = strategyByName(name); !known) return badInput("--strategies", known.error().message);
        auto line = lineFor(name, request, study.baseline, catalogs);
        if (!line && !firstFault) firstFault = line.error();
        lines.push_back(line ? std::move(*line) : unusableLine(name, line.error().message));
    }
    if (std::all_of(lines.begin(), lines.end(), [](const Line& line) { return !line.unusable.empty(); })) return tl::unexpected<Error>(*firstFault);

    // A baseline that was not asked for is predicted too, in front of its line.
    std::vector<Cell> cells;
    for (std::size_t l = 0; l < lines.size(); ++l) {
        if (!counts.contains(study.baseline)) cells.push_back({l, study.baseline});
        for (const std::int64_t devices : counts) cells.push_back({l, devices});
    }
    std::vector<Outcome> outcomes(cells.size());
    std::atomic<bool> stopped = false;
    std::mutex telling;
    std::size_t done = 0;
    onThreads(request.threads, [&] {
        tbb::parallel_for(std::size_t{0}, cells.size(), [&](std::size_t i) {
            if (request.stop && (stopped || request.stop())) {
                stopped = true;
                return;
            }
            outcomes[i] = outcomeOf(lines[cells[i].line], cells[i].devices, request, catalogs);
            const std::lock_guard lock(telling);
            ++done;
            if (request.progress) request.progress(done, cells.size());
        });
    });
    if (stopped) return failure(ErrorCode::RuntimeFailure, "", "stopped");

    // Unless a baseline was asked for, the fewest devices that every line could be predicted on are it.
    if (!request.baseline) {
        for (const std::int64_t devices : counts) {
            const bool everywhere = std::none_of(cells.begin(), cells.end(), [&](const Cell& cell) {
                return cell.devices == devices && lines[cell.line].unusable.empty() && !std::holds_alternative<ScalingPoint>(outcomes[static_cast<std::size_t>(&cell - cells.data())]);
            });
            if (!everywhere) continue;
            study.baseline = devices;
            break;
        }
    }
    for (std::size_t l = 0; l < lines.size(); ++l) {
        std::optional<ScalingPoint> base;
        for (std::size_t i = 0; i < cells.size(); ++i)
            if (cells[i].line == l && cells[i].devices == study.baseline && std::holds_alternative<ScalingPoint>(outcomes[i]))
                base = std::get<ScalingPoint>(outcomes[i]);
        if (base) {
            base->speedUp = SpeedUp{1, 1};
            study.baselines.push_back(*base);
        }
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (cells[i].line != l) continue;
            if (const auto* skipped = std::get_if<SkippedPoint>(&outcomes[i])) {
                study.skipped.push_back(*skipped);
            } else if (counts.contains(cells[i].devices)) {
                ScalingPoint point = std::get<ScalingPoint>(outcomes[i]);
                if (base) point.speedUp = speedUpOf(request.mode, base->devices, base->stepSeconds, point.devices, point.stepSeconds);
                study.points.push_back(std::move(point));
            }
        }
    }
    const auto named = std::find_if(lines.begin(), lines.end(), [](const Line& line) { return line.unusable.empty(); });
    study.model = named->model;
    study.device = named->device;
    return study;
}

}  // namespace ringside
