#include "calibrate/execute/real_run.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "calibrate/execute/parameter_server.h"
#include "model/base/check.h"
#include "model/base/json_cursor.h"
#include "sim/player/fold_ranks.h"
#include "sim/player/timeline_trace.h"
#include "sim/prediction.h"

namespace ringside {
namespace {

Bytes physicalMemory() { return static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * static_cast<Bytes>(sysconf(_SC_PAGE_SIZE)); }

Result<std::unique_ptr<ComputeDevice>> makeDevice(const RealRunOptions& options, const RankContext& context) {
    if (options.device == "cuda") return makeCudaDevice(context.env.localRank);
    CpuDeviceOptions cpu;
    cpu.threads = options.ranks.threads;
    cpu.firstCore = context.firstCore;
    cpu.memoryLimit = options.memoryLimit;
    // Each rank asks for its own: together they must not ask for more than there is, or the kernel kills one of them.
    // Paced kernels touch nothing, and memory that nobody touches is none.
    if (cpu.memoryLimit == 0 && options.ranks.localRanks > 1 && !options.paced) cpu.memoryLimit = physicalMemory() / options.ranks.localRanks;
    return makeCpuDevice(cpu);
}

// What a rank hands back travels as CBOR: numbers, mostly.

Json toJson(const std::vector<TaskTimes>& tasks) {
    Json out = Json::array();
    for (const TaskTimes& task : tasks)
        for (const Time time : {task.issued, task.start, task.end}) out.push_back(time.picoseconds());
    return out;
}

std::vector<TaskTimes> tasksFrom(const Json& json) {
    std::vector<TaskTimes> tasks(json.size() / 3);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const auto at = [&](std::size_t which) { return Time::fromPicoseconds(json[3 * i + which].get<std::int64_t>()); };
        tasks[i] = {at(0), at(1), at(2)};
    }
    return tasks;
}

Json toJson(const TensorStore& store) {
    Json samples = Json::array();
    for (const MemorySample& sample : store.samples()) samples.push_back({sample.task, sample.bytes, sample.reserved});
    return {{"allocated", store.peakAllocated()}, {"reserved", store.peakReserved()}, {"at_peak", store.atPeak()}, {"task", store.peakTask()}, {"samples", std::move(samples)}};
}

MemoryReport memoryFrom(const Json& json) {
    MemoryReport report;
    report.peakAllocated = json["allocated"].get<Bytes>();
    report.peakReserved = json["reserved"].get<Bytes>();
    report.atPeak = json["at_peak"].get<CategoryBytes>();
    report.peakTask = json["task"].get<TaskId>();
    for (const Json& sample : json["samples"]) report.samples.push_back({sample[0].get<TaskId>(), sample[1].get<CategoryBytes>(), sample[2].get<Bytes>()});
    return report;
}

Json toJson(const std::vector<ParameterPart>& parts) {
    Json out = Json::array();
    for (const ParameterPart& part : parts) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(part.values.data());
        out.push_back({part.parameter, part.first, Json::binary({bytes, bytes + part.values.size() * sizeof(float)})});
    }
    return out;
}

std::vector<ParameterPart> partsFrom(const Json& json) {
    std::vector<ParameterPart> parts;
    for (const Json& one : json) {
        ParameterPart& part = parts.emplace_back();
        part.parameter = one[0].get<std::uint32_t>();
        part.first = one[1].get<std::int64_t>();
        const auto& bytes = one[2].get_binary();
        part.values.resize(bytes.size() / sizeof(float));
        std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::uint8_t*>(part.values.data()));
    }
    return parts;
}

