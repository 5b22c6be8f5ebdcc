// Naive data parallelism: each gradient is all-reduced by itself, synchronously, as soon as it is complete, then divided.
// The collective sits on the compute stream, so nothing overlaps: one latency per tensor.
#include "sim/strategy/step_writer.h"

namespace ringside {
namespace {

class ReduceEach final : public StepHooks {
public:
    explicit ReduceEach(bool noSync) : noSync_(noSync) {}

    void beforeBackwardPass(StepWriter& step, const Pass& pass) override { sync_ = step.syncRanks() > 1 && (pass.last || !noSync_); }

    void onGradientReady(StepWriter& step, std::uint32_t p) override {
        if (!sync_) return;
        const ModelParameter& parameter = step.parameters()[p];
        const std::uint32_t axis = parameter.expert ? step.axes().expertData : step.axes().data;
        const auto part = static_cast<std::uint16_t>(parameter.index);
        step.collective(kComputeStream, Phase::GradientSync, TaskRole::GradientReduce, CollectiveOp::AllReduce, step.gradientDtype(), parameter.elements, axis,
                        parameter.layer, part);
        step.program().use(parameter.gradient, UseKind::Read);
        step.program().use(parameter.gradient, UseKind::Write);
        step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::GradientDivide, "divide", 2 * parameter.elements * sizeOf(step.gradientDtype()),
                          parameter.layer, part);
        step.program().use(parameter.gradient, UseKind::Write);
    }

private:
    bool noSync_, sync_ = false;
};

class NaiveAllReduce final : public Strategy {
public:
    std::string_view name() const override { return "naive"; }
    std::string_view summary() const override { return "Every gradient is all-reduced by itself while compute waits; no buckets, no overlap."; }
    std::vector<Knob> knobs() const override {
        return withMesh({{"no_sync", "true", "with gradient accumulation, reduce only in the last micro-step"}});
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        return writeStep(input, name(), [&](StepWriter& step) -> Result<void> {
            ReduceEach reduce(input.parallel.noSync);
            step.runPasses(reduce);
            step.optimizerStep();
            step.endStep();
            return {};
        });
    }
};

}  // namespace

std::unique_ptr<const Strategy> makeNaiveAllReduce() { return std::make_unique<NaiveAllReduce>(); }

}  // namespace ringside
