// DDP's join context (torch.distributed.algorithms.Join): ranks may run out of inputs at different times. Every forward asks,
// with an all-reduce of one number that the host waits for, how many ranks still have some; those that have none answer all
// further collectives of the others with zeros.
#pragma once

#include "sim/strategy/step_writer.h"

namespace ringside {

/// Fails (bad input) where the knobs do not go together.
Result<void> checkJoin(const StrategyInput& input);
/// Ranks from this one on have no inputs left; the number of ranks where all have some.
std::int64_t firstExhausted(const StrategyInput& input);

/// Puts the question before each forward; everything else is the reducer's.
class JoinNotifier final : public StepHooks {
public:
    explicit JoinNotifier(StepHooks& reducer) : reducer_(reducer) {}

    void beforeForwardPass(StepWriter& step, const Pass& pass) override;
    void beforeBackwardPass(StepWriter& step, const Pass& pass) override { reducer_.beforeBackwardPass(step, pass); }
    void onGradientReady(StepWriter& step, std::uint32_t p) override { reducer_.onGradientReady(step, p); }
    void afterBackwardPass(StepWriter& step, const Pass& pass) override { reducer_.afterBackwardPass(step, pass); }

private:
    StepHooks& reducer_;
};

/// The step of an exhausted rank: the collectives of the first program, in its order, with zeros.
void shadowCollectives(StepWriter& step);

}  // namespace ringside
