// The loss over a vocabulary, in the forms in which programs compute it: they differ in how much of the logits is ever in memory.
#pragma once

#include <string_view>

#include "model/training/training_config.h"
#include "model/workload/dense_ops.h"

namespace ringside {

/// The mean cross-entropy of `logits` [..., classes]. FusedLinear counts as Eager here: logits that exist are not chunked any more.
/// `metrics`: metrics of the training loop that take PyTorch's own cross-entropy of the same logits once more each, in fp32 and without gradients.
int crossEntropy(LayerBuilder& layer, int logits, LossKernel kernel = LossKernel::Eager, std::int64_t metrics = 0);

/// The head's product and its loss in one op that never holds all logits: token chunk by token chunk it computes logits, loss, and both
/// gradients, which it keeps for backward. REQUIRES: the head has no bias.
int fusedLinearLoss(LayerBuilder& layer, std::string_view name, int x, std::int64_t classes, WeightBias parameters);

}  // namespace ringside
