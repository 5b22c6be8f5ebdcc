// Strategies whose workers take steps of their own: they average their parameters now and then, or use gradients a step late.
#include "tests/equivalence/equal_to_single.h"

namespace ringside {
namespace {


// Averaging parameters after a plain gradient step is averaging gradients: w − η·mean(g) = mean(w − η·g).
TEST(Equivalence, OfLocalSgdThatAveragesInEveryStep) {
    for (const int ranks : {1, 2, 4}) expectEqualToSingle(kGpt, {{"name", "local-sgd"}, {"period", 1}}, ranks, 1, "sgd");
    expectEqualToSingle(kLlama, {{"name", "local-sgd"}, {"period", 1}}, 2, 2, "sgd");
}

// One group of all ranks averages gradients in every step: that is DDP.
TEST(Equivalence, OfPostLocalSgdInOneGroup) {
    expectEqualToSingle(kGpt, {{"name", "local-sgd"}, {"period", 100}, {"local_group", 4}}, 4, 1);
    expectEqualToSingle(kMlp, {{"name", "local-sgd"}, {"period", 1}, {"local_group", 2}}, 4, 2, "sgd");
}

TEST(LocalSgd, AveragesOnlyAtTheEndOfARound) {
    const Json strategy = {{"name", "local-sgd"}, {"period", 3}};
    // Within a round ranks differ, which run() reports; at its end they are equal bit by bit.
    EXPECT_FALSE(real::run(scenarioOf(kMlp, strategy, 2, 2, 1), 2, steadyOptions()));
    EXPECT_FALSE(real::run(scenarioOf(kMlp, strategy, 2, 2, 1), 4, steadyOptions()));
    for (const int steps : {3, 6}) {
        const Result<real::Outcome> outcome = real::run(scenarioOf(kMlp, strategy, 2, 2, 1), steps, steadyOptions());
        EXPECT_TRUE(outcome) << outcome.error().toString();
    }
}

// With an outer rate of 1 and no outer momentum the outer step takes the mean: DiLoCo is local SGD.
TEST(DiLoCo, IsLocalSgdWithAPlainOuterStep) {
    ExecuteOptions options = steadyOptions();
    options.hyper.outerLearningRate = 1;
    options.hyper.outerMomentum = 0;
    const Result<real::Outcome> outer = real::run(scenarioOf(kMlp, {{"name", "diloco"}, {"period", 2}}, 2, 2, 1), 4, options);
    const Result<real::Outcome> local = real::run(scenarioOf(kMlp, {{"name", "local-sgd"}, {"period", 2}}, 2, 2, 1), 4, options);
    ASSERT_TRUE(outer) << outer.error().toString();
    ASSERT_TRUE(local) << local.error().toString();
    EXPECT_LT(real::difference(*outer, *local), kTolerance);
}

TEST(DiLoCo, Learns) { expectLearns(kMlp, {{"name", "diloco"}, {"period", 5}}, 2, 60, 3e-3); }

// Pulled all the way (α = 1) by a centre that all begin with: after one exchange x = x̃₀, and the centre has moved by Σ(x − x̃₀).
TEST(ElasticAveraging, PullsWorkersToTheCentre) {
    ExecuteOptions options = steadyOptions();
    options.hyper.elasticity = 2;  // over two workers: α = 1
    const Result<real::Outcome> pulled = real::run(scenarioOf(kMlp, {{"name", "easgd"}, {"period", 1}}, 2, 2, 1), 1, options, true);
    ASSERT_TRUE(pulled) << pulled.error().toString();
    const Result<real::Outcome> start = real::run(scenarioOf(kMlp, {{"name", "single"}}, 1, 2, 1), 0, options);
    ASSERT_TRUE(start) << start.error().toString();
    EXPECT_LT(real::difference(*start, *pulled), 1e-6);
}

TEST(ElasticAveraging, Learns) {
    expectLearns(kMlp, {{"name", "easgd"}, {"period", 4}}, 2, 60, 3e-3);
    expectLearns(kMlp, {{"name", "easgd"}, {"period", 4}, {"async_averaging", true}, {"servers", 2}}, 2, 200, 3e-3);
}

// w₁ = w₀ (no gradient has arrived), w₂ = w₁ − η·g(w₀) on the first step's samples: after two steps as one device after one.
TEST(DdpWithAsyncGradients, AppliesTheGradientsOfTheStepBefore) {
    const Json strategy = {{"name", "ddp"}, {"async_gradients", true}, {"bucket_mb", 0.01}};
    const Result<real::Outcome> late = real::run(scenarioOf(kMlp, strategy, 2, 2, 1, "sgd"), 2, steadyOptions());
    ASSERT_TRUE(late) << late.error().toString();
    const Result<real::Outcome> single = real::run(scenarioOf(kMlp, {{"name", "single"}}, 1, 2, 2, "sgd"), 1, steadyOptions());
    ASSERT_TRUE(single) << single.error().toString();
    EXPECT_LT(real::difference(*single, *late), kTolerance);
}

TEST(DdpWithAsyncGradients, Learns) { expectLearns(kMlp, {{"name", "ddp"}, {"async_gradients", true}}, 2, 60, 3e-3); }

TEST(LocalStepsMemory, IsWhatTheScheduleForetells) {
    expectForetoldMemory(kGpt, {{"name", "local-sgd"}, {"period", 2}}, 2, 2);
    expectForetoldMemory(kGpt, {{"name", "diloco"}, {"period", 2}}, 2, 2);
    expectForetoldMemory(kGpt, {{"name", "easgd"}, {"period", 2}}, 2, 4);
    expectForetoldMemory(kGpt, {{"name", "ddp"}, {"async_gradients", true}}, 2, 2);
}

}  // namespace
}  // namespace ringside
