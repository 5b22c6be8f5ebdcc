#include "sim/prediction.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/player/fold_ranks.h"
#include "sim/player/timeline_trace.h"
#include "sim/strategy/layer_plan.h"

namespace ringside {
namespace {

constexpr double kTightAbove = 0.92;    // of the capacity: fragmentation and other processes may take the rest
constexpr double kP90 = 1.2815515655;   // standard normal quantile
constexpr double kMostKernels = 2e7;    // of one rank's step: some gigabytes of tasks
constexpr double kMostTasks = 5e7;      // of all unfolded ranks, likewise

/// The part of [begin, end) that a repeated micro-step adds, beyond what is on the timeline.
double repeatedSeconds(const Schedule& schedule, const Timeline& timeline, Time begin, Time end) {
    if (schedule.steady.times <= 1) return 0;
    const Time from = std::max(begin, timeline.steadyBegin), to = std::min(end, timeline.steadyBegin + timeline.steadyPeriod);
    return from < to ? (to - from).seconds() * static_cast<double>(schedule.steady.times - 1) : 0;
}
double secondsOf(const Schedule& schedule, const Timeline& timeline, const PathSegment& segment) {
    return (segment.end - segment.begin).seconds() + repeatedSeconds(schedule, timeline, segment.begin, segment.end);
}

/// A played step, and which part of all steps are like it.
struct PlayedStep {
    const Timeline& timeline;
    std::vector<PathSegment> path;
    double weight = 1;
};

void addShares(PathShares& shares, const Schedule& schedule, const PlayedStep& step, double stepSeconds) {
    for (const PathSegment& segment : step.path) {
        const double share = step.weight * secondsOf(schedule, step.timeline, segment) / stepSeconds;
        const Task& task = schedule.programs[schedule.classes[segment.rankClass].program].tasks[segment.task];
        if (segment.kind == PathKind::Host) shares.host += share;
        else if (segment.kind == PathKind::Communication) shares.communication += share;
        else if (segment.kind == PathKind::Copy || segment.kind == PathKind::Server) shares.memory += share;
        else if (segment.kind == PathKind::Optimizer) shares.optimizer += share;
        else
            switch (schedule.kernels[task.work].cls) {
                case KernelClass::Gemm: shares.gemm += share; break;
                case KernelClass::Convolution: shares.convolution += share; break;
                case KernelClass::AttentionForward: case KernelClass::AttentionBackward: shares.attention += share; break;
                case KernelClass::Memory: shares.memory += share; break;
            }
    }
}

/// What the model leaves out, by the class of the run.
double modelSpread(const Scenario& scenario, const Profile& profile) {
    const ParallelConfig& parallel = scenario.parallel;
    if (parallel.tp * parallel.pp * parallel.cp > 1) return profile.modelSpreadMesh.value;
    if (scenario.cluster.deviceCount() <= 1) return profile.modelSpreadDevice.value;
    return scenario.cluster.nodeCount() > 1 ? profile.modelSpreadNetwork.value : profile.modelSpreadNode.value;
}

/// First-order propagation: what one figure prices moves together, different figures move apart (docs/models/band.md).
double relativeSpread(const PathShares& shares, const Profile& profile, const Scenario& scenario) {
    const auto gemm = profile.gemmEfficiency.find(scenario.training.precision.math);
    const double parts[] = {(shares.gemm + shares.convolution) * (gemm == profile.gemmEfficiency.end() ? 0.1 : gemm->second.relativeSpread),
                            shares.attention * profile.attentionForwardEfficiency.relativeSpread,
                            (shares.memory + shares.optimizer) * profile.memoryEfficiency.relativeSpread,
                            shares.communication * profile.collectiveBandwidth.relativeSpread,
                            shares.host * profile.launchUs.relativeSpread,
                            modelSpread(scenario, profile)};
    double sum = 0;
    for (const double part : parts) sum += part * part;
    return std::sqrt(sum);
}

/// A task's name without its layer: what is summed in the list of the path's largest items.
std::string groupName(const Schedule& schedule, const PathSegment& segment) {
    const RankProgram& program = schedule.programs[schedule.classes[segment.rankClass].program];
    const Task& task = program.tasks[segment.task];
    if (segment.kind == PathKind::Host) return "host: launching kernels and the training loop";
    if (segment.kind == PathKind::Optimizer) return "optimizer step";
    if (segment.kind == PathKind::Server) return "server: sum and apply";
    if (task.role == TaskRole::Op) {
        const LayerType& type = schedule.workload->typeOf(static_cast<std::size_t>(task.layer));
        return fmt::format("{} {}.{}", nameOf(task.phase), type.name, type.ops[static_cast<std::size_t>(task.op)].name);
    }
    switch (task.role) {
        case TaskRole::BucketCopyIn: return "copy gradients into buckets";
        case TaskRole::BucketCopyOut: return "copy gradients out of buckets";
        case TaskRole::GradientAccumulate: return "accumulate gradients";
        case TaskRole::GradientReduce: return "all-reduce single gradients";
        case TaskRole::GradientDivide: return "divide gradients";
        case TaskRole::GradientCast: return "cast gradients";
        case TaskRole::Push: return "push to the servers";
        case TaskRole::Pull: return "pull from the servers";
        default: return taskName(schedule, task);
    }
}

std::string numberText(double value) { return fmt::format("{:.4g}", value); }

void addRestsOn(Prediction& prediction, const Scenario& scenario) {
    for (std::size_t g = 0; g < scenario.cluster.nodes.size(); ++g) {
        const Device& device = scenario.cluster.nodes[g].kind.device;
        const Profile& profile = scenario.profiles[g];
        const auto add = [&](const std::string& figure, const Figure& f, const std::string& unit) {
            prediction.restsOn.push_back({device.name + " " + figure, numberText(f.value) + unit, std::string(nameOf(f.provenance)), f.source});
        };
        const DType math = scenario.training.precision.math;
        if (const auto peak = device.peakDenseTflops.find(math); peak != device.peakDenseTflops.end())
            prediction.restsOn.push_back({fmt::format("{} peak {}", device.name, nameOf(math)), numberText(peak->second) + " TFLOPS", "datasheet",
                                          device.sources.empty() ? "" : device.sources.front()});
        if (const auto gemm = profile.gemmEfficiency.find(math); gemm != profile.gemmEfficiency.end()) add("best matmul efficiency", gemm->second, " of peak");
        add("attention efficiency", profile.attentionForwardEfficiency, " of peak");
        add("memory efficiency", profile.memoryEfficiency, " of bandwidth");
        add("launch", profile.launchUs, " µs per kernel");
        if (scenario.cluster.deviceCount() <= 1) continue;
        if (scenario.pricing.backend == CollectiveBackend::Gloo) add("collective bandwidth", profile.collectiveBandwidth, " × Gloo's model");
        else if (scenario.cluster.nodeCount() > 1) add("network efficiency", profile.collectiveNetworkEfficiency, " × NCCL's figure");
        else add("link efficiency", profile.collectiveLinkEfficiency, " × NCCL's figure");
    }
}

/// The breakdown of the whole step: of what is on the timeline, and of the repeated micro-step as often as it is left out.
Breakdown wholeBreakdown(const Schedule& schedule, const Timeline& timeline, const RankActivity& activity) {
    const std::int64_t more = schedule.steady.times - 1;
    const Time onTimeline = timeline.stepTime - Time::fromPicoseconds(timeline.steadyPeriod.picoseconds() * more);
    Breakdown sum = activity.breakdown(Time(), onTimeline);
    if (more <= 0) return sum;
    const Breakdown once = activity.breakdown(timeline.steadyBegin, timeline.steadyBegin + timeline.steadyPeriod);
    for (Time Breakdown::*part : {&Breakdown::step, &Breakdown::compute, &Breakdown::optimizer, &Breakdown::communicationHidden, &Breakdown::communicationExposed,
                                  &Breakdown::host, &Breakdown::idle, &Breakdown::copyExposed})
        sum.*part += Time::fromPicoseconds((once.*part).picoseconds() * more);
    return sum;
}

void addBreakdown(Breakdown& sum, const Breakdown& of, double weight) {
    for (Time Breakdown::*part : {&Breakdown::step, &Breakdown::compute, &Breakdown::optimizer, &Breakdown::communicationHidden, &Breakdown::communicationExposed,
                                  &Breakdown::host, &Breakdown::idle, &Breakdown::copyExposed})
        sum.*part += weight == 1 ? of.*part : Time::fromSeconds((of.*part).seconds() * weight);
}

Result<void> checkUnfoldable(const Schedule& schedule) {
    double tasks = 0;
    for (const RankClass& rankClass : schedule.classes)
        tasks += static_cast<double>(schedule.programs[rankClass.program].tasks.size()) * static_cast<double>(rankClass.ranks.count);
    if (tasks > kMostTasks)
        return badInput("perturbation", fmt::format("every rank has to be simulated by itself: {} tasks, more than {}; use fewer devices, layers or micro-steps", formatShortCount(tasks),
                                                    formatShortCount(kMostTasks)));
    return {};
}

/// Stragglers get classes of their own; where ranks meet on several axes, all of them do.
Result<Schedule> withStragglers(Schedule schedule, const Perturbation& perturbation) {
    if (perturbation.stragglers.empty()) return schedule;
    if (std::all_of(schedule.axes.begin(), schedule.axes.end(), [&](const CommAxis& axis) { return axis.size == 1 || axis.size == schedule.world; })) {
        for (const Straggler& straggler : perturbation.stragglers) schedule = isolateRank(schedule, straggler.rank);
    } else {
        TRY_VOID(checkUnfoldable(schedule));
        schedule = unfoldRanks(schedule);
    }
    for (const Straggler& straggler : perturbation.stragglers)
        for (RankClass& rankClass : schedule.classes)
            if (rankClass.ranks.contains(straggler.rank)) {
                rankClass.computeSlowdown *= straggler.compute;
                rankClass.linkSlowdown = std::max(rankClass.linkSlowdown, straggler.link);
            }
    return schedule;
}

Result<Schedule> writeSchedule(const Scenario& scenario, const std::shared_ptr<const Workload>& workload, int mostMicroSteps, bool exactRanks = false) {
    double kernels = 0;
    for (std::size_t l = 0; l < workload->layers.size(); ++l)
        for (const Op& op : workload->typeOf(l).ops) kernels += static_cast<double>(op.forward.size() + op.backward.size());
    if (mostMicroSteps == 0) kernels *= static_cast<double>(scenario.training.gradAccum);
    if (kernels > kMostKernels)
        return badInput("training.grad_accum", fmt::format("the step has {} kernels per rank, more than {}; use fewer micro-steps or fewer layers",
                                                           formatShortCount(kernels), formatShortCount(kMostKernels)));
    TRY(const auto strategy, strategyByName(scenario.parallel.strategy));
    return strategy->write({workload, scenario.model, scenario.cluster, scenario.training, scenario.parallel, scenario.step, mostMicroSteps, exactRanks});
}

StepDistribution distributionOf(std::vector<double> seconds, double undisturbed) {
    StepDistribution d;
    d.seconds = seconds;
    d.undisturbed = undisturbed;
    std::sort(seconds.begin(), seconds.end());
    const auto quantile = [&](double q) {  // linear between the neighbours, as numpy's default
        const double at = q * static_cast<double>(seconds.size() - 1);
        const auto below = static_cast<std::size_t>(at);
        const std::size_t above = std::min(below + 1, seconds.size() - 1);
        return seconds[below] + (at - static_cast<double>(below)) * (seconds[above] - seconds[below]);
    };
    for (const double s : seconds) d.mean += s / static_cast<double>(seconds.size());
    d.p50 = quantile(0.5);
    d.p90 = quantile(0.9);
    d.p99 = quantile(0.99);
    d.least = seconds.front();
    d.most = seconds.back();
    return d;
}

/// A step with its periodic tasks and, where it has such, one of those between.
struct PlayedRound {
    Timeline timeline;
    std::optional<Timeline> local;
    double meanSeconds = 0;  ///< of a step
};

Result<PlayedRound> playRound(const Schedule& schedule, const Prices& prices, PlayOptions options = {}) {
    PlayedRound round;
    TRY(round.timeline, play(schedule, prices, options));
    round.meanSeconds = round.timeline.meanStepSeconds();
    if (schedule.period == 1) return round;
    options.localStep = true;
    TRY(round.local, play(schedule, prices, options));
    if (round.timeline.async) return round;  // asynchronous workers have played whole rounds
    const double period = static_cast<double>(schedule.period);
    round.meanSeconds = (round.meanSeconds + (period - 1) * round.local->meanStepSeconds()) / period;
    return round;
}

Result<double> stepSecondsWith(const Scenario& scenario, const Schedule& schedule, const PricingOptions& pricing) {
    TRY(const Prices prices, priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, pricing));
    TRY(const PlayedRound round, playRound(schedule, prices));
    return round.meanSeconds;
}

/// `schedule` takes `stepSeconds` as it is: the played one, or its folded form where chance unfolded it.
Result<void> addSensitivity(Prediction& prediction, const Scenario& scenario, const Schedule& schedule, double stepSeconds) {
    struct Change {
        const char* resource;
        double PricingOptions::*factor;
    };
    for (const Change& change : {Change{"compute", &PricingOptions::computeScale}, Change{"network", &PricingOptions::networkScale},
                                 Change{"memory_bandwidth", &PricingOptions::memoryScale}, Change{"host", &PricingOptions::hostScale}}) {
        PricingOptions pricing = scenario.pricing;
        pricing.*change.factor *= 1.1;
        TRY(const double seconds, stepSecondsWith(scenario, schedule, pricing));
        const double relative = seconds / stepSeconds;
        prediction.sensitivity.push_back({change.resource, prediction.stepSeconds * relative, relative - 1});
    }
    return {};
}

Result<void> addMemory(Prediction& prediction, const Scenario& scenario, const PredictOptions& options) {
    // Every class has its own device; the one with the least room decides.
    bool first = true;
    std::vector<std::pair<std::uint32_t, std::size_t>> seen;  // program and kind of node: what memory depends on
    for (std::size_t c = 0; c < prediction.schedule->classes.size(); ++c) {
        const RankClass& rankClass = prediction.schedule->classes[c];
        if (std::find(seen.begin(), seen.end(), std::pair{rankClass.program, rankClass.nodeGroup}) != seen.end()) continue;
        seen.emplace_back(rankClass.program, rankClass.nodeGroup);
        const Device& device = scenario.cluster.nodes[rankClass.nodeGroup].kind.device;
        const Profile& profile = scenario.profiles[rankClass.nodeGroup];
        MemoryOptions memory;
        memory.contextBytes = static_cast<Bytes>(profile.contextBytes.value);
        memory.ncclBytes = scenario.cluster.deviceCount() > 1 && scenario.pricing.backend == CollectiveBackend::Nccl ? static_cast<Bytes>(profile.ncclBytes.value) : 0;
        TRY(memory.capacityBytes, memoryCapacity(device));
        memory.expandableSegments = scenario.expandableSegments;
        memory.timeline = options.memoryTimeline;
        memory.nameLargest = options.explain;
        MemoryReport report = trackMemory(prediction.schedule->programs[rankClass.program], memory, &prediction.timeline.classes[c]);
        const auto room = [](const MemoryReport& r, Bytes capacity) { return capacity - r.peakDevice(); };
        if (first || room(report, memory.capacityBytes) < room(prediction.memory, prediction.capacityBytes)) {
            prediction.memory = std::move(report);
            prediction.memoryClass = c;
            prediction.capacityBytes = memory.capacityBytes;
        }
        first = false;
    }
    prediction.verdict = prediction.memory.outOfMemory ? MemoryVerdict::OutOfMemory
                         : static_cast<double>(prediction.memory.peakDevice()) > kTightAbove * static_cast<double>(prediction.capacityBytes) ? MemoryVerdict::Tight
                                                                                                                                              : MemoryVerdict::Fits;
    return {};
}

/// Samples of a step; ranks that have run out of inputs bring none.
double samplesPerStep(const Scenario& scenario) {
    const double ranks = static_cast<double>(scenario.cluster.deviceCount());
    return static_cast<double>(scenario.globalBatch()) * (ranks - static_cast<double>(scenario.parallel.exhaustedRanks)) / ranks;
}

void addUtilisation(Prediction& prediction, const Scenario& scenario, const Workload& workload) {
    const DType math = scenario.training.precision.math;
    double peak = 0;
    for (const NodeGroup& group : scenario.cluster.nodes) {
        const auto found = group.kind.device.peakDenseTflops.find(math);
        if (found != group.kind.device.peakDenseTflops.end())
            peak += found->second * 1e12 * static_cast<double>(group.count * group.kind.devices);
    }
    const double modelFlops = modelFlopsPerSample(scenario.model, workload) * samplesPerStep(scenario);
    prediction.mfu = peak > 0 ? modelFlops / (prediction.stepSeconds * peak) : 0;
    // What recompute runs again, as a share of the forward pass; backward is twice the forward, so a whole step is three.
    double again = 0, all = 0;
    for (std::size_t l = 0; l < workload.layers.size(); ++l) {
        const LayerType& type = workload.typeOf(l);
        const LayerPlan plan = planLayer(type, scenario.training);
        const std::size_t needed = scenario.training.recomputeEarlyStop ? static_cast<std::size_t>(plan.neededAgain) : type.ops.size();
        std::vector<bool> runsAgain(type.ops.size(), false);
        if (scenario.training.checkpointsBlocks() && type.isBlock)
            for (std::size_t o = 0; o < needed; ++o) runsAgain[o] = !plan.ops[o].isKept;
        for (const RecomputeSegment& segment : recomputedSegments(type, scenario.training)) std::fill(runsAgain.begin() + segment.first, runsAgain.begin() + segment.last + 1, true);
        for (std::size_t o = 0; o < type.ops.size(); ++o)
            for (const KernelWork& kernel : type.ops[o].forward) {
                all += kernel.flops;
                if (runsAgain[o]) again += kernel.flops;
            }
    }
    prediction.hfu = prediction.mfu * (1 + (all > 0 ? again / all / 3 : 0));
}

void addWarnings(Prediction& prediction, const Scenario& scenario) {
    prediction.warnings = scenario.warnings;
    if (!prediction.prices.waveQuantised)
        prediction.warnings.push_back("the device's multiprocessor count is not known, so wave quantisation is left out; supply it with --set device.sms=N");
    if (prediction.verdict == MemoryVerdict::OutOfMemory)
        prediction.warnings.push_back("does not fit in device memory: the times are what the step would take if it did");
    if (prediction.timeline.async && !prediction.timeline.async->steady)
        prediction.warnings.push_back("the workers' pace had not settled when the simulation ended: the step time is the mean of its last part");
    if (prediction.breakdown.host.seconds() > 0.2 * prediction.stepSeconds)
        prediction.warnings.push_back("more than a fifth of the step is host-bound: larger batches, fewer kernels or CUDA graphs would help");
}

}  // namespace

