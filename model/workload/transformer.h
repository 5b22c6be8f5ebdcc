// Transformers as workloads: decoders (GPT-2/3, Llama and its kin, MPT, OPT, GPT-NeoX, Phi, Gemma), encoders (BERT), image
// encoders (ViT). Parameters carry the names and the registration order of the Hugging Face modules.
#pragma once

#include "model/workload/model_spec.h"

namespace ringside {

/// Checks a spec against itself: positive sizes, heads and key/value heads that divide, sizes below absurd.
Result<void> validate(const TransformerSpec& spec, const std::string& name);

/// The part of the model that one rank computes. REQUIRES: validate holds for the spec and for the shard; `length` tokens per sample
/// (image models: patches + 1). Cost: three layer types, whatever the depth.
Workload buildTransformer(const TransformerSpec& spec, const TrainingConfig& training, std::int64_t length, const ModelShard& shard);

/// Tokens of one image: patches and the class token.
std::int64_t imageTokens(const TransformerSpec& spec);

}  // namespace ringside
