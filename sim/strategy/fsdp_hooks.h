// FsdpHooks: turns the hooks of a step into those of FSDP's units: before and after a unit's forward, before and after its
// backward. What happens there is FSDP1's (fsdp1.cpp) or FSDP2's (fsdp2.cpp) business.
#pragma once

#include "sim/strategy/fsdp_units.h"
#include "sim/strategy/step_hooks.h"

namespace ringside {

class FsdpHooks : public StepHooks {
public:
    explicit FsdpHooks(FsdpUnits units) : units_(std::move(units)), pending_(units_.all.size()) {}

    void beforeForwardPass(StepWriter& step, const Pass& pass) final;
    void beforeForward(StepWriter& step, std::size_t layer) final;
    void beforeForwardOp(StepWriter& step, std::size_t layer, int op) final;
    void afterForwardOp(StepWriter& step, std::size_t layer, int op) final;
    void afterForward(StepWriter& step, std::size_t layer) final;
    void afterForwardPass(StepWriter& step, const Pass& pass) final;
    void beforeBackwardPass(StepWriter& step, const Pass& pass) final;
    void beforeBackward(StepWriter& step, std::size_t layer) final;
    void beforeBackwardOp(StepWriter& step, std::size_t layer, int op) final;
    void onGradientReady(StepWriter& step, std::uint32_t p) final;
    void afterBackwardOp(StepWriter& step, std::size_t layer, int op) final;
    void afterBackward(StepWriter& step, std::size_t layer) final;
    void afterBackwardPass(StepWriter& step, const Pass& pass) final;

protected:
    /// The root's forward begins: the streams of FSDP wait here for what computes now.
    virtual void beginForward(StepWriter& step, const Pass& pass) = 0;
    virtual void preForward(StepWriter& step, std::uint32_t unit) = 0;
    virtual void postForward(StepWriter& step, std::uint32_t unit) = 0;
    virtual void endForward(StepWriter&, const Pass&) {}
    virtual void beginBackward(StepWriter& step, const Pass& pass) = 0;
    virtual void preBackward(StepWriter& step, std::uint32_t unit) = 0;
    /// Every gradient of the unit is there, which is when autograd accumulates into a flat parameter.
    virtual void gradientsReady(StepWriter&, std::uint32_t /*unit*/) {}
    /// Backward has left the module.
    virtual void postBackward(StepWriter&, std::uint32_t /*unit*/) {}
    /// The root is through, last of all.
    virtual void endBackward(StepWriter& step, const Pass& pass) = 0;

    /// Whether the forward that runs is backward's second one (full recompute).
    bool inBackward() const { return inBackward_; }

    FsdpUnits units_;

private:
    std::vector<std::uint32_t> pending_;  // per unit: gradients that are still to come in this backward
    std::vector<std::uint32_t> ready_;    // units whose last gradient the current op completed
    bool inBackward_ = false;
};

}  // namespace ringside
