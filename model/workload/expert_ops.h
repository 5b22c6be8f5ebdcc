// Mixture of experts: router, dispatch, experts, combine. Tokens are taken to be spread evenly over the experts.
#pragma once

#include "model/workload/layer_builder.h"
#include "model/workload/model_shard.h"
#include "model/workload/model_spec.h"

namespace ringside {

struct ExpertParameters {
    WeightBias router;       ///< [experts, hidden]
    WeightBias gateUp, down; ///< [experts, 2·ffn, hidden], [experts, hidden, ffn]; of a shard: experts/ep and ffn/tp
};

struct ExpertShape {
    std::int64_t experts = 0, perToken = 0;  ///< of the whole model; each token goes through `perToken` of `experts` gated MLPs
    std::int64_t ffn = 0;                    ///< width of one expert, whole
    OpKind activation = OpKind::Silu;
    RouterSpec router;
};

/// The sparse MLP. Returns a value of x's shape, summed over the tensor axis. A shard sends its tokens to the ranks of the expert
/// axis that hold their experts, and back; the experts' width is split over the tensor axis, unless the shard keeps experts whole.
/// `kernel`: a fused activation multiplies by the routing weights too (Megatron's weighted SwiGLU); else the experts' outputs are weighed, and kept for it.
int expertMlp(LayerBuilder& layer, int x, const ExpertShape& shape, const ExpertParameters& parameters, const ModelShard& shard, GatedKernel kernel);

}  // namespace ringside
