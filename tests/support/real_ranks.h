// Runs a scenario for real inside the test: each rank, and each dedicated parameter server, is a thread with a CPU device of its
// own, joined by Gloo over loopback.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "calibrate/comm/gloo_communicator.h"
#include "calibrate/execute/executor.h"
#include "calibrate/execute/parameter_server.h"
#include "calibrate/ranks/memory_store.h"
#include "kernels/device.h"
#include "sim/player/fold_ranks.h"
#include "sim/prediction.h"
#include "sim/scenario.h"

namespace ringside::real {

struct Outcome {
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<float>> parameters;  ///< by layer and index, put together from all ranks
    std::vector<std::vector<double>> losses;                                         ///< [rank][step]: mean over micro-steps
    std::vector<Bytes> peakAllocated;                                                ///< [rank]
    std::vector<Timeline> steps;                                                     ///< [step]: measured, one class per rank
    Schedule schedule;                                                               ///< unfolded: one class per rank
    std::vector<ServerRecord> servers;                                               ///< of dedicated parameter servers
};

/// Told before each step of a rank: a test may hold it back.
using BeforeStep = std::function<void(std::int64_t rank, int step)>;

/// Every element must be held by some rank; where several hold it, they must agree bit by bit (unless `mayDiffer`).
inline Result<Outcome> run(const Scenario& scenario, int steps, const ExecuteOptions& options = {}, bool mayDiffer = false, const BeforeStep& beforeStep = {}) {
    TRY(const Schedule folded, writeSchedule(scenario, 0, true));
    Outcome out;
    out.schedule = unfoldRanks(folded);
    const auto ranks = static_cast<std::size_t>(out.schedule.world), processes = static_cast<std::size_t>(processesOf(out.schedule));
    out.servers.resize(processes - ranks);
    out.losses.resize(ranks);
    out.peakAllocated.resize(ranks);
    out.steps.resize(static_cast<std::size_t>(steps));
    for (Timeline& step : out.steps) step.classes.resize(ranks);
    const auto store = std::make_shared<MemoryStore>();
    std::vector<std::optional<Error>> errors(processes);
    std::vector<std::vector<ParameterPart>> parts(ranks);

    const auto body = [&](std::size_t r) -> Result<void> {
        TRY(std::unique_ptr<ComputeDevice> device, makeCpuDevice());
        std::unique_ptr<CommWorld> world;
        if (processes > 1) {
            GlooWorldOptions gloo;
            gloo.env.rank = static_cast<int>(r);
            gloo.env.size = static_cast<int>(processes);
            gloo.store = store;
            TRY(world, makeGlooWorld(gloo));
        }
        if (r >= ranks) {
            const auto index = static_cast<std::int64_t>(r - ranks);
            TRY(const std::unique_ptr<ParameterServer> server, ParameterServer::dedicated(out.schedule, index, scenario.training, *device, *world, {options.hyper, options.seed, {}}));
            TRY_VOID(server->serve(steps));
            out.servers[r - ranks] = server->record();
            return {};
        }
        TRY(const std::unique_ptr<Executor> executor, Executor::create(out.schedule, static_cast<std::int64_t>(r), scenario.training, *device, world.get(), options));
        for (int s = 0; s < steps; ++s) {
            if (beforeStep) beforeStep(static_cast<std::int64_t>(r), s);
            TRY(const ExecutedStep step, executor->runStep(s));
            double loss = 0;
            for (const double one : step.losses) loss += one / static_cast<double>(step.losses.size());
            out.losses[r].push_back(loss);
            out.steps[static_cast<std::size_t>(s)].classes[r] = step.tasks;
        }
        out.peakAllocated[r] = executor->memory().peakAllocated();
        TRY(parts[r], executor->parameters());
        return {};
    };
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < processes; ++r)
        threads.emplace_back([&, r] {
            if (const Result<void> done = body(r); !done) errors[r] = done.error();
        });
    for (std::thread& thread : threads) thread.join();
    for (const std::optional<Error>& error : errors)
        if (error) return tl::unexpected<Error>(*error);

    const RankProgram& program = out.schedule.programs.front();
    for (const ProgramParameter& p : program.parameters) {
        std::vector<float> whole(static_cast<std::size_t>(p.elements));
        std::vector<bool> there(whole.size());
        for (std::size_t r = 0; r < ranks; ++r)
            for (const ParameterPart& part : parts[r]) {
                const ProgramParameter& q = out.schedule.programs[out.schedule.classes[r].program].parameters[part.parameter];
                if (q.layer != p.layer || q.index != p.index) continue;
                for (std::size_t i = 0; i < part.values.size(); ++i) {
                    const std::size_t at = static_cast<std::size_t>(part.first) + i;
                    if (there[at] && !mayDiffer && whole[at] != part.values[i])
                        return failure(ErrorCode::RuntimeFailure, parameterName(*program.workload, static_cast<std::size_t>(p.layer), p.index), "ranks disagree about element " + std::to_string(at));
                    if (!there[at]) whole[at] = part.values[i];
                    there[at] = true;
                }
            }
        for (std::size_t at = 0; at < there.size(); ++at)
            if (!there[at]) return failure(ErrorCode::RuntimeFailure, parameterName(*program.workload, static_cast<std::size_t>(p.layer), p.index), "nobody holds element " + std::to_string(at));
        out.parameters[{p.layer, p.index}] = std::move(whole);
    }
    return out;
}

/// The largest difference of two outcomes' parameters, relative to the largest element of each tensor.
inline double difference(const Outcome& a, const Outcome& b) {
    double worst = 0;
    for (const auto& [name, values] : a.parameters) {
        const std::vector<float>& others = b.parameters.at(name);
        double largest = 1e-12;
        for (const float value : values) largest = std::max(largest, std::abs(static_cast<double>(value)));
        for (std::size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(values[i]) - static_cast<double>(others[i])) / largest);
    }
    return worst;
}

}  // namespace ringside::real