/// A dedicated parameter server: a process beyond the ranks. That it waits for workers is no sign of trouble, so it says all the
/// time that it lives; a worker that waits for it in vain does not.
Result<std::string> runServer(const Schedule& schedule, const Scenario& scenario, const RealRunOptions& options, RankContext& context) {
    TRY(const std::unique_ptr<ComputeDevice> device, makeDevice(options, context));
    const ServerOptions serving{options.execute.hyper, options.execute.seed, options.execute.serverPace};
    TRY(const std::unique_ptr<ParameterServer> server,
        ParameterServer::dedicated(schedule, context.env.rank - schedule.world, scenario.training, *device, *context.world, serving));
    server->allow(options.warmUp + options.steps);
    std::atomic<bool> done = false;
    std::thread alive([&] {
        while (!done.load()) {
            if (context.progress) context.progress("serving");
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
    });
    const Result<void> served = server->waitUntilDone();
    done = true;
    alive.join();
    if (!served) return tl::unexpected<Error>(served.error());
    return std::string();
}

/// Ranks that each run a schedule of their own, step by step together: as in data-parallel training all of them read memory at once when
/// their optimizers do. Rank 0 says whether there is another step.
class Companions {
public:
    static Result<Companions> meet(ComputeDevice& device, CommWorld& world) {
        std::vector<int> all(static_cast<std::size_t>(world.size()));
        std::iota(all.begin(), all.end(), 0);
        Companions companions(device);
        TRY(companions.comm_, world.createGroup("companions", all));
        TRY(companions.stream_, device.createStream("companions"));
        return companions;
    }

    Result<bool> agree(bool goOn) {
        std::int64_t word = goOn ? 1 : 0;
        device_->issue(stream_, [&](const StreamContext& context) -> Result<void> {
            TRY_VOID(comm_->broadcast(context, &word, 1, DType::Int64, 0));
            return comm_->barrier(context);
        });
        TRY_VOID(device_->synchronize());
        return word == 1;
    }

private:
    explicit Companions(ComputeDevice& device) : device_(&device) {}

    ComputeDevice* device_;
    std::unique_ptr<Communicator> comm_;
    StreamIndex stream_{};
};

Result<std::string> runRank(const Schedule& schedule, const Scenario& scenario, const RealRunOptions& options, RankContext& context) {
    if (schedule.world > 1 && context.env.rank >= schedule.world) return runServer(schedule, scenario, options, context);
    TRY(const std::unique_ptr<ComputeDevice> device, makeDevice(options, context));
    ExecuteOptions execute = options.execute;
    execute.progress = context.progress;
    const bool alone = schedule.world == 1;
    TRY(const std::unique_ptr<Executor> executor, Executor::create(schedule, alone ? 0 : context.env.rank, scenario.training, *device, alone ? nullptr : context.world, execute));
    Json out = {{"seconds", Json::array()}, {"losses", Json::array()}, {"tasks", Json::array()}, {"device", device->info().name}, {"libraries", device->info().libraries}};
    std::optional<Companions> companions;
    if (alone && context.world) {
        TRY(companions, Companions::meet(*device, *context.world));
    }
    double measured = 0;
    const auto goesOn = [&](int step) -> Result<bool> {
        const bool isEnough = step >= options.warmUp + options.steps && (measured >= options.leastSeconds || step >= options.warmUp + options.mostSteps);
        return companions ? companions->agree(!isEnough) : !isEnough;
    };
    for (int step = 0;; ++step) {
        TRY(const bool another, goesOn(step));
        if (!another) break;
        TRY(const ExecutedStep done, executor->runStep(step));
        out["losses"].push_back(done.losses.empty() ? 0 : std::accumulate(done.losses.begin(), done.losses.end(), 0.0) / static_cast<double>(done.losses.size()));
        if (step < options.warmUp) continue;
        measured += done.seconds;
        out["seconds"].push_back(done.seconds);
        out["tasks"].push_back(toJson(done.tasks));
    }
    out["memory"] = toJson(executor->memory());
    if (options.keepParameters) {
        TRY(const std::vector<ParameterPart> parts, executor->parameters());
        out["parameters"] = toJson(parts);
    }
    const std::vector<std::uint8_t> cbor = Json::to_cbor(out);
    return std::string(cbor.begin(), cbor.end());
}

/// By the schedule that is run: predict() may have written another, in which one rank stands for all and kernels have other numbers.
Result<void> setPace(ExecuteOptions& execute, const Schedule& schedule, const Scenario& scenario) {
    TRY(const Prices prices, priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing));
    for (const Time time : prices.nodes.front().kernels) execute.pace.push_back(time.seconds());
    for (std::size_t k = 0; k < prices.servers.sum.size(); ++k) execute.serverPace.push_back({prices.servers.sum[k].seconds(), prices.servers.apply[k].seconds()});
    return {};
}

