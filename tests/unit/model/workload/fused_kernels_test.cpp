// Fused losses and gated activations: what they keep for backward, against what eager PyTorch keeps. docs/models/memory.md.
#include <gtest/gtest.h>

#include "model/catalog/model_catalog.h"
#include "model/workload/model_spec.h"

namespace ringside {
namespace {

constexpr std::int64_t kTokens = 4096, kHidden = 4096, kFfn = 14336, kVocab = 128256;

Workload llama(LossKernel loss, GatedKernel gated = GatedKernel::Eager) {
    TrainingConfig training;
    training.microBatch = 1;
    training.seqLen = kTokens;
    training.precision = precisionByName("bf16").value();
    training.loss = loss;
    training.gatedActivation = gated;
    return buildWorkload(ModelCatalog::builtin().value().find("llama-3-8b").value(), training).value();
}

const Op& lossOf(const Workload& workload) { return workload.types.back().ops.back(); }

Bytes keptByLoss(const Workload& workload) {
    Bytes bytes = 0;
    for (const int v : lossOf(workload).saves) bytes += workload.types.back().values[static_cast<std::size_t>(v)].bytes();
    return bytes;
}

TEST(FusedLoss, EagerKeepsFp32LogProbabilitiesAndHoldsTwoGradientsOfThatSizeForAMoment) {
    const Workload workload = llama(LossKernel::Eager);
    EXPECT_EQ(keptByLoss(workload), kTokens * kVocab * 4);
    // 12 bytes per logit at the worst: log-probabilities, their gradient and that of the fp32 logits; the bf16 one follows.
    EXPECT_EQ(lossOf(workload).backwardWorkspace, kTokens * kVocab * (8 - 2));
}

TEST(FusedLoss, OneKernelKeepsTheLogitsAsTheyAre) {
    EXPECT_EQ(keptByLoss(llama(LossKernel::Fused)), kTokens * kVocab * 2);
    EXPECT_FALSE(lossOf(llama(LossKernel::Fused)).gradientOverSaved);
    EXPECT_EQ(keptByLoss(llama(LossKernel::FusedInPlace)), kTokens * kVocab * 2);
    EXPECT_TRUE(lossOf(llama(LossKernel::FusedInPlace)).gradientOverSaved);
}

TEST(FusedLoss, WithTheHeadLogitsOfAChunkAreAllThatEverExists) {
    const Workload workload = llama(LossKernel::FusedLinear);
    EXPECT_EQ(lossOf(workload).kind, OpKind::CrossEntropy);
    for (const Value& value : workload.types.back().values) EXPECT_FALSE(value.shape.back() == kVocab && elementCount(value.shape) >= kTokens * kVocab) << value.name;
    // Gradients of the input and of the weight are computed in forward and kept.
    EXPECT_EQ(keptByLoss(workload), kTokens * kHidden * 2 + kVocab * kHidden * 2);
    // 4,096 tokens / ⌈128,256 / 4,096⌉ = 128 tokens to a chunk.
    EXPECT_EQ(lossOf(workload).forwardWorkspace, 128 * kVocab * 2 + kVocab * kHidden * 2);
    EXPECT_DOUBLE_EQ(forwardFlops(workload) + backwardFlops(workload), forwardFlops(llama(LossKernel::Eager)) + backwardFlops(llama(LossKernel::Eager)));
}

// q, k, v of 4,096 channels with 8 of 32 heads for keys: in bf16 q is 8 KiB per token, k and v together a half of it. Forward gathers all three (read and
// written) and puts the result back (zeros, read, written); backward gathers the gradient and scatters three into zeros.
TEST(FirstFlashAttention, GathersTokensAndPutsThemBack) {
    const auto attention = [](AttentionKernel kernel) {
        TrainingConfig training;
        training.seqLen = kTokens;
        training.precision = precisionByName("bf16").value();
        training.attention = kernel;
        const Workload workload = buildWorkload(ModelCatalog::builtin().value().find("llama-3-8b").value(), training).value();
        double forward = 0, backward = 0;
        for (const Op& op : workload.types[1].ops)
            if (op.kind == OpKind::Attention) {
                for (const KernelWork& work : op.forward) forward += work.bytes;
                for (const KernelWork& work : op.backward) backward += work.bytes;
            }
        return std::pair{forward, backward};
    };
    const auto first = attention(AttentionKernel::Flash1), second = attention(AttentionKernel::Flash);
    const double q = kTokens * kHidden * 2.0, kv = q / 2;
    EXPECT_DOUBLE_EQ(first.first - second.first, 2 * (q + kv) + 3 * q);
    EXPECT_DOUBLE_EQ(first.second - second.second, 2 * q + 3 * (q + kv));
}

TEST(FusedActivation, LeavesOutActOfTheGate) {
    const auto block = [](GatedKernel kernel) { return savedBytes(llama(LossKernel::Eager, kernel).types[1]); };
    EXPECT_EQ(block(GatedKernel::Eager) - block(GatedKernel::Fused), kTokens * kFfn * 2);
    EXPECT_EQ(block(GatedKernel::FusedInPlace), block(GatedKernel::Fused));
}

TEST(EagerNorm, KeepsAnFp32CopyAndWhatItsWeightMultiplies) {
    TrainingConfig training;
    training.microBatch = 1;
    training.seqLen = kTokens;
    training.precision = precisionByName("bf16").value();
    const auto block = [&](NormKernel kernel, const char* precision) {
        training.rmsNorm = kernel;
        training.precision = precisionByName(precision).value();
        return savedBytes(buildWorkload(ModelCatalog::builtin().value().find("llama-3-8b").value(), training).value().types[1]);
    };
    // One kernel keeps its input, 2 bytes, in bf16. Several keep a copy of it in 4 bytes and the normed values in 2; the input itself is kept by
    // nobody else: + 4 bytes per feature and norm, and a block has two.
    EXPECT_EQ(block(NormKernel::Eager, "bf16") - block(NormKernel::Fused, "bf16"), 2 * kTokens * kHidden * 4);
    // In fp32 there is no copy: only the normed values come to it.
    EXPECT_EQ(block(NormKernel::Eager, "fp32") - block(NormKernel::Fused, "fp32"), 2 * kTokens * kHidden * 4);
}

TEST(RepeatedHeads, AreKeptInsteadOfTheFewerOnes) {
    TrainingConfig training;
    training.microBatch = 1;
    training.seqLen = kTokens;
    training.precision = precisionByName("bf16").value();
    const auto block = [&](bool repeats) {
        training.repeatKeysAndValues = repeats;
        return savedBytes(buildWorkload(ModelCatalog::builtin().value().find("llama-3-8b").value(), training).value().types[1]);
    };
    // Eight heads of 128 become 32, for keys and for values: 2 · (4,096 − 1,024) · 2 bytes per token.
    EXPECT_EQ(block(true) - block(false), kTokens * 2 * (4096 - 1024) * 2);
}

}  // namespace
}  // namespace ringside
