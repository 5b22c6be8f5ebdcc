// What the three stages of DeepSpeed's ZeRO have in common.
#pragma once

#include <string_view>
#include <vector>

#include "sim/strategy/step_writer.h"

namespace ringside {

/// DeepSpeed always updates a flat fp32 copy of the parameters, except in pure 16-bit training.
TrainingConfig zeroTraining(const TrainingConfig& training);

/// The knobs that all stages take, `own`, and the mesh's but for those `leftOut`.
std::vector<Knob> zeroKnobs(std::vector<Knob> own, const std::vector<std::string_view>& leftOut);

/// The gradient norm over all ranks, which the host reads: DeepSpeed needs it in every step, clipping or not.
void zeroGradientNorm(StepWriter& step, BufferId gradients, std::int64_t elements);

}  // namespace ringside
