#include "sim/strategy/parameter_keys.h"

namespace ringside {

std::vector<ParameterKey> parameterKeys(StepWriter& step) {
    std::vector<ParameterKey> keys;
    for (std::uint32_t p = 0; p < step.parameters().size(); ++p) {
        const ModelParameter& parameter = step.parameters()[p];
        if (keys.empty() || keys.back().layer != parameter.layer) keys.emplace_back().layer = parameter.layer;
        keys.back().parameters.push_back(p);
        keys.back().elements += parameter.elements;
    }
    return keys;
}

KeyHooks::KeyHooks(StepWriter& step, bool overlap) : keys_(parameterKeys(step)), keyOf_(step.parameters().size()) {
    const TrainingConfig& training = step.input().training;
    overlap_ = overlap && !training.gradientClipping && !training.precision.lossScaling;
    for (std::uint32_t k = 0; k < keys_.size(); ++k)
        for (const std::uint32_t p : keys_[k].parameters) keyOf_[p] = k;
}

void KeyHooks::beforeBackwardPass(StepWriter&, const Pass& pass) {
    sync_ = pass.last;
    for (ParameterKey& key : keys_) key.pending = key.parameters.size();
}

void KeyHooks::onGradientReady(StepWriter& step, std::uint32_t p) {
    if (!sync_ || --keys_[keyOf_[p]].pending > 0) return;
    if (overlap_) communicate(step, keyOf_[p]);
    else late_.push_back(keyOf_[p]);
}

void KeyHooks::afterBackwardPass(StepWriter& step, const Pass&) {
    if (!sync_) return;
    if (!late_.empty()) step.finishGradients(step.wholeParameters());
    for (const std::uint32_t k : late_) communicate(step, k);
    late_.clear();
}

void KeyHooks::useGradients(StepWriter& step, const ParameterKey& key, UseKind kind) {
    for (const std::uint32_t p : key.parameters) step.program().use(step.parameters()[p].gradient, kind);
}

void KeyHooks::useParameters(StepWriter& step, const ParameterKey& key, UseKind kind) {
    for (const std::uint32_t p : key.parameters) step.program().use(step.parameters()[p].buffer, kind);
}

}  // namespace ringside
