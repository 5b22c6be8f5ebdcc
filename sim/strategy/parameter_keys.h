// Keys of a parameter server: the parameters of one layer travel together, as soon as backward has completed the last of their
// gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/strategy/step_writer.h"

namespace ringside {

struct ParameterKey {
    std::int32_t layer = 0;
    std::vector<std::uint32_t> parameters;  ///< into StepWriter::parameters
    std::int64_t elements = 0;
    std::size_t pending = 0;                ///< gradients that this backward has not completed
};

/// One for every layer that owns parameters (a tied tensor belongs to its owner), in the order of layers.
std::vector<ParameterKey> parameterKeys(StepWriter& step);

/// Writes a key's communication when its gradients are complete: while backward goes on, or after it (overlap false, and
/// where a worker must see all its gradients first, to unscale or to clip them).
class KeyHooks : public StepHooks {
public:
    KeyHooks(StepWriter& step, bool overlap);

    void beforeBackwardPass(StepWriter& step, const Pass& pass) override;
    void onGradientReady(StepWriter& step, std::uint32_t p) override;
    void afterBackwardPass(StepWriter& step, const Pass& pass) override;

protected:
    std::vector<ParameterKey>& keys() { return keys_; }
    /// The gradients of key `k` are complete with `step.lastCompute()`.
    virtual void communicate(StepWriter& step, std::uint32_t k) = 0;
    /// The task written last reads (writes) the gradients (parameters) of the key.
    static void useGradients(StepWriter& step, const ParameterKey& key, UseKind kind);
    static void useParameters(StepWriter& step, const ParameterKey& key, UseKind kind);

private:
    std::vector<ParameterKey> keys_;
    std::vector<std::uint32_t> keyOf_;  // per parameter
    std::vector<std::uint32_t> late_;   // complete, to be sent after backward
    bool overlap_, sync_ = false;
};

}  // namespace ringside
