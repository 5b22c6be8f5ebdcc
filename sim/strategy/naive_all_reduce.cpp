// Naive data parallelism: each gradient is all-reduced by itself, synchronously, as soon as it is complete, then divided.
// The collective sits on the compute stream, so nothing overlaps: one latency per tensor.
#include "sim/strategy/step_writer.h"

namespace ringside {
namespace {

class ReduceEach final : public GradientListener {
public:
    void onGradientReady(StepWriter& step, std::uint32_t p) override {
        const ModelParameter& parameter = step.parameters()[p];
        const auto part = static_cast<std::uint16_t>(parameter.index);
        step.collective(kComputeStream, Phase::GradientSync, TaskRole::GradientReduce, CollectiveOp::AllReduce, step.gradientDtype(), parameter.elements, 0,
                        parameter.layer, part);
        step.program().use(parameter.gradient, UseKind::Read);
        step.program().use(parameter.gradient, UseKind::Write);
        step.memoryKernel(kComputeStream, Phase::GradientSync, TaskRole::GradientDivide, "divide", 2 * parameter.elements * sizeOf(step.gradientDtype()),
                          parameter.layer, part);
        step.program().use(parameter.gradient, UseKind::Write);
    }
};

class NaiveAllReduce final : public Strategy {
public:
    std::string_view name() const override { return "naive"; }
    std::string_view summary() const override { return "Every gradient is all-reduced by itself while compute waits; no buckets, no overlap."; }
    std::vector<Knob> knobs() const override {
        return {{"no_sync", "true", "with gradient accumulation, reduce only in the last micro-step"}};
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        Schedule schedule = makeSchedule(input, name());
        StepWriter step(input, schedule);
        ReduceEach reduce;
        const int microSteps = static_cast<int>(input.training.gradAccum);
        for (int m = 0; m < microSteps; ++m) {
            const bool sync = schedule.world > 1 && (m + 1 == microSteps || !input.parallel.noSync);
            step.stepOverhead();
            step.inputCopy(m);
            step.forward(m);
            step.backward(m, sync ? &reduce : nullptr);
        }
        step.optimizerStep();
        step.endStep();
        return schedule;
    }
};

}  // namespace

std::unique_ptr<const Strategy> makeNaiveAllReduce() { return std::make_unique<NaiveAllReduce>(); }

}  // namespace ringside
