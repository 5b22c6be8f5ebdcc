#include "sim/study/plan_trial.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/memory/optimizer_state.h"
#include "sim/study/money.h"

namespace ringside {
namespace {

constexpr double kLeastGoodput = 1e-3;  // below it a run never ends
constexpr PredictOptions kBare = {false, false, false};

std::string recomputeWords(Recompute recompute) { return recompute == Recompute::None ? "no recompute" : fmt::format("{} recompute", nameOf(recompute)); }

Trial refused(const Error& error) {
    Trial trial;
    trial.reason = error.message;
    return trial;
}

Trial outOfMemory(const Prediction& prediction, const TrialSetting& setting) {
    const MemoryReport& memory = prediction.memory;
    const RankProgram& program = prediction.memoryProgram();
    const std::string where = memory.failedBuffer < program.buffers.size()
                                  ? fmt::format("{} ({})", bufferName(*prediction.schedule, program.buffers[memory.failedBuffer]),
                                                formatBytes(program.buffers[memory.failedBuffer].bytes))
                                  : "a tensor";
    Trial trial;
    trial.outcome = Trial::Outcome::OutOfMemory;
    trial.lackingBytes = std::max<Bytes>(1, memory.peakDevice() - prediction.capacityBytes);
    trial.reason = fmt::format("out of memory with micro-batch {} and {}: no room for {}; {} lacking of {}", setting.microBatch, recomputeWords(setting.recompute), where,
                               formatBytes(trial.lackingBytes), formatBytes(prediction.capacityBytes));
    return trial;
}

std::string deviceKinds(const Cluster& cluster) {
    std::string kinds;
    for (const NodeGroup& group : cluster.nodes)
        if (kinds.find(group.kind.device.name) == std::string::npos) kinds += (kinds.empty() ? "" : " + ") + group.kind.device.name;
    return kinds;
}

/// Wall-clock, money and energy; needs the step's time and the cluster.
Result<void> addEconomics(Candidate& c, const PlanQuery& query, const Cluster& cluster, Bytes stateBytes, std::int64_t globalBatch, std::optional<double> samples) {
    TRY(const CheckpointCost checkpoint, checkpointCost(stateBytes, cluster, query.checkpoint));
    c.goodput = bestGoodput(c.devices, checkpoint, query.failures);
    if (c.goodput.goodput < kLeastGoodput)
        return badInput("--mtbf-hours", fmt::format("failures of {} devices come so often that next to nothing is kept between them; no progress is possible", formatCount(c.devices)));
    const double batch = static_cast<double>(globalBatch);
    TRY(c.usdPerHour, clusterUsdPerHour(cluster, query.prices, query.commitment));
    c.usdPerStep = usdFor(c.usdPerHour, c.stepSeconds);
    c.secondsPerSample = c.stepSeconds / batch / c.goodput.goodput;
    c.usdPerSample = usdFor(c.usdPerHour, c.secondsPerSample);
    if (const Result<double> power = clusterPowerW(cluster, c.activity, query.energy)) {
        c.powerW = *power;
        c.kwhPerStep = kilowattHours(*power, c.stepSeconds);
        c.kwhPerSample = kilowattHours(*power, c.secondsPerSample);
    }
    if (!samples) return {};
    c.days = *samples * c.secondsPerSample / 86400;
    c.totalUsd = *samples * c.usdPerSample;
    if (c.kwhPerSample) c.totalKwh = *samples * *c.kwhPerSample;
    if (c.totalKwh && query.energy.gramsCo2PerKwh) c.totalCo2Kg = *c.totalKwh * *query.energy.gramsCo2PerKwh / 1000;
    return {};
}

Result<Trial> tryResolved(const PlanQuery& query, const Json& document, const Scenario& scenario, const HardwareOption& option, const TrialSetting& setting,
                          std::int64_t globalBatch, std::optional<double> samples) {
    TRY(const Prediction prediction, predict(scenario, kBare));
    if (prediction.verdict == MemoryVerdict::OutOfMemory) return outOfMemory(prediction, setting);
    const Breakdown& spent = prediction.breakdown;
    const double step = prediction.stepSeconds;

    Trial trial;
    trial.outcome = Trial::Outcome::Fits;
    Candidate& c = trial.candidate;
    c.hardware = option.name;
    c.device = deviceKinds(scenario.cluster);
    c.devices = scenario.cluster.deviceCount();
    c.nodes = scenario.cluster.nodeCount();
    c.strategy = scenario.parallel.strategy;
    c.microBatch = setting.microBatch;
    c.gradAccum = scenario.training.gradAccum;
    c.recompute = setting.recompute;
    c.knobs = setting.knobs;
    c.scenario = document;
    c.stepSeconds = step;
    c.samplesPerSecond = prediction.samplesPerSecond;
    c.tokensPerSecond = prediction.tokensPerSecond;
    c.mfu = prediction.mfu;
    c.exposedShare = spent.communicationExposed.seconds() / step;
    c.activity = {(spent.compute + spent.optimizer).seconds() / step, c.exposedShare};
    c.peakBytes = prediction.memory.peakDevice();
    c.capacityBytes = prediction.capacityBytes;
    c.verdict = prediction.verdict;
    TRY(const Workload whole, buildWorkload(scenario.model, scenario.training));
    TRY_VOID(addEconomics(c, query, scenario.cluster, checkpointBytes(whole, scenario.training), globalBatch, samples));
    return trial;
}

}  // namespace

Bytes checkpointBytes(const Workload& whole, const TrainingConfig& training) {
    Bytes bytes = 0;
    for (std::size_t l = 0; l < whole.layers.size(); ++l) {
        const LayerType& type = whole.typeOf(l);
        for (std::size_t p = 0; p < type.parameters.size(); ++p) {
            if (whole.isTied(static_cast<int>(l), static_cast<int>(p))) continue;
            const Parameter& parameter = type.parameters[p];
            bytes += parameter.elements() * sizeOf(training.precision.parameter) + optimizerStateBytes(training.optimizer, training.precision, parameter.shape);
        }
    }
    return bytes;
}

Result<Json> trialDocument(const PlanQuery& query, const HardwareOption& option, std::int64_t devices, const std::string& strategy,
                           const TrialSetting& setting, std::int64_t globalBatch) {
    Json document = query.base;
    TRY_VOID(layHardware(document, option, devices));
    Json& training = document["training"];
    if (!training.is_object()) training = Json::object();
    training.erase("grad_accum");
    training["micro_batch"] = setting.microBatch;
    training["global_batch"] = globalBatch;
    training["recompute"] = nameOf(setting.recompute);
    Json named = {{"name", strategy}};
    named.update(setting.knobs);
    document["strategy"] = std::move(named);
    return document;
}

Trial tryOut(const PlanQuery& query, const Catalogs& catalogs, const HardwareOption& option, std::int64_t devices, const std::string& strategy,
             const TrialSetting& setting, std::int64_t globalBatch, std::optional<double> samples) {
    const Result<Json> document = trialDocument(query, option, devices, strategy, setting, globalBatch);
    if (!document) return refused(document.error());
    const Result<Scenario> scenario = resolveScenario(*document, query.source, catalogs);
    if (!scenario) return refused(scenario.error());
    Result<Trial> trial = tryResolved(query, *document, *scenario, option, setting, globalBatch, samples);
    return trial ? std::move(*trial) : refused(trial.error());
}

}  // namespace ringside
