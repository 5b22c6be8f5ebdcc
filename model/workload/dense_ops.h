// Dense ops: linear, norm, elementwise, embedding. Each function appends one op to the layer with what PyTorch's eager
// autograd does for it (kernels, saved values, casts under autocast), and returns the value it writes.
// Rules and worked numbers: docs/models/workloads.md.
#pragma once

#include <string_view>

#include "model/training/training_config.h"
#include "model/workload/layer_builder.h"

namespace ringside {

struct LinearOptions {
    std::int64_t groups = 1;       ///< experts; the rows of the input are shared out evenly
    bool weightIsInByOut = false;  ///< the weight is stored [in, out] (GPT-2's Conv1D)
    bool inputGathered = false;    ///< x was gathered over the tensor axis: it is not saved, backward gathers it again
    bool isHead = false;           ///< the projection onto the vocabulary, which fp8 recipes leave in bf16
    bool launchesEach = false;     ///< the host issues the kernels of each group one by one
};

/// y = x·Wᵀ + b over the last extent of x; y has the precision's activation type. Backward: input gradient (if x needs one),
/// weight gradient, bias gradient.
int linear(LayerBuilder& layer, std::string_view name, int x, std::int64_t out, WeightBias parameters, LinearOptions options = {});

/// LayerNorm or RMSNorm over the last extent of x.
int norm(LayerBuilder& layer, std::string_view name, int x, bool rms, WeightBias parameters, NormKernel kernel = NormKernel::Fused);

/// Gelu, Silu and Tanh save their input (Tanh and Relu: their output).
int activation(LayerBuilder& layer, std::string_view name, OpKind kind, int x);

/// act(gate)·up. With `up` < 0, `gate` holds both halves in its last extent. 
int gatedActivation(LayerBuilder& layer, std::string_view name, OpKind kind, int gate, int up, GatedKernel kernel = GatedKernel::Eager);

/// a + b, in the wider of the two types.
int add(LayerBuilder& layer, std::string_view name, int a, int b);

int dropout(LayerBuilder& layer, std::string_view name, int x);

/// Rows of a table for [b, s] tokens. Where the head uses the table too, whoever keeps gradients adds the two.
/// `shards` > 1: the table is one of so many parts of the vocabulary, and rows of tokens that are not in it are zero.
int embedding(LayerBuilder& layer, std::string_view name, int tokens, int table, std::int64_t shards = 1);
/// The same for tokens that are no value of this layer: they came with the batch.
int embedding(LayerBuilder& layer, std::string_view name, Shape tokens, int table, std::int64_t shards = 1);
/// x + table[0…s): a learned position (or the token type) for each of the s tokens of each sample.
int positionEmbedding(LayerBuilder& layer, std::string_view name, int x, int table);

/// `x` in `type`: itself, or a value of its own that a cast kernel (put into `kernels`) writes.
int castIfNeeded(LayerBuilder& layer, std::string_view name, int x, DType type, std::vector<KernelWork>& kernels);

}  // namespace ringside
