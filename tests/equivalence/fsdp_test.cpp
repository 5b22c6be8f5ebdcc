// FSDP1, FSDP2 and HSDP train as one device does: shards are cut, gathered, reduced and updated where the Schedule says.
#include "tests/equivalence/equal_to_single.h"

namespace ringside {
namespace {

Json fsdp1(const std::string& sharding, Json knobs = Json::object()) {
    knobs["name"] = "fsdp1";
    knobs["sharding_strategy"] = sharding;
    if (sharding.starts_with("hybrid")) knobs["shard_group"] = 2;
    return knobs;
}
Json fsdp2(Json knobs = Json::object()) {
    knobs["name"] = "fsdp2";
    return knobs;
}
Json hsdp(Json knobs = Json::object()) {
    knobs["name"] = "hsdp";
    knobs["shard_group"] = 2;
    return knobs;
}

TEST(Fsdp2Equivalence, OfEveryModelAtOneTwoAndFourRanks) {
    for (const Json& model : {kMlp, kGpt, kLlama})
        for (const int ranks : {1, 2, 4}) expectEqualToSingle(model, fsdp2(), ranks);
}

TEST(Fsdp2Equivalence, OfAccumulationThatReducesOnceOrEveryTime) {
    for (const bool noSync : {true, false}) {
        expectEqualToSingle(kGpt, fsdp2({{"no_sync", noSync}}), 2, 3);
        expectEqualToSingle(kMlp, fsdp2({{"no_sync", noSync}, {"wrap_layers", {"layers.0", "layers.1", "layers.2"}}}), 4, 2);
    }
}

// 61 and 17 rows are no multiple of 4: what forward leaves on 2 ranks has padding of its own.
TEST(Fsdp2Equivalence, OfWhatIsReshardedAfterForward) {
    for (const Json& reshard : {Json(true), Json(false), Json(2)}) {
        expectEqualToSingle(kGpt, fsdp2({{"reshard_after_forward", reshard}}), 4);
        expectEqualToSingle(kMlp, fsdp2({{"reshard_after_forward", reshard}, {"wrap_layers", {"layers.1", "layers.2", "layers.3"}}}), 4, 2);
    }
}

TEST(Fsdp2Equivalence, OfUnitsOfEverySizeAndAnyPrefetch) {
    expectEqualToSingle(kLlama, fsdp2({{"wrap", "none"}}), 2);
    expectEqualToSingle(kLlama, fsdp2({{"wrap", "size"}, {"min_wrap_elements", 2000}}), 4);
    expectEqualToSingle(kGpt, fsdp2({{"wrap", "size"}, {"min_wrap_elements", 2000}}), 2, 2);
    expectEqualToSingle(kLlama, fsdp2({{"forward_prefetch", 2}}), 4, 2);
}

TEST(Fsdp2Equivalence, OfStepsWhoseCollectivesHoldTheRankThatCallsThem) {
    expectEqualToSingle(kGpt, fsdp2({{"overlap_comm", false}}), 2, 2);
    expectEqualToSingle(kLlama, hsdp({{"overlap_comm", false}}), 4);
}

TEST(Fsdp2Equivalence, OfEveryOptimizerOnRows) {
    for (const std::string optimizer : {"adamw", "adamw-for-loop", "momentum", "sgd"}) expectEqualToSingle(kMlp, fsdp2(), 4, 1, optimizer);
}

// 2 rows on 4 ranks: half of them gather, reduce and update nothing of their own.
TEST(Fsdp2Equivalence, OfRanksThatHoldNothingButPadding) {
    expectEqualToSingle({{"model_type", "mlp"}, {"widths", {3, 2}}, {"activation", "gelu"}}, fsdp2(), 4);
}

// Ranks with more samples weigh more; the third has a program of its own.
TEST(Fsdp2Equivalence, OfUnequalBatchesAndTheirWeightedMean) {
    for (const Json& model : {kMlp, kGpt}) {
        const Result<real::Outcome> spread = real::run(scenarioWith(model, fsdp2(), 4, {{"rank_batches", {1, 2, 1, 4}}}), kSteps, steadyOptions());
        ASSERT_TRUE(spread) << spread.error().toString();
        const Result<real::Outcome>& single = singleOutcome(model, {{"micro_batch", 8}});
        ASSERT_TRUE(single) << single.error().toString();
        EXPECT_LT(real::difference(*single, *spread), kTolerance);
    }
}

TEST(Fsdp2Equivalence, OfRecomputedBlocks) {
    for (const Json& strategy : {fsdp2(), fsdp1("full_shard")}) {
        for (const char* recompute : {"full", "selective-op"}) {
            const Result<real::Outcome> spread = real::run(scenarioWith(kLlama, strategy, 2, {{"recompute", recompute}}), kSteps, steadyOptions());
            ASSERT_TRUE(spread) << spread.error().toString();
            EXPECT_LT(real::difference(*singleOutcome(kLlama, {{"grad_accum", 2}, {"optimizer", "adamw-fused"}}), *spread), kTolerance) << strategy.dump() << recompute;
        }
    }
}

TEST(Fsdp1Equivalence, OfEveryShardingAtOneTwoAndFourRanks) {
    for (const std::string sharding : {"full_shard", "shard_grad_op", "no_shard"})
        for (const int ranks : {1, 2, 4}) expectEqualToSingle(kGpt, fsdp1(sharding), ranks);
    for (const std::string sharding : {"full_shard", "no_shard"}) {
        expectEqualToSingle(kMlp, fsdp1(sharding, {{"wrap_layers", {"layers.0", "layers.2"}}}), 4);
        expectEqualToSingle(kLlama, fsdp1(sharding), 4);
    }
}

TEST(Fsdp1Equivalence, OfAccumulationThatReducesOnceOrEveryTime) {
    for (const std::string sharding : {"full_shard", "shard_grad_op", "no_shard", "hybrid_shard"})
        for (const bool noSync : {true, false}) expectEqualToSingle(kMlp, fsdp1(sharding, {{"no_sync", noSync}, {"wrap_layers", {"layers.0", "layers.1", "layers.2"}}}), 4, 2);
}

TEST(Fsdp1Equivalence, OfShardsWithinGroups) {
    for (const std::string sharding : {"hybrid_shard", "hybrid_shard_zero2"}) expectEqualToSingle(kLlama, fsdp1(sharding), 4, 2);
}

// Without use_orig_params tensors follow each other without gaps, and the flat gradient is padded before it is reduced.
TEST(Fsdp1Equivalence, OfItsKnobs) {
    for (const bool aligned : {true, false}) expectEqualToSingle(kMlp, fsdp1("full_shard", {{"use_orig_params", aligned}, {"wrap", "none"}}), 4, 2);
    for (const std::string prefetch : {"pre", "post", "none"})
        for (const bool limit : {true, false}) expectEqualToSingle(kGpt, fsdp1("full_shard", {{"backward_prefetch", prefetch}, {"limit_all_gathers", limit}, {"forward_prefetch", limit ? 1 : 0}}), 2);
    expectEqualToSingle(kLlama, fsdp1("full_shard", {{"wrap", "size"}, {"min_wrap_elements", 2000}}), 2);
    for (const std::string optimizer : {"adamw", "sgd"}) expectEqualToSingle(kMlp, fsdp1("full_shard"), 2, 1, optimizer);
}

TEST(HsdpEquivalence, OfShardsWithinGroupsAndReplicasAcrossThem) {
    for (const Json& model : {kMlp, kGpt, kLlama}) expectEqualToSingle(model, hsdp(), 4);
    for (const bool reshard : {true, false}) expectEqualToSingle(kGpt, hsdp({{"reshard_after_forward", reshard}}), 4, 2);
    expectEqualToSingle(kMlp, hsdp({{"no_sync", false}, {"wrap_layers", {"layers.0", "layers.1", "layers.2"}}}), 4, 2);
}

// bf16 keeps 8 bits; a bias, which starts at 0, is all gradient and shows the rounding of each sum (2⁻⁹) whole.
TEST(FsdpEquivalence, OfGradientsReducedInBf16UpToItsRounding) {
    for (const Json& strategy : {fsdp2({{"reduce_dtype", "bf16"}}), fsdp1("full_shard", {{"reduce_dtype", "bf16"}}), hsdp({{"reduce_dtype", "bf16"}})}) {
        const Result<real::Outcome> spread = real::run(scenarioOf(kMlp, strategy, 4, 2, 1, "sgd"), kSteps, steadyOptions());
        ASSERT_TRUE(spread) << spread.error().toString();
        const double difference = real::difference(*singleOutcome(kMlp, {{"grad_accum", 4}, {"optimizer", "sgd"}}), *spread);
        EXPECT_GT(difference, 0) << strategy.dump();
        EXPECT_LT(difference, 1e-2) << strategy.dump();
    }
}

TEST(FsdpMemory, OfTheTensorsIsWhatIsPredicted) {
    for (const Json& strategy : {fsdp2(), fsdp2({{"reshard_after_forward", 2}}), hsdp(), fsdp1("full_shard"), fsdp1("shard_grad_op"), fsdp1("no_shard"), fsdp1("hybrid_shard")}) {
        expectPredictedMemory(kGpt, strategy, 4);
        expectPredictedMemory(kLlama, strategy, 4, {{"grad_accum", 2}, {"optimizer", "adamw"}});
    }
    expectPredictedMemory(kMlp, fsdp2(), 4, {{"rank_batches", {1, 2, 1, 4}}});
}

TEST(FsdpOffload, IsRefusedWithAWord) {
    for (const Json& strategy : {fsdp1("full_shard", {{"cpu_offload", true}}), fsdp2({{"cpu_offload", true}})}) {
        const Result<real::Outcome> outcome = real::run(scenarioOf(kMlp, strategy, 2, 2, 1), 1);
        ASSERT_FALSE(outcome);
        EXPECT_EQ(outcome.error().code, ErrorCode::MissingCapability);
        EXPECT_NE(outcome.error().toString().find("on the host"), std::string::npos) << outcome.error().toString();
    }
}

}  // namespace
}  // namespace ringside
