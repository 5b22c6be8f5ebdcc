// TrainingConfig: how a model is trained, apart from how it is spread over devices (parallel_config.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/dtype.h"
#include "model/base/result.h"

namespace ringside {

/// What is stored, computed and kept in which type.
struct Precision {
    std::string name = "bf16-autocast";
    DType parameter = DType::Fp32;  ///< parameters as stored, and what DDP puts on the wire
    DType gradient = DType::Fp32;   ///< .grad as stored
    DType math = DType::Bf16;       ///< arithmetic of matmuls and convolutions
    DType activation = DType::Bf16; ///< what matmuls write
    bool autocast = true;           ///< weights are cast to `activation` in each forward; norms and the residual stay fp32
    bool masterWeights = false;     ///< the optimizer keeps an fp32 copy of the parameters
    bool lossScaling = false;       ///< fp16: unscale and check gradients before the step

    bool operator==(const Precision&) const = default;
};

/// "fp32", "tf32", "fp16-autocast", "bf16-autocast", "bf16" (pure), "fp16-pure", "bf16-master" (bf16 parameters, fp32 master and
/// gradients), "fp16-master" (the same in fp16, with loss scaling), "fp8" (as bf16-master, but linear layers other than the head
/// multiply in eight bits); common other spellings are understood. The error names the nearest.
Result<Precision> precisionByName(std::string_view name);
std::vector<std::string> precisionNames();

enum class OptimizerKind : std::uint8_t { Sgd, Momentum, Adam, AdamW, Adafactor, Adam8bit };
/// How PyTorch runs it: one kernel per tensor and operation, several tensors per kernel (the CUDA default), or one fused kernel.
enum class OptimizerImplementation : std::uint8_t { ForLoop, Foreach, Fused };

struct Optimizer {
    OptimizerKind kind = OptimizerKind::AdamW;
    OptimizerImplementation implementation = OptimizerImplementation::Foreach;

