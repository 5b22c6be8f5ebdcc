// Mixture of experts: router, dispatch, experts, combine. Tokens are taken to be spread evenly over the experts.
#pragma once

#include "model/workload/layer_builder.h"

namespace ringside {

struct ExpertParameters {
    WeightBias router;       ///< [experts, hidden]
    WeightBias gateUp, down; ///< [experts, 2·ffn, hidden], [experts, hidden, ffn]
};

/// The sparse MLP: each token goes through `perToken` of `experts` gated MLPs. Returns [b, s, hidden].
int expertMlp(LayerBuilder& layer, int x, std::int64_t experts, std::int64_t perToken, std::int64_t ffn, OpKind act,
              const ExpertParameters& parameters);

}  // namespace ringside
