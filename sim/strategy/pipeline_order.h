// The order in which a pipeline stage runs its forward and backward passes. Pure functions; docs/models/pipeline.md draws them.
#pragma once

#include <cstdint>
#include <vector>

#include "model/training/parallel_config.h"

namespace ringside {

enum class PipelineKind : std::uint8_t { GPipe, OneForwardOneBackward, Interleaved };

PipelineKind pipelineKindOf(const ParallelConfig& parallel);

struct PipelinePass {
    bool forward = true;
    int microStep = 0;
    int chunk = 0;

    bool operator==(const PipelinePass&) const = default;
};

/// Of stage `stage` of `stages`, `chunks` model chunks per stage (1 unless interleaved), `microSteps` micro-batches.
/// Interleaved needs microSteps to be a multiple of stages. `paired`: one more forward comes first, so that each forward after the warm-up and the
/// backward behind it are of different micro-batches, or chunks, and can run beside each other.
std::vector<PipelinePass> pipelineOrder(PipelineKind kind, int stage, int stages, int chunks, int microSteps, bool paired = false);

/// Micro-batches that a stage holds activations of at once, at most.
int microStepsInFlight(PipelineKind kind, int stage, int stages, int microSteps, bool paired = false);

}  // namespace ringside