    bool operator==(const Optimizer&) const = default;
};

/// "sgd", "momentum", "adam", "adamw", "adafactor", "adam-8bit"; a suffix "-fused", "-foreach" or "-for-loop" chooses
/// the implementation.
Result<Optimizer> optimizerByName(std::string_view name);
std::string nameOf(const Optimizer& optimizer);
std::vector<std::string> optimizerNames();

/// None: every saved activation is kept. Selective: single modules are computed again in backward, by default the core of attention (Korthikanti et
/// al.). Operators: a block runs again but for its attention and every second product, whose results are kept (torchtitan's selective checkpoints by op).
/// Full: each block keeps only its input and runs forward again in backward.
enum class Recompute : std::uint8_t { None, Selective, Operators, Full };
Result<Recompute> recomputeByName(std::string_view name);
std::vector<std::string> recomputeNames();
std::string_view nameOf(Recompute recompute);

/// What selective recompute can run again (Megatron-Core's --recompute-modules): the core of attention; the activation of experts; norms before attention
/// and before the MLP; latent attention's projections up and the heads made of them; a dense MLP; a whole mixture of experts; its shared experts.
enum class RecomputeModule : std::uint8_t { CoreAttention, ExpertActivation, LayerNorm, LatentUp, Mlp, Experts, SharedExperts };
Result<RecomputeModule> recomputeModuleByName(std::string_view name);
std::vector<std::string> recomputeModuleNames();
std::string_view nameOf(RecomputeModule module);  ///< as Megatron spells it: "core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"

/// Flash: one fused kernel, no s² tensor (FlashAttention-2). Flash1: its first generation, Triton's included, at about half the speed.
/// Flash3: what was written for Hopper (FlashAttention-3, cuDNN 9), elsewhere as Flash. Flash4: FlashAttention-4, written for Blackwell; elsewhere as Flash3. FusedSoftmax: batched matmuls that write the s² scores, scale, mask and softmax in one kernel (Megatron, Apex). Math: the
/// same in a kernel each.
enum class AttentionKernel : std::uint8_t { Flash, Flash1, Flash3, Flash4, FusedSoftmax, Math };
Result<AttentionKernel> attentionKernelByName(std::string_view name);
std::vector<std::string> attentionKernelNames();
std::string_view nameOf(AttentionKernel kernel);
/// Whether the s² scores stay inside the kernel.
inline bool isFlash(AttentionKernel kernel) { return kernel != AttentionKernel::FusedSoftmax && kernel != AttentionKernel::Math; }
/// Generation of FlashAttention. REQUIRES isFlash.
inline int flashGeneration(AttentionKernel kernel) {
    return kernel == AttentionKernel::Flash1 ? 1 : kernel == AttentionKernel::Flash3 ? 3 : kernel == AttentionKernel::Flash4 ? 4 : 2;
}

/// Whose Python issues the kernels: what one launch costs the host differs by several times (docs/models/host.md).
enum class Framework : std::uint8_t { PyTorch, HuggingFace, TransformerEngine, Profiled };
Result<Framework> frameworkByName(std::string_view name);
std::vector<std::string> frameworkNames();
std::string_view nameOf(Framework framework);

/// How the loss over a vocabulary is computed. Eager: PyTorch's cross_entropy on an fp32 copy of the logits. Fused: one kernel on the logits
/// as they are (flash-attn's, torch.compile's, torchtune's by chunks). FusedInPlace: which writes their gradient over them (Transformer Engine's,
/// Liger's). FusedLinear: with the head's product, chunk by chunk, so that the logits never exist together (Liger's).
enum class LossKernel : std::uint8_t { Eager, Fused, FusedInPlace, FusedLinear };
Result<LossKernel> lossKernelByName(std::string_view name);
std::vector<std::string> lossKernelNames();
std::string_view nameOf(LossKernel kernel);  ///< "eager", "fused", "fused-in-place", "fused-linear"

/// How act(gate)·up is computed. Eager: two kernels, and act(gate) is kept too. Fused: one kernel that keeps gate and up only (Megatron's
/// bias_swiglu_fusion, torch.compile). FusedInPlace: whose gradients are written over them (Liger's).
enum class GatedKernel : std::uint8_t { Eager, Fused, FusedInPlace };
Result<GatedKernel> gatedKernelByName(std::string_view name);
std::vector<std::string> gatedKernelNames();
std::vector<std::string> normKernelNames();
std::string_view nameOf(GatedKernel kernel);  ///< "eager", "fused", "fused-in-place"

/// How an RMS norm is computed. Fused: one kernel that keeps its input and a number per token (nn.RMSNorm, Liger's, Transformer Engine's,
/// torch.compile). Eager: written in Python (Hugging Face's, torchtune's): an fp32 copy of the input and the normed values before their weight are kept.
enum class NormKernel : std::uint8_t { Fused, Eager };
Result<NormKernel> normKernelByName(std::string_view name);
std::string_view nameOf(NormKernel kernel);  ///< "fused", "eager"

/// How images lie in memory. Contiguous: channel by channel (NCHW), PyTorch's default. ChannelsLast: pixel by pixel (NHWC), what tensor
/// cores work on; convolutions of contiguous images have to be brought into it and back.
enum class MemoryFormat : std::uint8_t { Contiguous, ChannelsLast };
Result<MemoryFormat> memoryFormatByName(std::string_view name);  ///< "contiguous" ("nchw"), "channels_last" ("nhwc")
std::vector<std::string> memoryFormatNames();
std::string_view nameOf(MemoryFormat format);

struct TrainingConfig {
    std::int64_t microBatch = 1;  ///< samples per rank and micro-step
    std::int64_t seqLen = 0;      ///< tokens per sample; 0: the model's own context length; ignored by image models
    std::int64_t gradAccum = 1;   ///< micro-steps per optimizer step
    Precision precision;
    Optimizer optimizer;
    Recompute recompute = Recompute::None;
    std::vector<RecomputeModule> recomputeModules{RecomputeModule::CoreAttention};  ///< of selective recompute
    bool recomputeEarlyStop = false;  ///< recompute of blocks ends with the last tensor that backward needs (PyTorch's checkpoints without re-entry since 2.1)
    AttentionKernel attention = AttentionKernel::Flash;
    bool compiled = false;         ///< torch.compile: residual adds, sums of gradients and norms beside each other are one kernel
    bool fp8Attention = false;     ///< with eight-bit products: fused attention multiplies in eight bits too
    Framework framework = Framework::PyTorch;
    LossKernel loss = LossKernel::Eager;  ///< of language models
    std::int64_t lossMetrics = 0;  ///< metrics that take the cross-entropy of the logits once more, in every micro-step
    GatedKernel gatedActivation = GatedKernel::Eager;
    bool repeatKeysAndValues = false;  ///< grouped queries: fused attention gets keys and values copied once per query head
    NormKernel rmsNorm = NormKernel::Fused;  ///< of models that have RMS norms
    MemoryFormat memoryFormat = MemoryFormat::Contiguous;  ///< of images; models without convolutions ignore it
    bool dropout = false;          ///< apply the model's dropout layers (their masks are saved)
    bool gradientClipping = false; ///< clip by global norm before the optimizer step
    bool zeroGradSetToNone = true; ///< false: gradients are set to zero and kept, as before PyTorch 2.0
    bool optimizerInBackward = false; ///< each parameter is updated as soon as its gradient is there, which then goes
    bool offloadActivations = false;  ///< what full recompute keeps of each block waits in host memory for its backward
    bool readLossEachStep = true;  ///< the training loop reads the loss (`loss.item()`), so the host waits for the device once a step

    std::vector<std::int64_t> rankBatches;  ///< unequal shards: micro-batch of each data-parallel rank; empty: all alike
    double inputMsPerSample = 0;   ///< time of one loader process for a sample; 0: the input is always there
    std::int64_t inputWorkers = 4; ///< loader processes per rank

    /// Blocks are checkpoints, which run again in backward as a whole but for what they keep.
    bool checkpointsBlocks() const { return recompute == Recompute::Full || recompute == Recompute::Operators; }
    /// Selective recompute runs `module` again.
    bool recomputes(RecomputeModule module) const;
    bool operator==(const TrainingConfig&) const = default;
};

}  // namespace ringside
