// Registration order, names, ties, saved values and the consistency of every workload.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>

#include "model/catalog/model_catalog.h"

namespace ringside {
namespace {

using testing::ElementsAre;

const ModelCatalog& catalog() {
    static const ModelCatalog loaded = ModelCatalog::builtin().value();
    return loaded;
}

Workload build(const std::string& name, const TrainingConfig& training) {
    return buildWorkload(catalog().find(name).value(), training).value();
}

TrainingConfig withPrecision(const char* precision, std::int64_t microBatch = 2, std::int64_t seqLen = 256) {
    TrainingConfig training;
    training.microBatch = microBatch;
    training.seqLen = seqLen;
    training.precision = precisionByName(precision).value();
    return training;
}

std::vector<std::string> parameterNames(const LayerType& type) {
    std::vector<std::string> names;
    for (const Parameter& parameter : type.parameters) names.push_back(parameter.name);
    return names;
}

std::vector<std::string> opNames(const LayerType& type) {
    std::vector<std::string> names;
    for (const Op& op : type.ops) names.push_back(op.name);
    return names;
}

const Op& opNamed(const LayerType& type, const std::string& name) {
    return *std::find_if(type.ops.begin(), type.ops.end(), [&](const Op& op) { return op.name == name; });
}

TEST(Registration, OfAGpt2BlockFollowsItsModule) {
    const Workload workload = build("gpt2", withPrecision("bf16"));
    EXPECT_THAT(parameterNames(workload.typeOf(1)),
                ElementsAre("ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
                            "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"));
    EXPECT_EQ(parameterName(workload, 4, 2), "h.3.attn.c_attn.weight");
    EXPECT_EQ(parameterName(workload, 0, 1), "wpe.weight");
    // Conv1D keeps its weight as [in, out].
    EXPECT_EQ(workload.typeOf(1).parameters[8].shape, (Shape{768, 3072}));
}

TEST(Registration, OfALlamaBlockPutsTheNormsLastWhileExecutionPutsThemFirst) {
    const Workload workload = build("llama-3-8b", withPrecision("bf16"));
    EXPECT_THAT(parameterNames(workload.typeOf(1)),
                ElementsAre("self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight",
                            "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight", "input_layernorm.weight",
                            "post_attention_layernorm.weight"));
    EXPECT_THAT(opNames(workload.typeOf(1)), ElementsAre("input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                                         "rotary", "attention", "self_attn.o_proj", "add_1", "post_attention_layernorm",
                                                         "mlp.gate_proj", "mlp.up_proj", "mlp.act", "mlp.down_proj", "add_2"));
    EXPECT_EQ(workload.typeOf(1).parameters[1].shape, (Shape{1024, 4096}));  // 8 key heads of 128
}

TEST(Registration, OfABertLayerPutsEachNormAfterItsHalf) {
    const Workload workload = build("bert-base", withPrecision("bf16"));
    const std::vector<std::string> names = parameterNames(workload.typeOf(1));
    ASSERT_EQ(names.size(), 16u);
    EXPECT_EQ(names[0], "attention.self.query.weight");
    EXPECT_EQ(names[8], "attention.output.LayerNorm.weight");
    EXPECT_EQ(names[15], "output.LayerNorm.bias");
}

TEST(Registration, OfAResNetBlockPutsTheDownsamplingLast) {
    const Workload workload = build("resnet-50", withPrecision("bf16"));
    const std::vector<std::string> names = parameterNames(workload.typeOf(1));
    ASSERT_EQ(names.size(), 12u);
    EXPECT_EQ(names.front(), "conv1.weight");
    EXPECT_EQ(names[9], "downsample.0.weight");
    EXPECT_EQ(parameterName(workload, 1, 0), "layer1.0.conv1.weight");
    EXPECT_EQ(workload.layers.size(), 1u + 3 + 4 + 6 + 3 + 1);
    EXPECT_EQ(parameterName(build("vgg-16", withPrecision("bf16")), 1, 0), "features.5.weight");
}

TEST(Ties, TheHeadListsTheEmbeddingTableAsItsOwnUse) {
    const Workload workload = build("gpt2", withPrecision("bf16"));
    ASSERT_EQ(workload.ties.size(), 1u);
    const TiedParameter tie = workload.ties.front();
    EXPECT_EQ(tie.layer, 13);
    EXPECT_EQ(tie.ownerLayer, 0);
    EXPECT_EQ(parameterName(workload, 13, tie.parameter), "lm_head.weight");
    EXPECT_EQ(parameterName(workload, 0, tie.ownerParameter), "wte.weight");
    EXPECT_TRUE(workload.isTied(13, tie.parameter));
    EXPECT_FALSE(workload.isTied(0, tie.ownerParameter));
    EXPECT_EQ(opNamed(workload.typeOf(13), "lm_head").parameters.front(), tie.parameter);
    // Adding the two dense gradients is not the op's work but that of who keeps gradients.
    EXPECT_EQ(opNamed(workload.typeOf(0), "wte").backward.back().name, "embedding gradient");
    EXPECT_TRUE(build("llama-3-8b", withPrecision("bf16")).ties.empty());
}

TEST(SavedBytes, OfAGptBlockInBf16WithFusedAttentionAre32TimesTheHiddenSizePerToken) {
    const Workload workload = build("gpt2", withPrecision("bf16", 2, 512));
    // Per token, in units of h bytes: ln_1 input 2, c_attn input 2, q k v 6, context 2, ln_2 input 2, c_fc input 2, gelu input 8,
    // c_proj input 8: 32. (Korthikanti et al.: 34, of which 2 are the two dropout masks; their 5·a·s/h is what fused attention saves.)
    // Beside it mean and rstd of two norms, 16 bytes per token, and one log-sum-exp of 4 bytes per token and head.
    const std::int64_t tokens = 2 * 512;
    EXPECT_EQ(savedBytes(workload.typeOf(1)), tokens * (32 * 768 + 16 + 4 * 12));
}

TEST(SavedBytes, WithDropoutReachThirtyFourTimesTheHiddenSize) {
    TrainingConfig training = withPrecision("bf16", 2, 512);
    training.dropout = true;
    EXPECT_EQ(savedBytes(build("gpt2", training).typeOf(1)), 1024 * (34 * 768 + 16 + 4 * 12));
}

TEST(SavedBytes, OfPlainAttentionWithDropoutAddFiveBytesPerScore) {
    TrainingConfig training = withPrecision("bf16", 2, 512);
    training.dropout = true;
    training.attention = AttentionKernel::Math;
    // Softmax output 2, dropout mask 1, dropout output 2 bytes for each of b·a·s² scores (Korthikanti's 5·a·s/h). The context is
    // saved once (by c_proj), there is no log-sum-exp.
    EXPECT_EQ(savedBytes(build("gpt2", training).typeOf(1)), 1024 * (34 * 768 + 16) + 5 * 2 * 12 * 512 * 512);
}

TEST(Attention, WithAFusedSoftmaxSavesTheSameAndLaunchesThreeKernelsFewer) {
    TrainingConfig training = withPrecision("bf16", 2, 512);
    const auto kernels = [](const LayerType& type) {
        std::size_t count = 0;
        for (const Op& op : type.ops) count += op.forward.size() + op.backward.size();
        return count;
    };
    training.attention = AttentionKernel::Math;
    const Workload plain = build("gpt2", training);
    training.attention = AttentionKernel::FusedSoftmax;
    const Workload fused = build("gpt2", training);
    EXPECT_EQ(savedBytes(fused.typeOf(1)), savedBytes(plain.typeOf(1)));
    EXPECT_EQ(kernels(plain.typeOf(1)) - kernels(fused.typeOf(1)), 3u);  // scale, mask; the gradient of scaling
}

TEST(SavedBytes, OfALlamaBlockCountTheGatedProductsFactors) {
    const Workload workload = build("llama-3-8b", withPrecision("bf16", 1, 1024));
    // Per token and in bytes, h = 4096, keys 1024, f = 14336: norm inputs 2·2h, inputs of qkv and of gate/up 2·2h, rotated q 2h,
    // rotated k and v 2·2·1024, context 2h, gate, silu(gate), up and their product 4·2f, rstd 2·4, log-sum-exp 32·4.
    EXPECT_EQ(savedBytes(workload.typeOf(1)), 1024 * (12 * 4096 + 4 * 1024 + 8 * 14336 + 8 + 128));
}

TEST(Autocast, ALinearLayerSavesTheCastOfItsInputAndOfItsWeight) {
    const Workload workload = build("gpt2", withPrecision("bf16-autocast", 1, 128));
    const LayerType& block = workload.typeOf(1);
    const Op& op = opNamed(block, "attn.c_attn");
    ASSERT_EQ(op.saves.size(), 2u);
    EXPECT_EQ(block.values[static_cast<std::size_t>(op.inputs[0])].dtype, DType::Fp32);
    EXPECT_EQ(block.values[static_cast<std::size_t>(op.saves[0])].dtype, DType::Bf16);
    EXPECT_EQ(block.values[static_cast<std::size_t>(op.saves[0])].bytes(), 128 * 768 * 2);
    EXPECT_EQ(block.values[static_cast<std::size_t>(op.saves[1])].bytes(), 768 * 2304 * 2);
    // cast x (4 + 2 bytes), cast weight, cast bias, product
    ASSERT_EQ(op.forward.size(), 4u);
    EXPECT_DOUBLE_EQ(op.forward[0].bytes, 6.0 * 128 * 768);
    EXPECT_DOUBLE_EQ(op.forward[1].bytes, 6.0 * 768 * 2304);
    EXPECT_EQ(block.values[static_cast<std::size_t>(op.outputs[0])].dtype, DType::Bf16);
    // The residual stream stays in fp32.
    EXPECT_EQ(block.values[static_cast<std::size_t>(block.output)].dtype, DType::Fp32);
}

TEST(Residual, TheBlockInputsTwoGradientsAreAddedInTheBackwardOfTheFirstNorm) {
    const Workload workload = build("gpt2", withPrecision("bf16", 1, 128));
    const Op& op = opNamed(workload.typeOf(1), "ln_1");
    EXPECT_EQ(op.backward.back().name, "gradient add");
    EXPECT_DOUBLE_EQ(op.backward.back().bytes, 3.0 * 128 * 768 * 2);
    EXPECT_TRUE(opNamed(workload.typeOf(1), "add_1").backward.empty());
}

TEST(CrossEntropy, SavesLogProbabilitiesInFp32) {
    const Workload workload = build("gpt2", withPrecision("bf16", 1, 128));
    const LayerType& head = workload.types.back();
    const Op& op = opNamed(head, "loss");
    ASSERT_EQ(op.saves.size(), 1u);
    EXPECT_EQ(head.values[static_cast<std::size_t>(op.saves[0])].bytes(), std::int64_t{128} * 50257 * 4);
}

TEST(Input, OfAMicroBatchIsTokensAndLabelsOrAnImageAndALabel) {
    EXPECT_EQ(build("gpt2", withPrecision("bf16", 4, 1024)).inputBytes, 4 * 1024 * 16);
    EXPECT_EQ(build("resnet-50", withPrecision("bf16", 4)).inputBytes, 4 * (3 * 224 * 224 * 4 + 8));
}

// Every workload of the catalogue hangs together, whatever the precision, attention and dropout.
TEST(EveryWorkload, IsConsistent) {
    const std::vector<std::string> precisions = precisionNames(), names = catalog().names();
    EXPECT_TRUE(rc::check("indices in range, types chain, saved values are the op's own", [&] {
        const ModelSpec model = catalog().find(*rc::gen::elementOf(names)).value();
        const std::string precision = *rc::gen::elementOf(precisions);
        const std::int64_t batch = *rc::gen::inRange(1, 5), length = *rc::gen::inRange(1, 512);
        TrainingConfig training = withPrecision(precision.c_str(), batch, length);
        training.dropout = *rc::gen::arbitrary<bool>();
        training.attention = *rc::gen::element(AttentionKernel::Flash, AttentionKernel::Math);
        const Workload workload = buildWorkload(model, training).value();
        for (std::size_t l = 0; l < workload.layers.size(); ++l) {
            const LayerType& type = workload.typeOf(l);
            if (l > 0) {
                const LayerType& before = workload.typeOf(l - 1);
                const Value& handed = before.values[static_cast<std::size_t>(before.output)];
                RC_ASSERT(handed.shape == type.values[0].shape);
                RC_ASSERT(handed.dtype == type.values[0].dtype);
            }
            std::vector<bool> written(type.values.size(), false), used(type.parameters.size(), false);
            written[0] = true;
            for (const Op& op : type.ops) {
                for (const int v : op.inputs) RC_ASSERT(written.at(static_cast<std::size_t>(v)));
                for (const int v : op.outputs) written.at(static_cast<std::size_t>(v)) = true;
                for (const int v : op.saves)
                    RC_ASSERT(std::count(op.inputs.begin(), op.inputs.end(), v) + std::count(op.outputs.begin(), op.outputs.end(), v) > 0);
                for (const int p : op.parameters) used.at(static_cast<std::size_t>(p)) = true;
                for (const KernelWork& kernel : op.forward) RC_ASSERT(kernel.bytes > 0 && !kernel.name.empty());
                for (const KernelWork& kernel : op.backward) RC_ASSERT(kernel.bytes > 0 && !kernel.name.empty());
            }
            RC_ASSERT(std::find(written.begin(), written.end(), false) == written.end());
            RC_ASSERT(std::find(used.begin(), used.end(), false) == used.end());
        }
    }));
}

TEST(Law, ForwardFlopsAreProportionalToTheMicroBatch) {
    EXPECT_TRUE(rc::check([] {
        const std::int64_t batch = *rc::gen::inRange(1, 64), length = *rc::gen::inRange(1, 1025);
        const double one = forwardFlops(build("gpt2", withPrecision("bf16", 1, length)));
        const double many = forwardFlops(build("gpt2", withPrecision("bf16", batch, length)));
        RC_ASSERT(std::abs(many - one * static_cast<double>(batch)) <= 1e-9 * many);
    }));
}

TEST(Build, RefusesASequenceLongerThanTheLearnedPositions) {
    const auto result = buildWorkload(catalog().find("gpt2").value(), withPrecision("bf16", 1, 2048));
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().toString(), testing::HasSubstr("position table of 1024 rows"));
    EXPECT_TRUE(buildWorkload(catalog().find("llama-2-7b").value(), withPrecision("bf16", 1, 32768)));
}

TEST(Build, RefusesAbsurdSizesInsteadOfOverflowing) {
    EXPECT_FALSE(buildWorkload(catalog().find("gpt2").value(), withPrecision("bf16", 0)));
    EXPECT_FALSE(buildWorkload(catalog().find("gpt2").value(), withPrecision("bf16", std::int64_t{1} << 40)));
    EXPECT_FALSE(buildWorkload(catalog().find("llama-3-8b").value(), withPrecision("bf16", 1 << 20, 1 << 28)));
    EXPECT_FALSE(buildWorkload(catalog().find("llama-3-8b").value(), withPrecision("bf16", 1, -5)));
    ModelSpec odd = catalog().find("llama-3-8b").value();
    std::get<TransformerSpec>(odd.architecture).kvHeads = 5;
    const auto result = buildWorkload(odd, withPrecision("bf16"));
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().toString(), testing::HasSubstr("5 key/value heads do not divide 32 attention heads"));
}

}  // namespace
}  // namespace ringside
