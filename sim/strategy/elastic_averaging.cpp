// EASGD: every `period` steps an elastic force d = α(x − x̃) pulls a worker's parameters x to a centre x̃ and the centre to the
// worker: x −= d, x̃ += d. Synchronously every rank has the centre and one all-reduce adds up the forces; asynchronously the
// centre is with parameter servers and each worker exchanges with it by itself. docs/models/local-sgd.md.
#include "sim/strategy/server_keys.h"

namespace ringside {
namespace {

constexpr std::int64_t kPeriod = 10;

void usePart(StepWriter& step, const std::vector<std::uint32_t>& parameters, UseKind kind) {
    for (const std::uint32_t p : parameters) step.program().use(step.parameters()[p].buffer, kind);
}

std::int32_t layoutOf(StepWriter& step, const ParameterKey& key) { return step.program().addLayout(packed(key.parameters, step.program().program().parameters)); }

/// The force, and its pull on the worker: reads x and x̃, writes d and x.
TaskId elasticForce(StepWriter& step, const ParameterKey& key, std::uint16_t part, BufferId centre, BufferId force) {
    const TaskId task = step.memoryKernel(kComputeStream, Phase::Optimizer, TaskRole::Elastic, "elastic force", 4 * key.elements * sizeOf(step.input().training.precision.parameter), -1, part);
    step.program().use(force, UseKind::Allocate);
    step.program().use(centre, UseKind::Read);
    step.program().use(force, UseKind::Write);
    usePart(step, key.parameters, UseKind::Write);
    return task;
}

class ElasticAveraging final : public Strategy {
public:
    std::string_view name() const override { return "easgd"; }
    std::string_view summary() const override { return "Elastic averaging SGD: every few steps workers and a common centre pull at each other."; }
    std::vector<Knob> knobs() const override {
        return {{"period", std::to_string(kPeriod), "local optimizer steps from one exchange with the centre to the next"},
                {"async_averaging", "false", "the centre is with parameter servers, and each worker exchanges with it by itself"},
                {"servers", "as many as nodes of workers", "async_averaging: dedicated server nodes"}};
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        if (input.parallel.servers && !input.parallel.asyncAveraging)
            return badInput("strategy.servers", "without async_averaging every rank has the centre and there are no servers; leave it out, or give async_averaging = true");
        TRY(Schedule schedule, writeStep(input, name(), [&](StepWriter& step) -> Result<void> {
            const bool alone = step.syncRanks() == 1;
            BufferId centre = kNoBuffer;
            const ParameterKey all = wholeModel(step);
            const DType dtype = input.training.precision.parameter;
            if (!alone && !input.parallel.asyncAveraging) {
                Buffer own{all.elements * sizeOf(dtype), MemoryCategory::Parameters, BufferRole::MasterShard, dtype, true, false, -1, 0};
                own.layout = layoutOf(step, all);
                centre = step.addBuffer(own);
            }
            StepHooks nothing;
            step.runPasses(nothing);
            step.optimizerStep();
            step.setPeriodic(true);
            if (!alone && input.parallel.asyncAveraging) exchangeWithServers(step);
            else if (!alone) exchangeWithAll(step, all, centre);
            step.setPeriodic(false);
            step.endStep();
            return {};
        }));
        if (schedule.world > 1) schedule.period = input.parallel.period.value_or(kPeriod);
        return schedule;
    }

private:
    static ParameterKey wholeModel(StepWriter& step) {
        ParameterKey all;
        for (std::uint32_t p = 0; p < step.parameters().size(); ++p) {
            all.parameters.push_back(p);
            all.elements += step.parameters()[p].elements;
        }
        return all;
    }

    static void exchangeWithAll(StepWriter& step, const ParameterKey& all, BufferId centre) {
        const DType dtype = step.input().training.precision.parameter;
        const Bytes bytes = all.elements * sizeOf(dtype);
        Buffer sum{bytes, MemoryCategory::Buckets, BufferRole::Bucket, dtype, false, false, -1, 0};
        sum.layout = layoutOf(step, all);
        const BufferId force = step.addBuffer(sum);
        elasticForce(step, all, 0, centre, force);
        step.collective(kComputeStream, Phase::GradientSync, TaskRole::ParameterAverage, CollectiveOp::AllReduce, dtype, all.elements, step.axes().data);
        step.program().use(force, UseKind::Write);
        step.memoryKernel(kComputeStream, Phase::Optimizer, TaskRole::Elastic, "move centre", 3 * bytes);
        step.program().use(force, UseKind::Read);
        step.program().use(centre, UseKind::Write);
        step.program().use(force, UseKind::Free);
    }

    /// Layer by layer: pull the centre, pull at each other, push the force.
    static void exchangeWithServers(StepWriter& step) {
        const StrategyInput& input = step.input();
        const DType dtype = input.training.precision.parameter;
        ParameterServers& servers = step.schedule().servers;
        const std::vector<ParameterKey> keys = parameterKeys(step);
        servers.count = input.parallel.servers.value_or(input.cluster.nodeCount());
        servers.placement = ServerPlacement::Nodes;
        servers.discipline = ServerDiscipline::Async;
        if (servers.keys.empty())
            for (const ParameterKey& key : keys) addServerSum(step, key.elements * sizeOf(dtype));
        const StreamId pullStream = step.program().addStream(StreamKind::Communication, "pull"), pushStream = step.program().addStream(StreamKind::Communication, "push");
        const TaskId updated = step.lastCompute();
        for (std::uint32_t k = 0; k < keys.size(); ++k) {
            const Bytes bytes = keys[k].elements * sizeOf(dtype);
            Buffer part{bytes, MemoryCategory::Buckets, BufferRole::Bucket, dtype, false, false, -1, static_cast<std::int32_t>(k)};
            part.layout = layoutOf(step, keys[k]);
            part.deferredFree = true;  // streams of their own fill and read them
            const BufferId centre = step.addBuffer(part), force = step.addBuffer(part);
            const TaskId pull = step.message(TaskKind::Pull, pullStream, k, bytes, keys[k].layer);
            step.program().dependOn(updated);
            step.program().use(centre, UseKind::Allocate);
            step.program().use(centre, UseKind::Write);
            step.waitOnCompute(pull);
            const TaskId pulled = elasticForce(step, keys[k], static_cast<std::uint16_t>(k), centre, force);
            step.program().use(centre, UseKind::Free);
            step.message(TaskKind::Push, pushStream, k, bytes, keys[k].layer);
            step.program().dependOn(pulled);
            step.program().use(force, UseKind::Read);
            step.program().use(force, UseKind::Free);
        }
    }
};

}  // namespace

std::unique_ptr<const Strategy> makeElasticAveraging() { return std::make_unique<ElasticAveraging>(); }

}  // namespace ringside