RealRank rankFrom(const Json& json) {
    RealRank rank;
    rank.stepSeconds = json["seconds"].get<std::vector<double>>();
    rank.losses = json["losses"].get<std::vector<double>>();
    for (const Json& step : json["tasks"]) rank.tasks.push_back(tasksFrom(step));
    rank.memory = memoryFrom(json["memory"]);
    if (json.contains("parameters")) rank.parameters = partsFrom(json["parameters"]);
    return rank;
}

std::size_t medianIndex(const std::vector<double>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    return order[(order.size() - 1) / 2];
}

}  // namespace

std::int64_t lastRank(const Timeline& timeline) {
    std::size_t last = 0;
    Time latest;
    for (std::size_t r = 0; r < timeline.classes.size(); ++r)
        for (const TaskTimes& task : timeline.classes[r])
            if (task.end > latest) {
                latest = task.end;
                last = r;
            }
    return static_cast<std::int64_t>(last);
}

double RealRun::medianStep() const { return stepSeconds.empty() ? 0 : stepSeconds[medianIndex(stepSeconds)]; }

Timeline RealRun::timeline() const {
    Timeline timeline;
    if (stepSeconds.empty()) return timeline;
    const std::size_t step = medianIndex(stepSeconds);
    timeline.stepTime = Time::fromSeconds(stepSeconds[step]);
    for (const RealRank& rank : ranks) timeline.classes.push_back(rank.tasks[step]);
    return timeline;
}

Trace RealRun::trace() const {
    Prices prices;
    prices.collectives.resize(schedule.collectives.size());
    for (CollectivePrice& price : prices.collectives) {
        price.cost.algorithm = CollectiveAlgorithm::Ring;
        price.cost.protocol = CollectiveProtocol::Tcp;
    }
    for (const RankClass& rank : schedule.classes) prices.nodes.resize(std::max(prices.nodes.size(), rank.nodeGroup + 1));
    Trace trace = traceOf(schedule, prices, timeline(), &ranks.front().memory, 0);
    trace.title = fmt::format("{} under {} on {} ranks of {} (measured)", schedule.workload->name, schedule.strategy, schedule.world, deviceName);
    return trace;
}

Result<std::optional<RealRun>> runForReal(const Scenario& scenario, const RealRunOptions& options) {
    TRY(const int ranks, rankCount(options.ranks));
    TRY(const Schedule folded, writeSchedule(scenario, 0, true));
    RealRun run;
    run.schedule = unfoldRanks(folded);
    // Dedicated servers are processes of their own: forked beside local ranks, or started with the others by the launcher.
    const auto processes = static_cast<int>(processesOf(run.schedule));
    RunRanksOptions start = options.ranks;
    if (start.localRanks > 0) start.localRanks += processes - static_cast<int>(folded.world);
    const int started = start.localRanks > 0 ? start.localRanks : ranks;
    if (started != processes)
        return failure(ErrorCode::Usage, "--devices",
                       processes == folded.world ? fmt::format("the scenario has {} devices but the run has {} ranks; they must be the same", folded.world, ranks)
                                                 : fmt::format("{} workers and {} servers are {} processes, but {} were started", folded.world, processes - folded.world, processes, started));
    RealRunOptions toRun = options;
    if (options.paced) TRY_VOID(setPace(toRun.execute, run.schedule, scenario));
    TRY(const std::optional<std::vector<std::string>> results, runRanks(start, [&](RankContext& context) { return runRank(run.schedule, scenario, toRun, context); }));
    if (!results) return std::optional<RealRun>();
    for (const std::string& text : *results) {
        if (text.empty()) continue;  // a server
        const Json json = Json::from_cbor(text);
        run.ranks.push_back(rankFrom(json));
        run.deviceName = json["device"].get<std::string>();
        run.libraries = json["libraries"].get<std::string>();
    }
    run.stepSeconds = run.ranks.front().stepSeconds;
    run.losses.assign(run.ranks.front().losses.size(), 0);
    for (const RealRank& rank : run.ranks) {
        for (std::size_t s = 0; s < run.stepSeconds.size(); ++s) run.stepSeconds[s] = std::max(run.stepSeconds[s], rank.stepSeconds[s]);
        for (std::size_t s = 0; s < run.losses.size(); ++s) run.losses[s] += rank.losses[s] / static_cast<double>(run.ranks.size());
    }
    return std::optional(std::move(run));
}

