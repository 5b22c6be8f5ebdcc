#include "model/workload/family_names.h"

namespace ringside {
namespace {

constexpr FamilyNames kGpt2{"wte", "wpe", "h", BlockOrder::NormAttentionNormMlp, "ln_1", "ln_2", "attn.c_attn", "", "", "",
                            "attn.c_proj", "", "mlp.c_fc", "mlp.c_proj", "ln_f", "lm_head"};
constexpr FamilyNames kLlama{"embed_tokens", "", "layers", BlockOrder::AttentionMlpNorms, "input_layernorm", "post_attention_layernorm", "",
                             "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj",
                             "mlp.down_proj", "norm", "lm_head"};
constexpr FamilyNames kBert{"embeddings.word_embeddings", "embeddings.position_embeddings", "encoder.layer",
                            BlockOrder::AttentionNormMlpNorm,
                            "attention.output.LayerNorm", "output.LayerNorm", "", "attention.self.query", "attention.self.key",
                            "attention.self.value", "attention.output.dense", "", "intermediate.dense", "output.dense", "",
                            "cls.predictions.decoder"};
constexpr FamilyNames kVit{"", "embeddings.position_embeddings", "layers", BlockOrder::AttentionNormsMlp, "layernorm_before",
                           "layernorm_after", "",
                           "attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.o_proj", "",
                           "mlp.fc1", "mlp.fc2", "layernorm", "classifier"};
constexpr FamilyNames kMpt{"wte", "wpe", "blocks", BlockOrder::NormAttentionNormMlp, "norm_1", "norm_2", "attn.Wqkv", "", "", "",
                           "attn.out_proj", "", "ffn.up_proj", "ffn.down_proj", "norm_f", "lm_head"};
constexpr FamilyNames kOpt{"embed_tokens", "embed_positions", "layers", BlockOrder::AttentionNormMlpNorm, "self_attn_layer_norm",
                           "final_layer_norm", "",
                           "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj", "", "fc1", "fc2",
                           "final_layer_norm", "lm_head"};
constexpr FamilyNames kGptNeoX{"embed_in", "", "layers", BlockOrder::NormsAttentionMlp, "input_layernorm", "post_attention_layernorm",
                               "attention.query_key_value", "", "", "", "attention.dense", "", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h",
                               "final_layer_norm", "lm_head"};
constexpr FamilyNames kPhi{"embed_tokens", "", "layers", BlockOrder::AttentionMlpNorms, "input_layernorm", "", "", "self_attn.q_proj",
                           "self_attn.k_proj", "self_attn.v_proj", "self_attn.dense", "", "mlp.fc1", "mlp.fc2", "final_layernorm", "lm_head"};

}  // namespace

const FamilyNames& namesOf(TransformerFamily family) {
    switch (family) {
        case TransformerFamily::Gpt2: case TransformerFamily::Gpt3: return kGpt2;
        case TransformerFamily::Llama: case TransformerFamily::Mixtral: case TransformerFamily::Gemma2: return kLlama;
        case TransformerFamily::Bert: return kBert;
        case TransformerFamily::Vit: return kVit;
        case TransformerFamily::Mpt: return kMpt;
        case TransformerFamily::Opt: return kOpt;
        case TransformerFamily::GptNeoX: return kGptNeoX;
        case TransformerFamily::Phi: return kPhi;
    }
    return kGpt2;
}

}  // namespace ringside
