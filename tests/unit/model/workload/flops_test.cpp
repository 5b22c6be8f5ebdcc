// FLOPs against counts by hand.
#include <gtest/gtest.h>

#include "model/catalog/model_catalog.h"

namespace ringside {
namespace {

ModelSpec modelNamed(const char* name) { return ModelCatalog::builtin().value().find(name).value(); }

Workload build(const char* name, const TrainingConfig& training) { return buildWorkload(modelNamed(name), training).value(); }

TrainingConfig pureBf16(std::int64_t microBatch, std::int64_t seqLen) {
    TrainingConfig training;
    training.microBatch = microBatch;
    training.seqLen = seqLen;
    training.precision = precisionByName("bf16").value();
    return training;
}

double flopsOf(const Workload& workload, KernelClass cls, bool backward) {
    double flops = 0;
    for (std::size_t l = 0; l < workload.layers.size(); ++l)
        for (const Op& op : workload.typeOf(l).ops)
            for (const KernelWork& kernel : backward ? op.backward : op.forward)
                if (kernel.cls == cls) flops += kernel.flops;
    return flops;
}

TEST(ForwardFlops, OfGpt2SmallAreTwoPerMatmulWeightAndTokenPlusAttention) {
    const Workload workload = build("gpt2", pureBf16(4, 1024));
    // Weights of matmuls: 12 blocks of 12·768² = 84,934,656, and the tied head 50257·768 = 38,597,376.
    const double weights = 84'934'656.0 + 38'597'376.0, tokens = 4 * 1024;
    // Attention: 4·s·h per token and block, full score matrix: 4·1024·768·12 = 37,748,736.
    EXPECT_DOUBLE_EQ(forwardFlops(workload), tokens * (2 * weights + 37'748'736.0));
}

TEST(ForwardFlops, AreTheSameWithFusedAndPlainAttention) {
    TrainingConfig training = pureBf16(2, 512);
    const double flash = forwardFlops(build("llama-3.2-1b", training));
    training.attention = AttentionKernel::Math;
    EXPECT_DOUBLE_EQ(forwardFlops(build("llama-3.2-1b", training)), flash);
}

TEST(BackwardFlops, OfMatmulsAreTwiceForwardAndOfFusedAttentionTwoAndAHalfTimes) {
    const Workload workload = build("gpt2", pureBf16(4, 1024));
    EXPECT_DOUBLE_EQ(flopsOf(workload, KernelClass::Gemm, true), 2 * flopsOf(workload, KernelClass::Gemm, false));
    // Five products (scores again, dV, dP, dQ, dK) against two.
    EXPECT_DOUBLE_EQ(flopsOf(workload, KernelClass::AttentionBackward, true), 2.5 * flopsOf(workload, KernelClass::AttentionForward, false));
}

TEST(BackwardFlops, OfPlainAttentionAreTwiceForward) {
    TrainingConfig training = pureBf16(1, 256);
    training.attention = AttentionKernel::Math;
    const Workload workload = build("gpt2", training);
    EXPECT_DOUBLE_EQ(backwardFlops(workload), 2 * forwardFlops(workload));
}

TEST(ForwardFlops, OfResNet50AreEightPointTwoBillionPerImage) {
    // torchvision's models table prints 4.09 GFLOPS, which are multiply-adds: 8.18 billion operations.
    const double flops = forwardFlops(build("resnet-50", pureBf16(1, 0)));
    EXPECT_NEAR(flops, 8.18e9, 0.01e9);
    EXPECT_DOUBLE_EQ(forwardFlops(build("resnet-50", pureBf16(32, 0))), 32 * flops);
}

TEST(BackwardFlops, OfTheFirstConvolutionHaveNoInputGradient) {
    const Workload workload = build("resnet-50", pureBf16(1, 0));
    // conv1: 112² positions, 64 channels, patches of 3·7·7: 2·12544·64·147 = 236,027,904 FLOPs; only its weight gradient is needed.
    EXPECT_DOUBLE_EQ(backwardFlops(workload), 2 * forwardFlops(workload) - 236'027'904.0);
}

TEST(ForwardFlops, OfTheMlpAreTwoPerWeightAndSample) {
    // 1024·4096 + 4096·4096 + 4096·1024 = 25,165,824 weights.
    EXPECT_DOUBLE_EQ(forwardFlops(build("mlp", pureBf16(8, 0))), 8 * 2 * 25'165'824.0);
    // The first of the three needs no input gradient: 2·2·N − 2·1024·4096 per sample.
    EXPECT_DOUBLE_EQ(backwardFlops(build("mlp", pureBf16(8, 0))), 8 * (4 * 25'165'824.0 - 2 * 4'194'304.0));
}

TEST(ForwardFlops, OfMixtralCountTheTwoExpertsThatATokenUses) {
    const Workload workload = build("mixtral-8x7b", pureBf16(1, 1024));
    // Per block: q and o 2·4096², k and v 2·4096·1024, router 8·4096, two experts of 3·4096·14336; head 32000·4096.
    const double block = 2.0 * 4096 * 4096 + 2.0 * 4096 * 1024 + 8.0 * 4096 + 2.0 * 3 * 4096 * 14336;
    const double weights = 32 * block + 32000.0 * 4096;
    const double attention = 32 * 4.0 * 1024 * 4096;
    EXPECT_DOUBLE_EQ(forwardFlops(workload), 1024 * (2 * weights + attention));
}

TEST(ModelFlops, OfATransformerFollowThePalmConvention) {
    const ModelSpec model = modelNamed("llama-3.1-8b");
    const Workload workload = buildWorkload(model, pureBf16(2, 8192)).value();
    // Per token 6·8,030,261,248 + 12·32·4096·8192 = 48,181,567,488 + 12,884,901,888.
    EXPECT_DOUBLE_EQ(modelFlopsPerSample(model, workload), 8192 * (48'181'567'488.0 + 12'884'901'888.0));
}

TEST(ModelFlops, OfAnImageModelAreThreeTimesForward) {
    const ModelSpec model = modelNamed("vit-b-16");
    const Workload workload = buildWorkload(model, pureBf16(4, 0)).value();
    EXPECT_DOUBLE_EQ(modelFlopsPerSample(model, workload), 3 * forwardFlops(workload) / 4);
    EXPECT_EQ(workload.tokensPerSample, 0);
}

TEST(GemmShapes, OfALinearLayerAreTokensByOutByInAndTurnInBackward) {
    const Workload workload = build("gpt2", pureBf16(2, 512));
    const LayerType& block = workload.typeOf(1);
    for (const Op& op : block.ops) {
        if (op.name != "mlp.c_fc") continue;
        ASSERT_EQ(op.forward.size(), 1u);
        EXPECT_EQ(op.forward[0].shape, (GemmShape{1, 1024, 3072, 768}));
        // bf16: (1024·768 + 768·3072 + 1024·3072)·2 bytes.
        EXPECT_DOUBLE_EQ(op.forward[0].bytes, 2.0 * (1024.0 * 768 + 768.0 * 3072 + 1024.0 * 3072));
        ASSERT_EQ(op.backward.size(), 3u);
        EXPECT_EQ(op.backward[0].shape, (GemmShape{1, 1024, 768, 3072}));
        EXPECT_EQ(op.backward[1].shape, (GemmShape{1, 3072, 768, 1024, true}));
        EXPECT_EQ(op.backward[2].cls, KernelClass::Memory);
        return;
    }
    FAIL() << "no mlp.c_fc in the block";
}

}  // namespace
}  // namespace ringside
