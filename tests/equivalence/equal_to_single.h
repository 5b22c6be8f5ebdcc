// What every equivalence test asks: after a few steps, do the ranks hold what one device holds that trained on the whole batch?
//
// The reference is `single` over the same samples, micro-batch after micro-batch, so that batch norm sees the same groups.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "tests/support/real_ranks.h"

namespace ringside {

constexpr double kTolerance = 1e-5;
constexpr int kSteps = 3;

inline const Json kMlp = {{"model_type", "mlp"}, {"widths", {24, 40, 40, 17, 10}}, {"activation", "gelu"}};
inline const Json kGpt = {{"model_type", "gpt2"}, {"n_layer", 2}, {"n_embd", 32}, {"n_head", 4}, {"vocab_size", 61}, {"n_positions", 16}};
inline const Json kLlama = {{"model_type", "llama"}, {"num_hidden_layers", 2}, {"hidden_size", 32}, {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                            {"intermediate_size", 48}, {"vocab_size", 61}, {"max_position_embeddings", 16}};

/// `training`: what is not as usual (micro-batch 2, fp32, adamw-fused).
inline Scenario scenarioWith(const Json& model, const Json& strategy, int ranks, const Json& training) {
    static const Catalogs catalogs = *Catalogs::builtin();
    Json document = {{"model", model},
                     {"device", "a100-80gb-sxm"},
                     {"devices", ranks},
                     {"training", {{"micro_batch", 2}, {"precision", "fp32"}, {"optimizer", "adamw-fused"}}},
                     {"strategy", strategy}};
    document["training"].update(training);
    const Result<Scenario> scenario = resolveScenario(document, "test", catalogs);
    EXPECT_TRUE(scenario) << scenario.error().toString();
    return *scenario;
}

inline Scenario scenarioOf(const Json& model, const Json& strategy, int ranks, int microBatch, int accumulate, const std::string& optimizer = "adamw-fused") {
    return scenarioWith(model, strategy, ranks, {{"micro_batch", microBatch}, {"grad_accum", accumulate}, {"optimizer", optimizer}});
}

// Some gradients are zero but for rounding (a key's bias shifts all scores alike); Adam would blow that up to a whole step, so
// its epsilon is far above rounding here.
inline ExecuteOptions steadyOptions() {
    ExecuteOptions options;
    options.hyper.epsilon = 1e-3;
    return options;
}

/// What `single` ends with; runs once for all that ask for the same.
inline const Result<real::Outcome>& singleOutcome(const Json& model, const Json& training) {
    static std::map<std::string, Result<real::Outcome>> known;
    const std::string name = model.dump() + training.dump();
    auto found = known.find(name);
    if (found == known.end()) found = known.emplace(name, real::run(scenarioWith(model, {{"name", "single"}}, 1, training), kSteps, steadyOptions())).first;
    return found->second;
}

/// Every rank has micro-batches of 2, and `accumulate` of them in a step.
inline void expectEqualToSingle(const Json& model, const Json& strategy, int ranks, int accumulate = 1, const std::string& optimizer = "adamw-fused") {
    SCOPED_TRACE(strategy.dump() + " on " + std::to_string(ranks) + ", " + std::to_string(accumulate) + " micro-steps");
    const Result<real::Outcome> spread = real::run(scenarioOf(model, strategy, ranks, 2, accumulate, optimizer), kSteps, steadyOptions());
    ASSERT_TRUE(spread) << spread.error().toString();
    const Result<real::Outcome>& single = singleOutcome(model, {{"grad_accum", accumulate * ranks}, {"optimizer", optimizer}});
    ASSERT_TRUE(single) << single.error().toString();
    EXPECT_LT(real::difference(*single, *spread), kTolerance);
}

/// Each rank's tensors take the bytes that are predicted for its program: the same Schedule, the same allocator. Memory whose return
/// is deferred counts until it is freed on both sides.
inline void expectPredictedMemory(const Json& model, const Json& strategy, int ranks, const Json& training = Json::object()) {
    SCOPED_TRACE(strategy.dump() + " on " + std::to_string(ranks));
    const Scenario scenario = scenarioWith(model, strategy, ranks, training);
    const Result<real::Outcome> outcome = real::run(scenario, 1, steadyOptions(), true);
    ASSERT_TRUE(outcome) << outcome.error().toString();
    const Schedule& schedule = outcome->schedule;
    Bytes most = 0;
    for (std::size_t r = 0; r < schedule.classes.size(); ++r) {
        const Bytes predicted = trackMemory(schedule.programs[schedule.classes[r].program], {}).peakAllocated;
        EXPECT_EQ(outcome->peakAllocated[r], predicted) << "rank " << r;
        most = std::max(most, predicted);
    }
    const Result<Prediction> prediction = predict(scenario);
    ASSERT_TRUE(prediction);
    if (prediction->schedule->exact) most = outcome->peakAllocated[static_cast<std::size_t>(prediction->schedule->classes[prediction->memoryClass].ranks.first)];
    bool defers = false;
    for (const Buffer& buffer : prediction->memoryProgram().buffers) defers = defers || buffer.deferredFree;
    if (defers) EXPECT_GE(prediction->memory.peakAllocated, most) << "the device takes its time";
    else EXPECT_EQ(prediction->memory.peakAllocated, most);
}

/// The bytes of the executor's tensors are those that the Schedule foretells, on every rank.
inline void expectForetoldMemory(const Json& model, const Json& strategy, int ranks, int steps = 1) {
    SCOPED_TRACE(strategy.dump());
    const Result<real::Outcome> outcome = real::run(scenarioOf(model, strategy, ranks, 2, 2), steps, steadyOptions(), true);
    ASSERT_TRUE(outcome) << outcome.error().toString();
    for (std::size_t r = 0; r < outcome->peakAllocated.size(); ++r) {
        const RankProgram& program = outcome->schedule.programs[outcome->schedule.classes[r].program];
        EXPECT_EQ(outcome->peakAllocated[r], trackMemory(program, {}).peakAllocated) << "rank " << r;
    }
}

/// Every rank ends with at most half of the loss that training began with. That is the largest first loss: a worker of an
/// asynchronous strategy that the machine starts late finds a model that others have trained.
inline void expectHalvedLosses(const real::Outcome& outcome) {
    double first = 0;
    for (const std::vector<double>& losses : outcome.losses) first = std::max(first, losses.front());
    for (const std::vector<double>& losses : outcome.losses) EXPECT_LT(losses.back(), 0.5 * first);
}

inline void expectLearns(const Json& model, const Json& strategy, int ranks, int steps, double learningRate, const std::string& optimizer = "adamw-fused") {
    SCOPED_TRACE(strategy.dump());
    ExecuteOptions options;
    options.hyper.learningRate = learningRate;
    const Result<real::Outcome> outcome = real::run(scenarioOf(model, strategy, ranks, 16, 1, optimizer), steps, options, true);
    ASSERT_TRUE(outcome) << outcome.error().toString();
    expectHalvedLosses(*outcome);
}

}  // namespace ringside
