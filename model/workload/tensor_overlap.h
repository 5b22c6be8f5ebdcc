// Overlap of tensor-parallel collectives with the products beside them, as Transformer Engine's userbuffers do it (Megatron's
// --tp-comm-overlap; docs/models/megatron.md).
#pragma once

#include <cstdint>

#include "model/workload/workload.h"

namespace ringside {

/// Cuts every sequence gather with the linear layer that reads it, and every linear layer with the scatter of its result, into pieces: a gather
/// into one for each of `ranks`, forward and (the gradient's, before the product of the row-parallel layer) backward; a scatter into four.
/// Layers of experts, and products whose input is cast first, stay whole. FLOPs and bytes of the collectives do not change. REQUIRES: ranks >= 1
/// divides the tokens.
void overlapTensorCollectives(LayerType& layer, std::int64_t ranks);

}  // namespace ringside
