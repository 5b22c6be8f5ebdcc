// StepHooks: where a strategy puts its own tasks into a step that a StepWriter writes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside {

class StepWriter;

/// One forward or backward pass of one micro-batch through one chunk of the model (the only one, unless pipelines interleave).
struct Pass {
    int microStep = 0;
    std::size_t chunk = 0;
    bool first = false;  ///< of this chunk in the step
    bool last = false;   ///< likewise: gradients are complete after it
};

/// Called in issue order. Everything is optional.
class StepHooks {
public:
    virtual ~StepHooks() = default;

    virtual void beforeForwardPass(StepWriter&, const Pass&) {}
    virtual void beforeForward(StepWriter&, std::size_t /*layer*/) {}
    virtual void beforeForwardOp(StepWriter&, std::size_t /*layer*/, int /*op*/) {}
    virtual void afterForwardOp(StepWriter&, std::size_t /*layer*/, int /*op*/) {}
    virtual void afterForward(StepWriter&, std::size_t /*layer*/) {}
    virtual void afterForwardPass(StepWriter&, const Pass&) {}

    virtual void beforeBackwardPass(StepWriter&, const Pass&) {}
    /// Before the layer's recompute, where it has one.
    virtual void beforeBackward(StepWriter&, std::size_t /*layer*/) {}
    virtual void beforeBackwardOp(StepWriter&, std::size_t /*layer*/, int /*op*/) {}
    virtual void afterBackwardOp(StepWriter&, std::size_t /*layer*/, int /*op*/) {}
    /// The gradient of parameter `p` (index into StepWriter::parameters) is complete for this micro-step; the task written
    /// last completes it.
    virtual void onGradientReady(StepWriter&, std::uint32_t /*p*/) {}
    virtual void afterBackward(StepWriter&, std::size_t /*layer*/) {}
    virtual void afterBackwardPass(StepWriter&, const Pass&) {}
};

}  // namespace ringside
