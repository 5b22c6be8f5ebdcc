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
    bool isView = false;                    ///< the output is the input's memory
    bool recomputed = false;                ///< selective recompute runs this op again in backward
};

struct LayerPlan {
    std::vector<OpPlan> ops;
    std::vector<bool> differentiable;       ///< per value: floating point, so that a gradient can flow to it
    std::vector<int> producer;              ///< per value: the op that writes it, or −1 for the layer's input
    int neededAgain = 0;                    ///< ops before this one have to run again for backward; those from it on only for the layer's output (under autocast the casts that backward needs are of the product's own op, which then runs again)
    int firstRecomputed = -1, lastRecomputed = -1;  ///< the range of ops that selective recompute runs again
};

LayerPlan planLayer(const LayerType& type, Recompute recompute);

}  // namespace ringside
