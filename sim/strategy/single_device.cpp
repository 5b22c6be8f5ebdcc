// Single device: no communication. The baseline of every comparison, and what any strategy is on one device.
#include <fmt/format.h>

#include "sim/strategy/step_writer.h"

namespace ringside {
namespace {

/// torchtune's OptimizerInBackward, or a hook of one's own: register_post_accumulate_grad_hook steps and drops the gradient.
class StepInBackward final : public StepHooks {
public:
    void onGradientReady(StepWriter& step, std::uint32_t p) override { step.optimizerStepOf(p); }
};

class SingleDevice final : public Strategy {
public:
    std::string_view name() const override { return "single"; }
    std::string_view summary() const override { return "One device trains alone; nothing is communicated."; }
    std::vector<Knob> knobs() const override { return {}; }

    Result<Schedule> write(const StrategyInput& input) const override {
        const std::int64_t devices = input.cluster.deviceCount();
        if (devices != 1)
            return badInput("strategy", fmt::format("'single' trains on one device, but the cluster has {}; use --devices 1, or another strategy", devices));
        return writeStep(input, name(), [](StepWriter& step) -> Result<void> {
            if (step.input().training.optimizerInBackward) {
                StepInBackward hooks;
                step.runPasses(hooks);
            } else {
                StepHooks nothing;
                step.runPasses(nothing);
                step.optimizerStep();
            }
            step.endStep();
            return {};
        });
    }
};

}  // namespace

std::unique_ptr<const Strategy> makeSingleDevice() { return std::make_unique<SingleDevice>(); }

}  // namespace ringside
