// Parameter server spread over the workers: each of N devices owns 1/N of every layer. Gradients go to their owners in an
// all-to-all, the owner adds them up and updates its part, and an all-gather brings the parameters back.
// On the wire this is what a ring all-reduce moves: 2(N−1)/N of the parameters. docs/models/parameter-server.md.
#include "model/cost/optimizer_work.h"
#include "model/memory/optimizer_state.h"
#include "sim/strategy/parameter_keys.h"

namespace ringside {
namespace {

class ShardOwners final : public KeyHooks {
public:
    explicit ShardOwners(StepWriter& step) : KeyHooks(step, step.input().parallel.pushPullOverlap) {
        const auto add = [&](const char* name) {
            step.schedule().axes.push_back({name, step.syncRanks(), 1});
            return static_cast<std::uint32_t>(step.schedule().axes.size() - 1);
        };
        // Communicators of their own: a pull that waits for its update must not hold up the next push.
        if (step.schedule().axes.size() == 1) {
            add("push");
            add("pull");
        }
        push_ = step.program().addStream(StreamKind::Communication, "nccl push");
        pull_ = step.program().addStream(StreamKind::Communication, "nccl pull");
        server_ = step.program().addStream(StreamKind::Compute, "server");
        const std::int64_t ranks = step.syncRanks();
        for (const ParameterKey& key : keys()) {
            const std::int64_t shard = (key.elements + ranks - 1) / ranks;
            Layout part = packed(key.parameters, step.program().program().parameters);
            part.elements = shard * ranks;
            part.cut = Cut::Flat;
            const std::int32_t layout = step.program().addLayout(std::move(part));
            targets_.push_back({shard, kNoBuffer, kNoBuffer, -1, static_cast<std::int32_t>(targets_.size()), true, 0, layout});
            // Everybody's gradients of this rank's part, one after another; their sum is where the first of them was.
            Buffer received{shard * ranks * sizeOf(step.gradientDtype()), MemoryCategory::Buckets, BufferRole::Bucket, step.gradientDtype(), false, false, -1,
                            static_cast<std::int32_t>(received_.size())};
            received.layout = layout;
            received.deferredFree = true;  // the push stream fills it, the server's uses it
            received_.push_back(step.addBuffer(received));
        }
        step.declareOptimizerState(targets_);
    }

    void communicate(StepWriter& step, std::uint32_t k) override {
        const ParameterKey& key = keys()[k];
        const TrainingConfig& training = step.input().training;
        const std::int64_t ranks = step.syncRanks(), shard = targets_[k].elements;
        const DType gradient = step.gradientDtype();
        const auto part = static_cast<std::uint16_t>(k);
        ProgramWriter& program = step.program();

        const TaskId complete = step.lastCompute();
        const TaskId push = step.collective(push_, Phase::GradientSync, TaskRole::Push, CollectiveOp::AllToAll, gradient, shard * ranks, kPushAxis, key.layer, part);
        program.dependOn(complete);
        useGradients(step, key, UseKind::Read);
        program.use(received_[k], UseKind::Allocate);
        program.use(received_[k], UseKind::Write);

        step.memoryKernel(server_, Phase::GradientSync, TaskRole::ShardReduce, "add", shard * (ranks + 1) * sizeOf(gradient), key.layer, part);
        program.dependOn(push);
        program.use(received_[k], UseKind::Write);
        const std::int64_t elements[] = {shard};
        for (const KernelWork& work : optimizerStep(training.optimizer, training.precision, elements)) step.kernel(server_, Phase::Optimizer, TaskRole::OptimizerKernel, work, key.layer, part);
        const TaskId update = program.last();
        std::vector<OptimizerTarget> parts(key.parameters.size(), targets_[k]);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            parts[i].gradient = received_[k];
            parts[i].parameter = step.parameters()[key.parameters[i]].buffer;
        }
        step.useTargets(parts);
        step.allocateOptimizerState({&targets_[k], 1});
        if (const Bytes transient = foreachTransientBytes(training.optimizer, training.precision, elements); transient > 0) {
            const BufferId workspace = step.addBuffer({transient, MemoryCategory::Workspace, BufferRole::Workspace, DType::Fp32, false, false, -1, 0});
            program.use(workspace, UseKind::Allocate);
            program.use(workspace, UseKind::Free);
        }
        program.use(received_[k], UseKind::Free);

        step.collective(pull_, Phase::GradientSync, TaskRole::Pull, CollectiveOp::AllGather, training.precision.parameter, shard * ranks, kPullAxis, key.layer, part);
        program.dependOn(update);
        useParameters(step, key, UseKind::Write);
    }

private:
    static constexpr std::uint32_t kPushAxis = 1, kPullAxis = 2;
    StreamId push_ = 0, pull_ = 0, server_ = 0;
    std::vector<OptimizerTarget> targets_;  // per key: this rank's part
    std::vector<BufferId> received_;        // per key: every rank's gradients of this rank's part
};

class PsSharded final : public Strategy {
public:
    std::string_view name() const override { return "ps-sharded"; }
    std::string_view summary() const override { return "Every device is the server of its part of each layer: all-to-all of gradients, update, all-gather."; }
    std::vector<Knob> knobs() const override { return {{"push_pull_overlap", "true", "layers are pushed while backward goes on; false: after it"}}; }

    Result<Schedule> write(const StrategyInput& input) const override {
        return writeStep(input, name(), [&](StepWriter& step) -> Result<void> {
            const bool alone = step.syncRanks() == 1;
            step.declareState({true, alone, {}, {}});
            if (alone) {
                StepHooks nothing;
                step.runPasses(nothing);
                step.optimizerStep();
            } else {
                ShardOwners hooks(step);
                step.runPasses(hooks);
            }
            step.endStep();
            return {};
        }, false);
    }
};

}  // namespace

std::unique_ptr<const Strategy> makePsSharded() { return std::make_unique<PsSharded>(); }

}  // namespace ringside
