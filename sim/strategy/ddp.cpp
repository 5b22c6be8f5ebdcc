// DistributedDataParallel (nn/parallel/distributed.py): what PyTorch's reducer does (ddp_reducer.h), then the whole optimizer
// on every rank. docs/models/ddp.md tells the rules and their surprises.
#include "sim/strategy/ddp_reducer.h"

namespace ringside {
namespace {

class Ddp final : public Strategy {
public:
    std::string_view name() const override { return "ddp"; }
    std::string_view summary() const override {
        return "PyTorch DistributedDataParallel: gradients are all-reduced in buckets while backward goes on.";
    }
    std::vector<Knob> knobs() const override { return withMesh(ddpReducerKnobs()); }

    Result<Schedule> write(const StrategyInput& input) const override {
        return writeStep(input, name(), [&](StepWriter& step) -> Result<void> {
            if (step.syncRanks() > 1) {
                DdpReducer reducer(step, input);
                step.runPasses(reducer);
            } else {  // one process has nobody to reduce with
                StepHooks nothing;
                step.runPasses(nothing);
            }
            step.optimizerStep();
            step.endStep();
            return {};
        });
    }
};

}  // namespace

std::unique_ptr<const Strategy> makeDdp() { return std::make_unique<Ddp>(); }

}  // namespace ringside