Result<std::vector<RealRank>> runAlone(const Schedule& schedule, const Scenario& scenario, const RealRunOptions& options) {
    CHECK(schedule.world == 1);
    TRY(const std::optional<std::vector<std::string>> results, runRanks(options.ranks, [&](RankContext& context) { return runRank(schedule, scenario, options, context); }));
    std::vector<RealRank> ranks;
    if (results)
        for (const std::string& text : *results) ranks.push_back(rankFrom(Json::from_cbor(text)));
    return ranks;
}

Result<double> parameterDifference(const RealRun& one, const RealRun& other) {
    const auto gather = [](const RealRun& run) -> Result<std::vector<std::vector<float>>> {
        const RankProgram& program = run.schedule.programs.front();
        std::vector<std::vector<float>> whole;
        std::vector<std::vector<bool>> there;
        for (const ProgramParameter& p : program.parameters) {
            whole.emplace_back(static_cast<std::size_t>(p.elements));
            there.emplace_back(static_cast<std::size_t>(p.elements));
        }
        for (const RealRank& rank : run.ranks)
            for (const ParameterPart& part : rank.parameters)
                for (std::size_t i = 0; i < part.values.size(); ++i) {
                    const std::size_t at = static_cast<std::size_t>(part.first) + i;
                    whole[part.parameter][at] = part.values[i];
                    there[part.parameter][at] = true;
                }
        for (std::size_t p = 0; p < there.size(); ++p)
            if (std::find(there[p].begin(), there[p].end(), false) != there[p].end())
                return failure(ErrorCode::RuntimeFailure, parameterName(*program.workload, static_cast<std::size_t>(program.parameters[p].layer), program.parameters[p].index), "no rank holds all of it");
        return whole;
    };
    TRY(const std::vector<std::vector<float>> a, gather(one));
    TRY(const std::vector<std::vector<float>> b, gather(other));
    double worst = 0;
    for (std::size_t p = 0; p < a.size() && p < b.size(); ++p) {
        double largest = 1e-12, difference = 0;
        for (std::size_t i = 0; i < a[p].size(); ++i) {
            largest = std::max(largest, std::abs(static_cast<double>(a[p][i])));
            difference = std::max(difference, std::abs(static_cast<double>(a[p][i]) - static_cast<double>(b[p][i])));
        }
        worst = std::max(worst, difference / largest);
    }
    return worst;
}

Result<double> differenceFromSingle(const Scenario& scenario, const RealRunOptions& options, const RealRun& run) {
    Scenario single = scenario;
    single.parallel = ParallelConfig{};
    single.parallel.strategy = "single";
    single.cluster.nodes.resize(1);
    single.cluster.nodes.front().count = 1;
    single.cluster.nodes.front().kind.devices = 1;
    single.profiles.resize(1);
    single.mesh = {};
    if (!scenario.training.rankBatches.empty()) {  // one device takes all of it at once
        single.training.microBatch = std::accumulate(scenario.training.rankBatches.begin(), scenario.training.rankBatches.end(), std::int64_t{0});
        single.training.rankBatches.clear();
    } else {
        single.training.gradAccum *= run.schedule.world;
    }
    RealRunOptions alone = options;
    alone.ranks = {};
    alone.keepParameters = true;
    alone.execute.progress = nullptr;
    TRY(const Schedule schedule, writeSchedule(single));
    RankContext context;
    TRY(const std::string text, runRank(schedule, single, alone, context));
    RealRun reference;
    reference.schedule = schedule;
    reference.ranks.push_back(rankFrom(Json::from_cbor(text)));
    return parameterDifference(reference, run);
}

}  // namespace ringside
