#include "sim/strategy/layer_plan.h"

#include <algorithm>

namespace ringside {

LayerPlan planLayer(const LayerType& type, Recompute recompute) {
    LayerPlan plan;
    const std::size_t values = type.values.size();
    plan.ops.resize(type.ops.size());
    plan.producer.assign(values, -1);
    plan.differentiable.resize(values);
    for (std::size_t v = 0; v < values; ++v) {
        const DType dtype = type.values[v].dtype;
        plan.differentiable[v] = dtype == DType::Fp64 || dtype == DType::Fp32 || dtype == DType::Tf32 || dtype == DType::Fp16 || dtype == DType::Bf16 || dtype == DType::Fp8;
    }

    std::vector<int> lastReader(values, -1);
    for (int o = 0; o < static_cast<int>(type.ops.size()); ++o) {
        const Op& op = type.ops[static_cast<std::size_t>(o)];
        OpPlan& opPlan = plan.ops[static_cast<std::size_t>(o)];
        opPlan.isView = sharesMemory(op);
        opPlan.recomputed = recompute == Recompute::Selective && op.attentionCore;
        if (opPlan.recomputed) {
            if (plan.firstRecomputed < 0) plan.firstRecomputed = o;
            plan.lastRecomputed = o;
        }
        opPlan.saved = op.saves;
        if (opPlan.recomputed)  // the checkpoint keeps what the core reads from outside, whether backward needs it or not
            for (const int v : op.inputs) {
                const int producer = plan.producer[static_cast<std::size_t>(v)];
                if (producer < 0 || !plan.ops[static_cast<std::size_t>(producer)].recomputed) opPlan.saved.push_back(v);
            }
        // What an op reads is packed for backward before its kernel runs, what it writes after it: PyTorch's checkpoints end with the last tensor packed.
        for (const int v : op.saves) {
            const bool written = std::find(op.outputs.begin(), op.outputs.end(), v) != op.outputs.end();
            plan.neededAgain = std::max(plan.neededAgain, written ? o + 1 : o);
        }
        std::sort(opPlan.saved.begin(), opPlan.saved.end());
        opPlan.saved.erase(std::unique(opPlan.saved.begin(), opPlan.saved.end()), opPlan.saved.end());
        for (const int v : op.outputs) {
            plan.producer[static_cast<std::size_t>(v)] = o;
            lastReader[static_cast<std::size_t>(v)] = std::max(lastReader[static_cast<std::size_t>(v)], o);
        }
        for (const int v : op.inputs) lastReader[static_cast<std::size_t>(v)] = o;
    }
    for (std::size_t v = 0; v < values; ++v)
        if (lastReader[v] >= 0 && static_cast<int>(v) != type.output)  // the output is handed on, the next layer releases it
            plan.ops[static_cast<std::size_t>(lastReader[v])].releasedAfterForward.push_back(static_cast<int>(v));
    return plan;
}

}  // namespace ringside
