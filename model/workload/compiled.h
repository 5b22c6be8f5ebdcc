// torch.compile: kernels that move bytes beside each other become one. docs/models/workloads.md.
#pragma once

#include "model/workload/workload.h"

namespace ringside {

/// Norms after a residual add no longer read the sum, their weights' gradient comes with the input's, and sums of gradients read one side only.
/// Times only: what is kept stays what eager autograd keeps.
void fuseElementwise(LayerType& layer);

}  // namespace ringside
