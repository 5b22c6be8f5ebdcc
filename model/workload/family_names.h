// FamilyNames: what the Hugging Face module of a transformer family calls its parts, and in which order a block registers them.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/workload/model_spec.h"

namespace ringside {

enum class BlockOrder : std::uint8_t {
    NormAttentionNormMlp,  ///< GPT-2, MPT: as executed
    AttentionMlpNorms,     ///< Llama, Phi: norms last
    AttentionNormsMlp,     ///< ViT (transformers 5; up to 4 its norms came last)
    NormsAttentionMlp,     ///< GPT-NeoX: norms first
    AttentionNormMlpNorm,  ///< BERT, OPT: each norm after its half
};

struct FamilyNames {
    std::string_view tokens, positions;  ///< embedding tables
    std::string_view block;              ///< "h": blocks are "h.0", "h.1", …
    BlockOrder order;
    std::string_view norm1, norm2;
    std::string_view qkv;                ///< fused
    std::string_view q, k, v;            ///< separate; OPT registers k, v, q
    std::string_view out, gate, up, down;
    std::string_view finalNorm, head;
};

const FamilyNames& namesOf(TransformerFamily family);

}  // namespace ringside
