#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/strategy/layer_plan.h"

namespace ringside {
namespace {

/// x → a (matmul, saves x) → b (view) → c (relu, saves its output) → output; mask is a by-product of a that nobody reads.
LayerType smallLayer() {
    LayerType type;
    type.values = {{"x", {4}, DType::Bf16}, {"a", {4}, DType::Bf16}, {"mask", {4}, DType::Bool}, {"b", {2, 2}, DType::Bf16}, {"c", {4}, DType::Bf16}};
    KernelWork kernel;
    Op a, b, c;
    a.inputs = {0};
    a.outputs = {1, 2};
    a.saves = {0, 0};
    a.forward = {kernel};
    b.inputs = {1};
    b.outputs = {3};
    c.inputs = {3};
    c.outputs = {4};
    c.saves = {4};
    c.forward = {kernel};
    type.ops = {a, b, c};
    type.output = 4;
    type.segments = {{RecomputeModule::CoreAttention, 2, 2, 2}};
    return type;
}

LayerPlan planOf(const LayerType& type, Recompute recompute, std::vector<RecomputeModule> modules = {RecomputeModule::CoreAttention}) {
    TrainingConfig training;
    training.recompute = recompute;
    training.recomputeModules = std::move(modules);
    return planLayer(type, training);
}

TEST(LayerPlan, AValueGoesAfterItsLastReader) {
    const LayerPlan plan = planOf(smallLayer(), Recompute::None);
    // Op 0 reads x and makes the mask that nobody reads; op 1 reads a; op 2 reads b. The output goes to the next layer.
    EXPECT_EQ(plan.ops[0].releasedAfterForward, (std::vector<int>{0, 2}));
    EXPECT_EQ(plan.ops[1].releasedAfterForward, std::vector<int>{1});
    EXPECT_EQ(plan.ops[2].releasedAfterForward, std::vector<int>{3});
}

TEST(LayerPlan, AnOpWithoutKernelsIsAView) {
    const LayerPlan plan = planOf(smallLayer(), Recompute::None);
    EXPECT_FALSE(plan.ops[0].isView);
    EXPECT_TRUE(plan.ops[1].isView);
}

TEST(LayerPlan, SavedValuesAreListedOnce) {
    EXPECT_EQ(planOf(smallLayer(), Recompute::None).ops[0].saved, std::vector<int>{0});
}

TEST(LayerPlan, OnlyFloatingPointValuesHaveGradients) {
    const LayerPlan plan = planOf(smallLayer(), Recompute::None);
    EXPECT_TRUE(plan.differentiable[1]);
    EXPECT_FALSE(plan.differentiable[2]);
}

TEST(LayerPlan, KnowsWhichOpWroteAValue) { EXPECT_EQ(planOf(smallLayer(), Recompute::None).producer, (std::vector<int>{-1, 0, 0, 1, 2})); }

TEST(LayerPlan, SelectiveRecomputeRunsTheChosenModulesAgain) {
    const LayerPlan selective = planOf(smallLayer(), Recompute::Selective);
    ASSERT_EQ(selective.segments.size(), 1u);
    ASSERT_EQ(selective.segments[0].runs.size(), 1u);
    EXPECT_EQ(selective.segments[0].runs[0].op, 2);
    // The core runs again from b, which it must keep though its backward does not need it; its own output is kept from the second run only.
    EXPECT_EQ(selective.ops[2].saved, (std::vector<int>{3, 4}));
    EXPECT_EQ(selective.ops[2].savedInForward, std::vector<int>{3});
    EXPECT_EQ(selective.segments[0].runs[0].kept, std::vector<int>{4});
    EXPECT_EQ(selective.segments[0].runs[0].released, std::vector<int>{4});
    EXPECT_THAT(planOf(smallLayer(), Recompute::None).segments, testing::IsEmpty());
    EXPECT_THAT(planOf(smallLayer(), Recompute::Full).segments, testing::IsEmpty());
    EXPECT_THAT(planOf(smallLayer(), Recompute::Selective, {RecomputeModule::Mlp}).segments, testing::IsEmpty());
}

/// x → n (norm, saves x and its statistics) → v (view of n) → m (matmul, saves v) → output.
LayerType normAndProduct() {
    LayerType type;
    type.values = {{"x", {4}, DType::Bf16}, {"n", {4}, DType::Bf16}, {"statistics", {1}, DType::Fp32}, {"v", {2, 2}, DType::Bf16}, {"m", {4}, DType::Bf16}};
    KernelWork kernel;
    Op norm, view, product;
    norm.inputs = {0};
    norm.outputs = {1, 2};
    norm.saves = {0, 2};
    norm.forward = {kernel};
    view.inputs = {1};
    view.outputs = {3};
    product.inputs = {3};
    product.outputs = {4};
    product.saves = {3};
    product.forward = {kernel};
    type.ops = {norm, view, product};
    type.output = 4;
    type.segments = {{RecomputeModule::LayerNorm, 0, 0, 2}};
    return type;
}

TEST(LayerPlan, ADiscardedOutputIsKeptByNobodyUntilItIsMadeAgain) {
    const LayerPlan plan = planOf(normAndProduct(), Recompute::Selective, {RecomputeModule::LayerNorm});
    EXPECT_EQ(plan.ops[0].savedInForward, std::vector<int>{0});
    EXPECT_THAT(plan.ops[2].savedInForward, testing::IsEmpty());
    // In forward n is there until the product has run, which is the op that waits for it in backward.
    EXPECT_EQ(plan.ops[2].releasedAfterForward, (std::vector<int>{1, 3}));
    // The second run keeps n for the product, which knows it as v, and the statistics for the norm itself.
    const SegmentPlan& again = plan.segments.at(0);
    EXPECT_THAT(again.runs.at(0).kept, testing::UnorderedElementsAre(1, 2));
    EXPECT_THAT(again.runs.at(0).released, testing::UnorderedElementsAre(1, 2));
    EXPECT_EQ(again.views, std::vector<int>{1});
}

TEST(LayerPlan, AModuleInsideAnotherRunsWithIt) {
    LayerType type = normAndProduct();
    type.segments = {{RecomputeModule::Experts, 0, 2, 2}, {RecomputeModule::ExpertActivation, 1, 1, 2}};
    EXPECT_EQ(planOf(type, Recompute::Selective, {RecomputeModule::ExpertActivation, RecomputeModule::Experts}).segments.size(), 1u);
    EXPECT_EQ(planOf(type, Recompute::Selective, {RecomputeModule::ExpertActivation}).segments.at(0).segment.module, RecomputeModule::ExpertActivation);
}

}  // namespace
}  // namespace ringside
