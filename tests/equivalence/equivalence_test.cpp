// Every strategy must train as one device does on the whole batch: the executor's proof that a Schedule is right.
#include "tests/equivalence/equal_to_single.h"

namespace ringside {
namespace {

TEST(Single, LearnsWhatItIsGiven) {
    for (const Json& model : {kMlp, kGpt, kLlama}) {
        ExecuteOptions options;
        options.hyper.learningRate = 1e-2;
        const Result<real::Outcome> outcome = real::run(scenarioOf(model, {{"name", "single"}}, 1, 16, 1), 60, options);
        ASSERT_TRUE(outcome) << outcome.error().toString();
        EXPECT_LT(outcome->losses[0].back(), 0.8 * outcome->losses[0].front()) << model.dump();
    }
}

TEST(Equivalence, OfGradientAccumulationAndABigBatch) {
    const Result<real::Outcome> whole = real::run(scenarioOf(kGpt, {{"name", "single"}}, 1, 8, 1), kSteps, steadyOptions());
    const Result<real::Outcome> parts = real::run(scenarioOf(kGpt, {{"name", "single"}}, 1, 2, 4), kSteps, steadyOptions());
    ASSERT_TRUE(whole && parts);
    EXPECT_LT(real::difference(*whole, *parts), kTolerance);
}

TEST(Equivalence, OfNaiveAllReduce) {
    for (const int ranks : {1, 2, 4}) expectEqualToSingle(kGpt, {{"name", "naive"}}, ranks);
    expectEqualToSingle(kLlama, {{"name", "naive"}}, 2, 2);
}

TEST(Equivalence, OfDdpAtSeveralBucketSizes) {
    for (const int ranks : {1, 2, 4})
        for (const double bucket : {0.001, 0.01, 25.0}) expectEqualToSingle(kGpt, {{"name", "ddp"}, {"bucket_mb", bucket}}, ranks);
}

TEST(Equivalence, OfDdpWithItsKnobs) {
    expectEqualToSingle(kMlp, {{"name", "ddp"}, {"bucket_mb", 0.01}}, 2, 3);
    expectEqualToSingle(kMlp, {{"name", "ddp"}, {"bucket_mb", 0.01}, {"no_sync", false}}, 2, 3);
    expectEqualToSingle(kMlp, {{"name", "ddp"}, {"gradient_as_bucket_view", true}}, 2, 2);
    expectEqualToSingle(kMlp, {{"name", "ddp"}, {"find_unused_parameters", true}}, 2);
}

TEST(Equivalence, OfPicotronBuckets) {
    for (const int ranks : {1, 2, 4}) expectEqualToSingle(kLlama, {{"name", "picotron"}, {"bucket_mb", 0.01}}, ranks, 2);
}

TEST(Equivalence, OfEveryOptimizer) {
    for (const std::string optimizer : {"adamw", "adam", "adamw-for-loop", "adam-fused", "sgd", "momentum", "momentum-fused", "sgd-for-loop"}) expectEqualToSingle(kMlp, {{"name", "ddp"}}, 2, 1, optimizer);
}

TEST(Equivalence, OfAResNetWhoseBatchNormsSeeTheirOwnRanks) {
    const Json resnet = {{"model_type", "resnet"}, {"depths", {1, 1}}, {"layer_type", "basic"}, {"image_size", 16}, {"num_labels", 7}};
    for (const std::string strategy : {"naive", "ddp", "zero2", "zero3", "fsdp2"}) expectEqualToSingle(resnet, {{"name", strategy}}, 2, 1, "momentum");
}

TEST(Equivalence, OfUnequalBatchesAndTheirWeightedMean) {
    // One sample here and three there: weights 0.5 and 1.5 over two ranks are the mean over all four.
    for (const std::string strategy : {"naive", "ddp"}) {
        const Result<real::Outcome> spread = real::run(scenarioWith(kGpt, {{"name", strategy}}, 2, {{"rank_batches", {1, 3}}}), kSteps, steadyOptions());
        ASSERT_TRUE(spread) << spread.error().toString();
        const Result<real::Outcome> single = real::run(scenarioOf(kGpt, {{"name", "single"}}, 1, 4, 1), kSteps, steadyOptions());
        ASSERT_TRUE(single) << single.error().toString();
        EXPECT_LT(real::difference(*single, *spread), kTolerance) << strategy;
    }
}

}  // namespace
}  // namespace ringside
