#include <algorithm>

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
    c.attentionCore = true;
    type.ops = {a, b, c};
    type.output = 4;
    return type;
}

TEST(LayerPlan, AValueGoesAfterItsLastReader) {
    const LayerPlan plan = planLayer(smallLayer(), Recompute::None);
    // Op 0 reads x and makes the mask that nobody reads; op 1 reads a; op 2 reads b. The output goes to the next layer.
    EXPECT_EQ(plan.ops[0].releasedAfterForward, (std::vector<int>{0, 2}));
    EXPECT_EQ(plan.ops[1].releasedAfterForward, std::vector<int>{1});
    EXPECT_EQ(plan.ops[2].releasedAfterForward, std::vector<int>{3});
}

TEST(LayerPlan, AnOpWithoutKernelsIsAView) {
    const LayerPlan plan = planLayer(smallLayer(), Recompute::None);
    EXPECT_FALSE(plan.ops[0].isView);
    EXPECT_TRUE(plan.ops[1].isView);
}

TEST(LayerPlan, SavedValuesAreListedOnce) {
    EXPECT_EQ(planLayer(smallLayer(), Recompute::None).ops[0].saved, std::vector<int>{0});
}

TEST(LayerPlan, OnlyFloatingPointValuesHaveGradients) {
    const LayerPlan plan = planLayer(smallLayer(), Recompute::None);
    EXPECT_TRUE(plan.differentiable[1]);
    EXPECT_FALSE(plan.differentiable[2]);
}

TEST(LayerPlan, KnowsWhichOpWroteAValue) { EXPECT_EQ(planLayer(smallLayer(), Recompute::None).producer, (std::vector<int>{-1, 0, 0, 1, 2})); }

TEST(LayerPlan, SelectiveRecomputeMarksTheCoreOfAttentionOnly) {
    const LayerPlan selective = planLayer(smallLayer(), Recompute::Selective);
    EXPECT_EQ(selective.firstRecomputed, 2);
    EXPECT_EQ(selective.lastRecomputed, 2);
    EXPECT_FALSE(selective.ops[0].recomputed);
    // The core is run again from b, which it must keep though its backward does not need it.
    EXPECT_EQ(selective.ops[2].saved, (std::vector<int>{3, 4}));
    EXPECT_EQ(planLayer(smallLayer(), Recompute::None).firstRecomputed, -1);
    EXPECT_EQ(planLayer(smallLayer(), Recompute::Full).firstRecomputed, -1);
}

}  // namespace
}  // namespace ringside
