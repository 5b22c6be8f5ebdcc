// Optimizer work: the kernels between the last gradient and the next forward: unscaling, clipping, the update itself.
//
// Pass counts follow PyTorch's sources (docs/models/optimizer.md). zero_grad(set_to_none=True) launches nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/training/training_config.h"
#include "model/workload/kernel_work.h"

namespace ringside {

/// Kernels of one optimizer step over tensors of the given element counts (a rank's own shards, where they are sharded), in
/// launch order, one entry per launch. Weight decay is on for AdamW and Adafactor and off for the others, as in torch.optim.
/// Implementations that do not exist fall back as torch does: Adafactor has no fused kernel (foreach is used), 8-bit Adam
/// has one kernel per tensor in every implementation. O(launches).
std::vector<KernelWork> optimizerStep(const Optimizer& optimizer, const Precision& precision, std::span<const std::int64_t> parameterElements);

/// clip_grad_norm_: a norm over every gradient, a few scalar kernels, and a multiplication of every gradient. The all-reduce
/// that sharded gradients need between them is not included.
std::vector<KernelWork> gradientClipping(const Precision& precision, std::span<const std::int64_t> parameterElements);

/// GradScaler.unscale_: one read and write of every gradient with the check for inf. Empty unless precision.lossScaling.
std::vector<KernelWork> gradientUnscaling(const Precision& precision, std::span<const std::int64_t> parameterElements);

}  // namespace ringside
