#include "sim/strategy/layer_plan.h"

#include <algorithm>
#include <iterator>

namespace ringside {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

bool holds(const RecomputeSegment& segment, int op) { return segment.first <= op && op <= segment.last; }

/// Per value: the one whose memory it is.
std::vector<int> rootsOf(const LayerType& type, const LayerPlan& plan) {
    std::vector<int> roots(type.values.size());
    for (std::size_t v = 0; v < roots.size(); ++v) roots[v] = static_cast<int>(v);
    for (std::size_t o = 0; o < type.ops.size(); ++o)
        if (plan.ops[o].isView) roots[at(type.ops[o].outputs[0])] = roots[at(type.ops[o].inputs[0])];
    return roots;
}

/// The last op of the segment that reads `value`; the one that makes it if none does.
int lastReaderIn(const RecomputeSegment& segment, const LayerType& type, int value, int producer) {
    for (int o = segment.last; o > producer; --o) {
        const std::vector<int>& inputs = type.ops[at(o)].inputs;
        if (std::find(inputs.begin(), inputs.end(), value) != inputs.end()) return o;
    }
    return producer;
}

/// Who keeps what from when on. REQUIRES: `plan` is complete but for this.
void planSegments(LayerPlan& plan, const LayerType& type, const std::vector<RecomputeSegment>& segments) {
    const std::vector<int> roots = rootsOf(type, plan);
    const auto maker = [&](int v) { return plan.producer[at(roots[at(v)])]; };
    /// Op `o` does not keep `v` in forward, because this segment makes it again.
    const auto madeAgain = [&](const RecomputeSegment& segment, int o, int v) { return holds(segment, maker(v)) && (segment.discardsOutput() || holds(segment, o)); };

    for (int o = 0; o < static_cast<int>(type.ops.size()); ++o)
        std::copy_if(plan.ops[at(o)].saved.begin(), plan.ops[at(o)].saved.end(), std::back_inserter(plan.ops[at(o)].savedInForward), [&](int v) {
            return std::none_of(segments.begin(), segments.end(), [&](const RecomputeSegment& segment) { return madeAgain(segment, o, v); });
        });
    for (const RecomputeSegment& segment : segments) {
        SegmentPlan& again = plan.segments.emplace_back(SegmentPlan{segment, {}, {}});
        for (int o = segment.first; o <= segment.last; ++o) again.runs.push_back({o, {}, {}});
        for (int o = 0; o < static_cast<int>(type.ops.size()); ++o) {
            for (const int v : plan.ops[at(o)].saved)
                if (madeAgain(segment, o, v)) again.runs[at(maker(v) - segment.first)].kept.push_back(roots[at(v)]);
            if (plan.ops[at(o)].isView && o > segment.last && segment.discardsOutput() && holds(segment, maker(type.ops[at(o)].outputs[0]))) again.views.push_back(o);
        }
        for (int v = 0; v < static_cast<int>(type.values.size()); ++v)
            if (holds(segment, plan.producer[at(v)])) again.runs[at(lastReaderIn(segment, type, v, plan.producer[at(v)]) - segment.first)].released.push_back(v);
    }
}

/// Attention's fused kernel, and the first, third, … of the products (torchtitan, activation_checkpoint.py).
void keepOperators(LayerPlan& plan, const LayerType& type) {
    int products = 0;
    for (std::size_t o = 0; o < type.ops.size(); ++o) {
        const OpKind kind = type.ops[o].kind;
        plan.ops[o].isKept = kind == OpKind::Attention || (kind == OpKind::Linear && ++products % 2 == 1);
    }
}

}  // namespace

std::vector<RecomputeSegment> recomputedSegments(const LayerType& type, const TrainingConfig& training) {
    std::vector<RecomputeSegment> chosen, outermost;
    std::copy_if(type.segments.begin(), type.segments.end(), std::back_inserter(chosen), [&](const RecomputeSegment& segment) { return training.recomputes(segment.module); });
    std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(outermost), [&](const RecomputeSegment& inner) {
        return std::none_of(chosen.begin(), chosen.end(), [&](const RecomputeSegment& outer) {
            return outer.module != inner.module && outer.first <= inner.first && inner.last <= outer.last;
        });
    });
    return outermost;
}

LayerPlan planLayer(const LayerType& type, const TrainingConfig& training) {
    LayerPlan plan;
    const std::vector<RecomputeSegment> segments = recomputedSegments(type, training);
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
        const Op& op = type.ops[at(o)];
        OpPlan& opPlan = plan.ops[at(o)];
        opPlan.isView = sharesMemory(op);
        opPlan.saved = op.saves;
        for (const RecomputeSegment& segment : segments)  // the checkpoint keeps what its ops read from outside, whether backward needs it or not
            if (holds(segment, o))
                std::copy_if(op.inputs.begin(), op.inputs.end(), std::back_inserter(opPlan.saved), [&](int v) { return !holds(segment, plan.producer[at(v)]); });
        // What an op reads is packed for backward before its kernel runs, what it writes after it: PyTorch's checkpoints end with the last tensor packed.
        for (const int v : op.saves) {
            const bool written = std::find(op.outputs.begin(), op.outputs.end(), v) != op.outputs.end();
            plan.neededAgain = std::max(plan.neededAgain, written ? o + 1 : o);
        }
        std::sort(opPlan.saved.begin(), opPlan.saved.end());
        opPlan.saved.erase(std::unique(opPlan.saved.begin(), opPlan.saved.end()), opPlan.saved.end());
        for (const int v : op.outputs) {
            plan.producer[at(v)] = o;
            lastReader[at(v)] = std::max(lastReader[at(v)], o);
        }
        for (const int v : op.inputs) lastReader[at(v)] = o;
    }
    for (const RecomputeSegment& segment : segments)  // an output that is let go is still there until the op has run that waits for it in backward
        for (std::size_t v = 0; v < values; ++v)
            if (holds(segment, plan.producer[v]) && lastReader[v] > segment.last) lastReader[v] = std::max(lastReader[v], segment.before);
    for (std::size_t v = 0; v < values; ++v)
        if (lastReader[v] >= 0 && static_cast<int>(v) != type.output)  // the output is handed on, the next layer releases it
            plan.ops[at(lastReader[v])].releasedAfterForward.push_back(static_cast<int>(v));
    planSegments(plan, type, segments);
    if (training.recompute == Recompute::Operators && type.isBlock) keepOperators(plan, type);
    return plan;
}

}  // namespace ringside
