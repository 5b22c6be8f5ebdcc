// DistributedDataParallel (nn/parallel/distributed.py): what PyTorch's reducer does (ddp_reducer.h), then the whole optimizer
// on every rank. docs/models/ddp.md tells the rules and their surprises.
#include "sim/strategy/cut_ranks.h"
#include "sim/strategy/ddp_async.h"
#include "sim/strategy/ddp_join.h"
#include "sim/strategy/ddp_reducer.h"

namespace ringside {
namespace {

class Ddp final : public Strategy {
public:
    std::string_view name() const override { return "ddp"; }
    std::string_view summary() const override {
        return "PyTorch DistributedDataParallel: gradients are all-reduced in buckets while backward goes on.";
    }
    std::vector<Knob> knobs() const override {
        std::vector<Knob> own = ddpReducerKnobs();
        own.push_back({"join", "false", "the join context for uneven inputs: every forward asks who still has some"});
        own.push_back({"exhausted_ranks", "0", "join: ranks without inputs, which only shadow the others' collectives"});
        own.push_back({"async_gradients", "false", "apply the gradients of the step before, which travel while this one computes"});
        return withMesh(std::move(own));
    }

    Result<Schedule> write(const StrategyInput& input) const override {
        TRY_VOID(checkJoin(input));
        TRY_VOID(checkReducer(input));
        const auto cut = [&](std::vector<ProgramPart>& parts) {
            if (input.parallel.exhaustedRanks > 0) giveOwnPrograms(parts, firstExhausted(input));
        };
        return writeStep(input, name(), [&](StepWriter& step) -> Result<void> {
            if (step.part().ranks.front().first >= firstExhausted(input)) {
                shadowCollectives(step);
                return {};
            }
            if (step.syncRanks() > 1 && input.parallel.asyncGradients) return writeAsyncGradients(step);
            if (step.syncRanks() > 1) {
                DdpReducer reducer(step, input);
                JoinNotifier joining(reducer);
                step.runPasses(input.parallel.join ? static_cast<StepHooks&>(joining) : reducer);
            } else {  // one process has nobody to reduce with
                StepHooks nothing;
                step.runPasses(nothing);
            }
            step.optimizerStep();
            step.endStep();
            return {};
        }, true, cut);
    }
};

}  // namespace

std::unique_ptr<const Strategy> makeDdp() { return std::make_unique<Ddp>(); }

}  // namespace ringside