std::string_view nameOf(MemoryVerdict verdict) {
    switch (verdict) {
        case MemoryVerdict::Fits: return "fits";
        case MemoryVerdict::Tight: return "tight";
        case MemoryVerdict::OutOfMemory: return "out_of_memory";
    }
    return "?";
}

Result<Schedule> writeSchedule(const Scenario& scenario, int mostMicroSteps, bool exactRanks) {
    TRY(Workload workload, buildWorkload(scenario.model, scenario.training));
    return writeSchedule(scenario, std::make_shared<const Workload>(std::move(workload)), mostMicroSteps, exactRanks);
}

Result<Prediction> predict(const Scenario& scenario, const PredictOptions& options) {
    Prediction prediction;
    TRY(Workload built, buildWorkload(scenario.model, scenario.training));
    const auto whole = std::make_shared<const Workload>(std::move(built));
    PlayedRound round;
    const Perturbation& perturbation = scenario.perturbation;
    // Micro-steps that are alike are played once, if they do settle down; where they do not, more of them are written.
    std::shared_ptr<const Schedule> calm;  // without chance: its ranks are folded
    for (const int mostMicroSteps : {4, 8, 16, 0}) {
        if (perturbation.isRandom() && mostMicroSteps != 0) continue;
        TRY(Schedule schedule, writeSchedule(scenario, whole, mostMicroSteps));
        TRY(schedule, withStragglers(std::move(schedule), perturbation));
        TRY(prediction.prices, priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing));
        TRY(round, playRound(schedule, prediction.prices));
        calm = prediction.schedule = std::make_shared<const Schedule>(std::move(schedule));
        if (round.timeline.steadyConverged) break;
    }
    const double calmSeconds = round.meanSeconds;
    if (perturbation.isRandom()) {
        TRY_VOID(checkUnfoldable(*calm));
        prediction.schedule = std::make_shared<const Schedule>(unfoldRanks(*calm));
        std::vector<double> seconds;
        for (std::int64_t i = 0; i < perturbation.samples; ++i) {
            TRY(PlayedRound drawn, playRound(*prediction.schedule, prediction.prices, {&perturbation, static_cast<std::uint64_t>(i)}));
            seconds.push_back(drawn.meanSeconds);
            if (i == 0) round = std::move(drawn);  // the one that is shown
        }
        prediction.distribution = distributionOf(std::move(seconds), calmSeconds);
    }
    const Schedule& played = *prediction.schedule;

    prediction.stepSeconds = prediction.distribution ? prediction.distribution->mean : round.meanSeconds;
    if (round.local) prediction.round = StepRound{played.period, round.local->stepTime.seconds(), round.timeline.stepTime.seconds()};
    prediction.timeline = std::move(round.timeline);
    std::vector<PlayedStep> steps;  // what is shown is weighted like the steps themselves
    steps.push_back({prediction.timeline, criticalPath(played, prediction.timeline), round.local ? 1 / static_cast<double>(played.period) : 1});
    if (round.local) steps.push_back({*round.local, criticalPath(played, *round.local), 1 - steps.front().weight});
    const Workload& workload = *whole;
    prediction.parameters = parameterCount(workload);
    prediction.samplesPerSecond = samplesPerStep(scenario) / prediction.stepSeconds;
    prediction.tokensPerSecond = prediction.samplesPerSecond * static_cast<double>(workload.tokensPerSample);
    addUtilisation(prediction, scenario, workload);

    std::size_t last = 0;
    Time latest;
    for (std::size_t c = 0; c < played.classes.size(); ++c)
        for (const TaskTimes& times : prediction.timeline.classes[c])
            if (times.end > latest) {
                latest = times.end;
                last = c;
            }
    for (const PlayedStep& step : steps)
        addBreakdown(prediction.breakdown, wholeBreakdown(played, step.timeline, activityOf(played, prediction.prices, step.timeline, last)), step.weight);
    prediction.bytesSentPerRank = meanBytesSentPerRank(played, played.classes[last]);

    for (const PlayedStep& step : steps) {
        for (const PathSegment& segment : step.path) prediction.pathSeconds[segment.kind] += step.weight * secondsOf(played, step.timeline, segment);
        addShares(prediction.shares, played, step, prediction.stepSeconds);
    }
    const Profile& profile = scenario.profiles[played.classes[last].nodeGroup];
    const double sigma = relativeSpread(prediction.shares, profile, scenario);
    prediction.p10Seconds = prediction.stepSeconds * std::exp(-kP90 * sigma);
    prediction.p90Seconds = prediction.stepSeconds * std::exp(kP90 * sigma);

    if (options.memory) TRY_VOID(addMemory(prediction, scenario, options));
    if (options.explain) {
        std::map<std::string, PathItem> items;
        for (const PlayedStep& step : steps)
            for (const PathSegment& segment : step.path) {
                PathItem& item = items[groupName(played, segment)];
                item.kind = segment.kind;
                item.seconds += step.weight * secondsOf(played, step.timeline, segment);
            }
        for (auto& [name, item] : items) {
            item.name = name;
            prediction.criticalPath.push_back(item);
        }
        std::stable_sort(prediction.criticalPath.begin(), prediction.criticalPath.end(), [](const PathItem& a, const PathItem& b) { return a.seconds > b.seconds; });
        addRestsOn(prediction, scenario);
    }
    if (options.sensitivity) TRY_VOID(addSensitivity(prediction, scenario, *calm, calmSeconds));
    addWarnings(prediction, scenario);
    return prediction;
}

