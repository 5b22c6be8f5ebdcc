#include "sim/strategy/fsdp_hooks.h"

namespace ringside {

void FsdpHooks::beforeForwardPass(StepWriter& step, const Pass& pass) {
    inBackward_ = false;
    beginForward(step, pass);
    if (const std::uint32_t root = units_.roots[pass.chunk]; root != kNoUnit) preForward(step, root);
}

// A checkpointed block runs inside its unit, so its second forward finds the unit gathered; units inside the block see a
// forward like any other.
void FsdpHooks::beforeForward(StepWriter& step, std::size_t layer) {
    for (const std::uint32_t u : units_.layerUnits[layer]) preForward(step, u);
}

void FsdpHooks::beforeForwardOp(StepWriter& step, std::size_t layer, int op) {
    for (const std::uint32_t u : units_.innerUnits[layer])
        if (units_.all[u].firstOp == op) preForward(step, u);
}

void FsdpHooks::afterForwardOp(StepWriter& step, std::size_t layer, int op) {
    for (const std::uint32_t u : units_.innerUnits[layer])
        if (units_.all[u].lastOp == op) postForward(step, u);
}

void FsdpHooks::afterForward(StepWriter& step, std::size_t layer) {
    for (const std::uint32_t u : units_.layerUnits[layer]) postForward(step, u);
}

void FsdpHooks::afterForwardPass(StepWriter& step, const Pass& pass) {
    if (const std::uint32_t root = units_.roots[pass.chunk]; root != kNoUnit) postForward(step, root);
    endForward(step, pass);
}

void FsdpHooks::beforeBackwardPass(StepWriter& step, const Pass& pass) {
    inBackward_ = true;
    for (std::size_t u = 0; u < units_.all.size(); ++u)
        if (units_.all[u].chunk == pass.chunk) pending_[u] = static_cast<std::uint32_t>(units_.all[u].parameters.size());
    beginBackward(step, pass);
    if (const std::uint32_t root = units_.roots[pass.chunk]; root != kNoUnit) preBackward(step, root);
}

void FsdpHooks::beforeBackward(StepWriter& step, std::size_t layer) {
    for (const std::uint32_t u : units_.layerUnits[layer]) preBackward(step, u);
}

void FsdpHooks::beforeBackwardOp(StepWriter& step, std::size_t layer, int op) {
    for (const std::uint32_t u : units_.innerUnits[layer])
        if (units_.all[u].lastOp == op) preBackward(step, u);
}

void FsdpHooks::onGradientReady(StepWriter&, std::uint32_t p) {
    const std::uint32_t unit = units_.unitOf[p];
    if (--pending_[unit] == 0) ready_.push_back(unit);
}

void FsdpHooks::afterBackwardOp(StepWriter& step, std::size_t layer, int op) {
    for (const std::uint32_t u : ready_) gradientsReady(step, u);
    ready_.clear();
    for (const std::uint32_t u : units_.innerUnits[layer])
        if (units_.all[u].firstOp == op) postBackward(step, u);
}

void FsdpHooks::afterBackward(StepWriter& step, std::size_t layer) {
    for (const std::uint32_t u : units_.layerUnits[layer]) postBackward(step, u);
}

void FsdpHooks::afterBackwardPass(StepWriter& step, const Pass& pass) {
    if (const std::uint32_t root = units_.roots[pass.chunk]; root != kNoUnit) postBackward(step, root);
    endBackward(step, pass);
}

}  // namespace ringside
