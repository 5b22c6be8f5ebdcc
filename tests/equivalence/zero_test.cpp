// ZeRO 1 to 3, ZeroRedundancyOptimizer and Megatron's distributed optimizer train as one device does: what is shared out over
// ranks comes together again where the Schedule says.
#include "tests/equivalence/equal_to_single.h"

namespace ringside {
namespace {

// Elements of a bucket: of the models' tensors some fit several at a time, some one, and some not at all.
constexpr int kSmallBucket = 3000;

Json with(const std::string& name, Json knobs = Json::object()) {
    knobs["name"] = name;
    return knobs;
}

Json zero(int stage, Json knobs = Json::object()) {
    if (!knobs.contains("reduce_bucket_size")) knobs["reduce_bucket_size"] = kSmallBucket;
    return with("zero" + std::to_string(stage), std::move(knobs));
}

// Parameters of more than 100 elements come and go.
Json zero3(Json knobs = Json::object()) {
    if (!knobs.contains("param_persistence_threshold")) knobs["param_persistence_threshold"] = 100;
    return zero(3, std::move(knobs));
}

TEST(Zero12Equivalence, OfEveryModelAtOneTwoAndFourRanks) {
    for (const int stage : {1, 2})
        for (const Json& model : {kMlp, kGpt, kLlama})
            for (const int ranks : {1, 2, 4}) expectEqualToSingle(model, zero(stage), ranks);
}

// Ends of parameters and of ranks' slices fall apart in every bucket.
TEST(Zero12Equivalence, OfEveryWayToReduce) {
    for (const int stage : {1, 2})
        for (const bool overlap : {false, true})
            for (const bool contiguous : {true, false})
                for (const Json& way : {Json{{"reduce_scatter", true}}, Json{{"reduce_scatter", false}}, Json{{"reduce_scatter", true}, {"use_multi_rank_bucket_allreduce", false}}}) {
                    Json knobs = {{"overlap_comm", overlap}, {"contiguous_gradients", contiguous}};
                    knobs.update(way);
                    expectEqualToSingle(kMlp, zero(stage, knobs), 4, 2);
                    if (stage == 2) expectEqualToSingle(kGpt, zero(stage, knobs), 2);
                }
}

TEST(Zero12Equivalence, OfBucketsOfEverySize) {
    for (const int stage : {1, 2})
        for (const int bucket : {1, 700, 200'000})
            for (const bool overlap : {false, true}) expectEqualToSingle(kLlama, zero(stage, {{"reduce_bucket_size", bucket}, {"overlap_comm", overlap}}), 2, 3);
}

TEST(Zero12Equivalence, OfEveryOptimizerOnASlice) {
    for (const std::string optimizer : {"adamw", "adam", "adamw-for-loop", "momentum", "sgd"}) expectEqualToSingle(kMlp, zero(2), 4, 1, optimizer);
}

TEST(Zero12Equivalence, TakesTheMemoryThatIsPredicted) {
    for (const int stage : {1, 2})
        for (const bool overlap : {false, true})
            for (const bool contiguous : {true, false})
                expectPredictedMemory(kGpt, zero(stage, {{"overlap_comm", overlap}, {"contiguous_gradients", contiguous}}), 2, {{"grad_accum", 2}});
}

TEST(Zero3Equivalence, OfEveryModelAtOneTwoAndFourRanks) {
    for (const Json& model : {kMlp, kGpt, kLlama})
        for (const int ranks : {1, 2, 4}) expectEqualToSingle(model, zero3(), ranks);
}

TEST(Zero3Equivalence, OfParametersThatStayAndThoseThatComeAndGo) {
    const auto expectEqual = [](double threshold, double prefetch) {
        expectEqualToSingle(kGpt, zero3({{"param_persistence_threshold", threshold}, {"prefetch_bucket_size", prefetch}, {"max_reuse_distance", 0}}), 4);
    };
    for (const double prefetch : {0.0, 500.0, 5e7}) expectEqual(0, prefetch);
    expectEqual(100, 500);
    expectEqual(1e5, 5e7);
    expectEqualToSingle(kLlama, zero3({{"max_reuse_distance", 5000}, {"max_live_parameters", 9000}}), 2, 2);
}

TEST(Zero3Equivalence, OfEveryWayToReduce) {
    for (const bool overlap : {false, true})
        for (const bool contiguous : {true, false})
            for (const bool scatter : {true, false}) {
                const Json knobs = {{"overlap_comm", overlap}, {"contiguous_gradients", contiguous}, {"reduce_scatter", scatter}};
                expectEqualToSingle(kGpt, zero3(knobs), 2, 2);
                expectEqualToSingle(kMlp, zero3(knobs), 4, 3);
            }
    for (const int bucket : {1, 200'000}) expectEqualToSingle(kLlama, zero3({{"reduce_bucket_size", bucket}}), 2, 2);
}

// A rank's shards of kGpt are 7,000 elements: three groups, each with an update of its own.
TEST(Zero3Equivalence, OfSubGroups) {
    for (const std::string optimizer : {"adamw", "adamw-fused", "sgd"}) expectEqualToSingle(kGpt, zero3({{"sub_group_size", 2500}}), 4, 2, optimizer);
    expectEqualToSingle(kMlp, zero3({{"sub_group_size", 1}}), 1, 2);
}

TEST(Zero3Equivalence, OfASecondCopyForGathersWithinTheNode) {
    for (const Json& model : {kMlp, kGpt}) expectEqualToSingle(model, zero3({{"zero_hpz_partition_size", 2}, {"max_reuse_distance", 0}}), 4, 2);
}

TEST(Zero3Equivalence, TakesTheMemoryThatIsPredicted) {
    for (const bool overlap : {false, true})
        for (const double prefetch : {0.0, 5e7})
            expectPredictedMemory(kGpt, zero3({{"overlap_comm", overlap}, {"prefetch_bucket_size", prefetch}, {"max_reuse_distance", 0}}), 4, {{"grad_accum", 2}});
}

TEST(ZeroRedundancyOptimizerEquivalence, OfEveryModelAtOneTwoAndFourRanks) {
    for (const Json& model : {kMlp, kGpt, kLlama})
        for (const int ranks : {1, 2, 4}) expectEqualToSingle(model, with("zero-redundancy-optimizer"), ranks);
}

TEST(ZeroRedundancyOptimizerEquivalence, OfItsKnobs) {
    for (const bool views : {false, true}) {
        expectEqualToSingle(kGpt, with("zero-redundancy-optimizer", {{"parameters_as_bucket_view", views}, {"bucket_mb", 0.01}}), 4, 2);
        expectEqualToSingle(kMlp, with("zero-redundancy-optimizer", {{"parameters_as_bucket_view", views}, {"gradient_as_bucket_view", true}}), 2, 2, "sgd");
    }
}

// Two tensors and four ranks: two of them own nothing.
TEST(ZeroRedundancyOptimizerEquivalence, OfMoreRanksThanTensors) {
    expectEqualToSingle({{"model_type", "mlp"}, {"widths", {6, 5}}, {"activation", "gelu"}}, with("zero-redundancy-optimizer"), 4);
}

TEST(ZeroRedundancyOptimizerEquivalence, TakesTheMemoryThatIsPredictedForTheHeaviestRank) {
    for (const int ranks : {2, 4}) expectPredictedMemory(kGpt, with("zero-redundancy-optimizer"), ranks);
}

// What is played has every rank do what the heaviest does; run like that, tensors of the others would never be updated.
TEST(ZeroRedundancyOptimizerEquivalence, RefusesAScheduleInWhichOneRankStandsForAll) {
    const Scenario scenario = scenarioWith(kMlp, with("zero-redundancy-optimizer"), 2, Json::object());
    const Result<Schedule> played = writeSchedule(scenario);
    ASSERT_TRUE(played);
    const Result<BoundProgram> bound = bindProgram(*played, 0, 0, scenario.training, {});
    ASSERT_FALSE(bound);
    EXPECT_EQ(bound.error().code, ErrorCode::MissingCapability);
}

TEST(MegatronEquivalence, OfEveryModelAtOneTwoAndFourRanks) {
    for (const Json& model : {kMlp, kGpt, kLlama})
        for (const int ranks : {1, 2, 4}) expectEqualToSingle(model, with("megatron"), ranks);
}

TEST(MegatronEquivalence, OfEveryKnob) {
    const std::vector<Json> knobs = {{{"use_distributed_optimizer", false}},
                                     {{"use_distributed_optimizer", false}, {"overlap_grad_reduce", true}, {"bucket_elements", kSmallBucket}},
                                     {{"overlap_grad_reduce", true}, {"bucket_elements", kSmallBucket}},
                                     {{"overlap_grad_reduce", true}, {"overlap_param_gather", true}, {"bucket_elements", kSmallBucket}},
                                     {{"overlap_grad_reduce", true}, {"overlap_param_gather", true}, {"bucket_elements", kSmallBucket}, {"num_distributed_optimizer_instances", 2}},
                                     {{"num_distributed_optimizer_instances", 2}},
                                     {{"grad_reduce_in_fp32", true}, {"pad_buckets_for_high_nccl_busbw", true}}};
    for (const Json& some : knobs) {
        expectEqualToSingle(kGpt, with("megatron", some), 4);
        expectEqualToSingle(kMlp, with("megatron", some), 2, 3);
    }
}

// Without state there is nothing but the layout to say which slice is this rank's.
TEST(MegatronEquivalence, OfEveryOptimizerOnASlice) {
    for (const std::string optimizer : {"adamw", "adam", "momentum", "sgd", "sgd-for-loop"}) expectEqualToSingle(kMlp, with("megatron"), 4, 1, optimizer);
}

TEST(MegatronEquivalence, TakesTheMemoryThatIsPredicted) {
    for (const bool distributed : {true, false}) expectPredictedMemory(kGpt, with("megatron", {{"use_distributed_optimizer", distributed}}), 2, {{"grad_accum", 2}});
}

TEST(Sharded, RefusesWhatCannotBeRunYet) {
    const std::vector<Json> refused = {zero(1, {{"offload_optimizer", "cpu"}}), zero3({{"offload_optimizer", "cpu"}}), zero3({{"offload_param", "cpu"}}),
                                       zero3({{"zero_quantized_weights", true}})};
    for (const Json& strategy : refused) {
        const Result<real::Outcome> outcome = real::run(scenarioWith(kMlp, strategy, 2, Json::object()), 1, steadyOptions());
        ASSERT_FALSE(outcome) << strategy.dump();
        EXPECT_EQ(outcome.error().code, ErrorCode::MissingCapability) << outcome.error().toString();
    }
}

}  // namespace
}  // namespace ringside
