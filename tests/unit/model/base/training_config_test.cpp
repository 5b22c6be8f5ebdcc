#include "model/training/training_config.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ringside {
namespace {

TEST(Precision, EveryListedNameIsFoundUnderItself) {
    for (const std::string& name : precisionNames()) {
        const auto precision = precisionByName(name);
        ASSERT_TRUE(precision) << name;
        EXPECT_EQ(precision->name, name);
    }
}

TEST(Precision, DefaultOfTheStructIsTheNamedBf16Autocast) { EXPECT_EQ(Precision{}, precisionByName("bf16-autocast").value()); }

TEST(Precision, AutocastKeepsParametersAndGradientsInFp32) {
    const Precision p = precisionByName("bf16-autocast").value();
    EXPECT_EQ(p.parameter, DType::Fp32);
    EXPECT_EQ(p.gradient, DType::Fp32);
    EXPECT_EQ(p.math, DType::Bf16);
    EXPECT_TRUE(p.autocast);
    EXPECT_FALSE(p.lossScaling);
}

TEST(Precision, OnlyFp16NeedsLossScaling) {
    for (const std::string& name : precisionNames()) EXPECT_EQ(precisionByName(name)->lossScaling, name.starts_with("fp16") && name != "fp16-pure") << name;
}

TEST(Precision, MasterWeightsComeWithParametersOfTwoBytesAndFp32Gradients) {
    for (const char* name : {"bf16-master", "fp16-master", "fp8"}) {
        const Precision p = precisionByName(name).value();
        EXPECT_TRUE(p.masterWeights) << name;
        EXPECT_EQ(sizeOf(p.parameter), 2) << name;
        EXPECT_EQ(p.gradient, DType::Fp32) << name;
    }
}

TEST(Precision, OtherSpellingsMeanTheSame) {
    const std::pair<const char*, const char*> pairs[] = {
        {"fp16", "fp16-autocast"},     {"amp_bf16", "bf16-autocast"},     {"BF16-AMP", "bf16-autocast"},  {"bf16-mixed", "bf16-autocast"},
        {"pure-bf16", "bf16"},         {"bf16_pure", "bf16"},             {"bf16-fp32-master", "bf16-master"}, {"bf16-mixed-master", "bf16-master"},
        {"float32", "fp32"},           {"TF32", "tf32"},
    };
    for (const auto& [spelling, name] : pairs) {
        const auto precision = precisionByName(spelling);
        ASSERT_TRUE(precision) << spelling;
        EXPECT_EQ(precision->name, name) << spelling;
    }
}

TEST(Precision, UnknownNameIsAnErrorThatNamesTheNearest) {
    const auto precision = precisionByName("bf16-autocst");
    ASSERT_FALSE(precision);
    EXPECT_EQ(precision.error().code, ErrorCode::BadInput);
    EXPECT_NE(precision.error().message.find("did you mean 'bf16-autocast'"), std::string::npos) << precision.error().message;
}

TEST(OptimizerName, RoundTripsForEveryListedName) {
    for (const std::string& name : optimizerNames()) {
        const auto optimizer = optimizerByName(name);
        ASSERT_TRUE(optimizer) << name;
        EXPECT_EQ(nameOf(*optimizer), name);
    }
}

TEST(OptimizerName, ForeachIsTheDefaultAndStaysUnsaid) {
    const Optimizer plain = optimizerByName("adamw").value();
    EXPECT_EQ(plain.implementation, OptimizerImplementation::Foreach);
    EXPECT_EQ(plain, optimizerByName("adamw-foreach").value());
    EXPECT_EQ(nameOf(plain), "adamw");
}

TEST(OptimizerName, SuffixChoosesTheImplementation) {
    EXPECT_EQ(optimizerByName("AdamW_fused")->implementation, OptimizerImplementation::Fused);
    EXPECT_EQ(optimizerByName("sgd-for-loop")->implementation, OptimizerImplementation::ForLoop);
    EXPECT_EQ(optimizerByName("adam-8bit-fused")->kind, OptimizerKind::Adam8bit);
}

TEST(OptimizerName, UnknownNameIsAnErrorThatNamesTheNearest) {
    const auto optimizer = optimizerByName("adamv-fused");
    ASSERT_FALSE(optimizer);
    EXPECT_NE(optimizer.error().message.find("'adam"), std::string::npos) << optimizer.error().message;
    EXPECT_FALSE(optimizerByName(""));
    EXPECT_FALSE(optimizerByName("-fused"));
}

TEST(Recompute, NamesRoundTrip) {
    for (const Recompute r : {Recompute::None, Recompute::Selective, Recompute::Full}) EXPECT_EQ(recomputeByName(nameOf(r)).value(), r);
    EXPECT_FALSE(recomputeByName("sometimes"));
}

TEST(AttentionKernel, NamesRoundTrip) {
    for (const AttentionKernel k : {AttentionKernel::Flash, AttentionKernel::Flash1, AttentionKernel::Flash3, AttentionKernel::Flash4, AttentionKernel::FusedSoftmax, AttentionKernel::Math})
        EXPECT_EQ(attentionKernelByName(nameOf(k)).value(), k);
    EXPECT_FALSE(attentionKernelByName("paged"));
}

TEST(Framework, NamesRoundTrip) {
    for (const Framework f : {Framework::PyTorch, Framework::HuggingFace, Framework::TransformerEngine, Framework::Profiled}) EXPECT_EQ(frameworkByName(nameOf(f)).value(), f);
    EXPECT_FALSE(frameworkByName("caffe"));
}

}  // namespace
}  // namespace ringside
