// LayerPlan: when the values of a layer come alive and when they can go, worked out once per layer type.
//
// PyTorch frees a tensor when its last reference goes: the forward code's, or that of the last op that saved it for
// backward. Both are known from the ops alone.
#pragma once

#include <cstdint>
#include <vector>

#include "model/training/training_config.h"
#include "model/workload/workload.h"

namespace ringside {

struct OpPlan {
    std::vector<int> releasedAfterForward;  ///< values whose last forward reader this op is (or that nobody reads)
    std::vector<int> saved;                 ///< values this op keeps for backward (or to run again in it), each once
    std::vector<int> savedInForward;        ///< those of them that it keeps from forward on; the others are made again first
    bool isView = false;                    ///< the output is the input's memory
    bool isKept = false;                    ///< of a block that runs again: not this op, whose results stay
};

/// An op of a segment that runs again.
struct SecondRun {
    int op = 0;
    std::vector<int> kept;      ///< values it makes, once for each op that keeps them from now on
    std::vector<int> released;  ///< values made in this run that no later op of it reads
};

/// What selective recompute runs again before the backward of an op.
struct SegmentPlan {
    RecomputeSegment segment;
    std::vector<SecondRun> runs;
    std::vector<int> views;  ///< later ops whose output is the memory of what is made again
};

struct LayerPlan {
    std::vector<OpPlan> ops;
    std::vector<bool> differentiable;       ///< per value: floating point, so that a gradient can flow to it
    std::vector<int> producer;              ///< per value: the op that writes it, or −1 for the layer's input
    int neededAgain = 0;                    ///< ops before this one have to run again for backward; those from it on only for the layer's output (under autocast the casts that backward needs are of the product's own op, which then runs again)
    std::vector<SegmentPlan> segments;      ///< of selective recompute, in order of their ops
};

LayerPlan planLayer(const LayerType& type, const TrainingConfig& training);

/// The segments of a layer that run again: those of the chosen modules, without those that lie in another.
std::vector<RecomputeSegment> recomputedSegments(const LayerType& type, const TrainingConfig& training);

}  // namespace ringside
