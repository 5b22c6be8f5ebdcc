#include "sim/strategy/pipeline_order.h"

#include <algorithm>

namespace ringside {

PipelineKind pipelineKindOf(const ParallelConfig& parallel) {
    if (parallel.pipelineSchedule == "gpipe") return PipelineKind::GPipe;
    return parallel.pipelineSchedule == "interleaved" ? PipelineKind::Interleaved : PipelineKind::OneForwardOneBackward;
}

std::vector<PipelinePass> pipelineOrder(PipelineKind kind, int stage, int stages, int chunks, int microSteps, bool paired) {
    std::vector<PipelinePass> order;
    const int total = microSteps * chunks;
    if (kind == PipelineKind::GPipe) {
        for (int m = 0; m < microSteps; ++m) order.push_back({true, m, 0});
        for (int m = 0; m < microSteps; ++m) order.push_back({false, m, 0});
        return order;
    }
    // Interleaved (Megatron): chunks take turns in groups of as many micro-batches as there are stages.
    const auto pass = [&](int k, bool forward) {
        const int inGroup = k % (stages * chunks), turn = inGroup / stages;
        return PipelinePass{forward, k / (stages * chunks) * stages + k % stages, forward ? turn : chunks - 1 - turn};
    };
    const auto simple = [](int k, bool forward) { return PipelinePass{forward, k, 0}; };
    const auto at = [&](int k, bool forward) { return kind == PipelineKind::Interleaved ? pass(k, forward) : simple(k, forward); };
    const int ahead = (kind == PipelineKind::Interleaved ? 2 * (stages - stage - 1) + (chunks - 1) * stages : stages - stage - 1) + (paired ? 1 : 0);
    const int warmUp = std::min(total, ahead);
    for (int k = 0; k < warmUp; ++k) order.push_back(at(k, true));
    for (int k = warmUp; k < total; ++k) {
        order.push_back(at(k, true));
        order.push_back(at(k - warmUp, false));
    }
    for (int k = total - warmUp; k < total; ++k) order.push_back(at(k, false));
    return order;
}

int microStepsInFlight(PipelineKind kind, int stage, int stages, int microSteps, bool paired) {
    return kind == PipelineKind::OneForwardOneBackward ? std::min(microSteps, stages - stage + (paired ? 1 : 0)) : microSteps;
}

}  // namespace ringside
