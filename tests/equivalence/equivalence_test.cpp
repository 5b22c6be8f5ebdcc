// Every strategy must train as one device does on the whole batch: the executor's proof that a Schedule is right.
//
// The reference is `single` over the same samples, micro-batch after micro-batch, so that batch norm sees the same groups.
#include <gtest/gtest.h>

#include "tests/support/real_ranks.h"

namespace ringside {
namespace {

constexpr double kTolerance = 1e-5;
constexpr int kSteps = 3;

const Json kMlp = {{"model_type", "mlp"}, {"widths", {24, 40, 40, 17, 10}}, {"activation", "gelu"}};
const Json kGpt = {{"model_type", "gpt2"}, {"n_layer", 2}, {"n_embd", 32}, {"n_head", 4}, {"vocab_size", 61}, {"n_positions", 16}};
const Json kLlama = {{"model_type", "llama"}, {"num_hidden_layers", 2}, {"hidden_size", 32}, {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                     {"intermediate_size", 48}, {"vocab_size", 61}, {"max_position_embeddings", 16}};

Scenario scenarioOf(const Json& model, const Json& strategy, int ranks, int microBatch, int accumulate, const std::string& optimizer = "adamw-fused") {
    static const Catalogs catalogs = *Catalogs::builtin();
    const Json document = {{"model", model},
                           {"device", "a100-80gb-sxm"},
                           {"devices", ranks},
                           {"training", {{"micro_batch", microBatch}, {"grad_accum", accumulate}, {"precision", "fp32"}, {"optimizer", optimizer}}},
                           {"strategy", strategy}};
    const Result<Scenario> scenario = resolveScenario(document, "test", catalogs);
    EXPECT_TRUE(scenario) << scenario.error().toString();
    return *scenario;
}

// Some gradients are zero but for rounding (a key's bias shifts all scores alike); Adam would blow that up to a whole step, so
// its epsilon is far above rounding here.
ExecuteOptions steadyOptions() {
    ExecuteOptions options;
    options.hyper.epsilon = 1e-3;
    return options;
}

void expectEqualToSingle(const Json& model, const Json& strategy, int ranks, int accumulate = 1, const std::string& optimizer = "adamw-fused") {
    SCOPED_TRACE(strategy.dump() + " on " + std::to_string(ranks));
    const int microBatch = 2;
    const Result<real::Outcome> spread = real::run(scenarioOf(model, strategy, ranks, microBatch, accumulate, optimizer), kSteps, steadyOptions());
    ASSERT_TRUE(spread) << spread.error().toString();
    const Result<real::Outcome> single = real::run(scenarioOf(model, {{"name", "single"}}, 1, microBatch, accumulate * ranks, optimizer), kSteps, steadyOptions());
    ASSERT_TRUE(single) << single.error().toString();
    EXPECT_LT(real::difference(*single, *spread), kTolerance);
}

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

}  // namespace
}  // namespace ringside