Trace traceOf(const Prediction& prediction) {
    return traceOf(*prediction.schedule, prediction.prices, prediction.timeline, &prediction.memory, prediction.memoryClass);
}

Json toJson(const Scenario& scenario, const Prediction& prediction) {
    const Schedule& schedule = *prediction.schedule;
    const double devices = static_cast<double>(scenario.cluster.deviceCount());
    const bool tokens = schedule.workload->tokensPerSample > 0;
    Json json;
    json["format"] = "ringside-result";
    json["version"] = 1;
    json["scenario"] = toJson(scenario);
    json["parameters"] = prediction.parameters;
    json["step_time_s"] = {{"median", prediction.stepSeconds}, {"p10", prediction.p10Seconds}, {"p90", prediction.p90Seconds}};
    if (const auto& d = prediction.distribution)
        json["sampled_step_time_s"] = {{"samples", d->seconds.size()}, {"mean", d->mean}, {"p50", d->p50}, {"p90", d->p90}, {"p99", d->p99},
                                       {"min", d->least}, {"max", d->most}, {"undisturbed", d->undisturbed}};
    if (schedule.steady.times > 1)
        json["repeated_micro_step"] = {{"micro_step", schedule.steady.microStep}, {"times", schedule.steady.times}, {"seconds", prediction.timeline.steadyPeriod.seconds()}};
    Json& throughput = json["throughput"];
    throughput["samples_per_s"] = prediction.samplesPerSecond;
    throughput["samples_per_s_per_device"] = prediction.samplesPerSecond / devices;
    throughput["tokens_per_s"] = tokens ? Json(prediction.tokensPerSecond) : Json(nullptr);
    throughput["tokens_per_s_per_device"] = tokens ? Json(prediction.tokensPerSecond / devices) : Json(nullptr);
    json["mfu"] = prediction.mfu;
    json["hfu"] = prediction.hfu;
    const Breakdown& b = prediction.breakdown;
    json["breakdown_s"] = {{"compute", b.compute.seconds()}, {"communication_hidden", b.communicationHidden.seconds()},
                           {"communication_exposed", b.communicationExposed.seconds()}, {"host", b.host.seconds()},
                           {"optimizer", b.optimizer.seconds()}, {"idle", b.idle.seconds()}};
    const MemoryReport& m = prediction.memory;
    const RankProgram& fullest = prediction.memoryProgram();
    if (prediction.round)
        json["round"] = {{"period", prediction.round->period}, {"local_step_s", prediction.round->localSeconds}, {"averaging_step_s", prediction.round->averagingSeconds}};
    if (const std::optional<AsyncOutcome>& async = prediction.timeline.async) {
        json["staleness"] = {{"mean", async->meanStaleness}, {"max", async->maxStaleness}};
        json["workers_step_s"] = {{"fastest", async->fastestSeconds}, {"slowest", async->slowestSeconds}};
    }
    Json& memory = json["memory"];
    memory["rank"] = schedule.classes[prediction.memoryClass].ranks.first;
    memory["peak_allocated_bytes"] = m.peakAllocated;
    memory["peak_reserved_bytes"] = m.peakReserved;
    memory["peak_device_bytes"] = m.peakDevice();
    memory["capacity_bytes"] = prediction.capacityBytes;
    for (int c = 0; c < kMemoryCategories; ++c) memory["by_category"][std::string(nameOf(static_cast<MemoryCategory>(c)))] = m.atPeak[static_cast<std::size_t>(c)];
    memory["verdict"] = nameOf(prediction.verdict);
    memory["peak_task"] = taskName(schedule, fullest.tasks[m.peakTask]);
    memory["peak_tensor"] = bufferName(schedule, fullest.buffers[m.largestAtPeak]);
    if (m.outOfMemory) {
        memory["failed_task"] = m.failedBeforeStep ? Json("before the step") : Json(taskName(schedule, fullest.tasks[m.failedTask]));
        memory["failed_tensor"] = bufferName(schedule, fullest.buffers[m.failedBuffer]);
    }
    if (m.hostBytes > 0) memory["host_bytes"] = m.hostBytes;
    const RankProgram& program = schedule.programs[schedule.classes.front().program];
    Json& communication = json["communication"];
    communication["bytes_sent_per_rank"] = prediction.bytesSentPerRank;
    communication["collectives"] = Json::array();
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind != TaskKind::Collective) continue;
        const CollectiveWork& work = schedule.collectives[task.work];
        const CollectivePrice& price = prediction.prices.collectives[task.work];
        const TaskTimes& times = prediction.timeline.classes.front()[t];
        communication["collectives"].push_back({{"name", taskName(schedule, task)}, {"op", nameOf(work.op)}, {"elements", work.elements},
                                                {"dtype", nameOf(work.dtype)}, {"bytes", work.bytes()}, {"algorithm", nameOf(price.cost.algorithm)},
                                                {"protocol", nameOf(price.cost.protocol)}, {"start_s", times.start.seconds()},
                                                {"duration_s", (times.end - times.start).seconds()}, {"group_size", schedule.axes[work.axis].size}});
    }
    Json& path = json["critical_path"];
    path["by_kind_s"] = Json::object();
    for (const auto& [kind, seconds] : prediction.pathSeconds) path["by_kind_s"][std::string(nameOf(kind))] = seconds;
    path["items"] = Json::array();
    for (const PathItem& item : prediction.criticalPath)
        path["items"].push_back({{"name", item.name}, {"kind", nameOf(item.kind)}, {"seconds", item.seconds}, {"share", item.seconds / prediction.stepSeconds}});
    json["sensitivity"] = Json::object();
    for (const Sensitivity& s : prediction.sensitivity) json["sensitivity"][s.resource + "_plus_10_percent"] = {{"step_time_s", s.stepSeconds}, {"change", s.change}};
    json["rests_on"] = Json::array();
    for (const RestsOn& r : prediction.restsOn) json["rests_on"].push_back({{"figure", r.figure}, {"value", r.value}, {"provenance", r.provenance}, {"source", r.source}});
    json["warnings"] = prediction.warnings;
    return json;
}

}  // namespace ringside
