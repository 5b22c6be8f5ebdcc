// Which parameters FSDP gathers together, and how units are padded; docs/models/fsdp.md tells the rules.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/strategy/fsdp_setup.h"
#include "sim/strategy/fsdp_units.h"
#include "tests/support/sharded_steps.h"

namespace ringside::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Elements of each unit's first all-gather, by unit.
std::map<int, std::int64_t> unitElements(const Schedule& schedule) {
    std::map<int, std::int64_t> elements;
    for (const TaskId t : tasksWith(schedule, TaskRole::Unshard)) {
        const Task& task = schedule.programs.front().tasks[t];
        elements.try_emplace(task.part, schedule.collectives[task.work].elements);
    }
    return elements;
}

std::string wrongBy(const std::string& text) {
    const Result<Schedule> schedule = writeSchedule(scenarioOf(text));
    if (schedule) return "accepted";
    EXPECT_EQ(schedule.error().code, ErrorCode::BadInput);
    return schedule.error().toString();
}

TEST(FlatElements, TensorsAreAlignedAndTheWholeIsPaddedToTheRanks) {
    // 3, then 5 from the next multiple of 8 on: 8 + 5 = 13, and 13 is padded to 16 for 4 ranks.
    const std::vector<std::int64_t> tensors{3, 5};
    EXPECT_EQ(flatElements(tensors, 8, 4), 16);
    // Without alignment: 3 + 5 = 8, a multiple of 4 already; for 3 ranks 9.
    EXPECT_EQ(flatElements(tensors, 0, 4), 8);
    EXPECT_EQ(flatElements(tensors, 0, 3), 9);
    EXPECT_EQ(flatElements(tensors, 8, 1), 13);
}

TEST(ShardElements, ATensorIsCutByRowsAndTheRowsAreRoundedUp) {
    // GPT-2's embedding: 50257 rows over 4 ranks are 12565 each (4·12565 = 50260: three rows of padding).
    EXPECT_EQ(shardRows({50257, 768}, 4), 12565);
    EXPECT_EQ(shardElements({50257, 768}, 4), 12565 * 768);
    // A bias of one element costs every rank one.
    EXPECT_EQ(shardElements({1}, 8), 1);
    EXPECT_EQ(shardElements({}, 8), 1);
    // 3 rows of 1000 over 8 ranks: one row each, 8000 elements gathered instead of 3000.
    EXPECT_EQ(8 * shardElements({3, 1000}, 8), 8000);
}

TEST(DivideFactors, ThePowerOfTwoNextToTheRootOfTheRanksComesFirst) {
    const auto check = [](std::int64_t ranks, double before, double after) {
        EXPECT_EQ(divideFactors(ranks).before, before) << ranks;
        EXPECT_EQ(divideFactors(ranks).after, after) << ranks;
    };
    check(2, 2, 1);
    check(4, 2, 2);
    check(8, 4, 2);
    check(64, 8, 8);
    check(3, 2, 1.5);
    check(1, 1, 1);
}

TEST(FsdpUnits, EachBlockIsAUnitAndTheRestIsTheRoots) {
    for (const char* name : {"fsdp1", "fsdp2"}) {
        const Schedule schedule = validScheduleOf(smallLlama("{'name':'" + std::string(name) + "'}", 4));
        // 49,280 per block and 128,064 in the root divide by 4 (and by 8 elements, 16 bytes of bf16): nothing is padded.
        EXPECT_THAT(unitElements(schedule), ElementsAre(std::pair{0, kSmallRest}, std::pair{1, kSmallBlock}, std::pair{2, kSmallBlock}, std::pair{3, kSmallBlock})) << name;
    }
}

TEST(FsdpUnits, WrapNoneMakesOneUnitThatIsGatheredOnce) {
    for (const char* name : {"fsdp1", "fsdp2"}) {
        const Schedule schedule = validScheduleOf(smallLlama("{'name':'" + std::string(name) + "','wrap':'none'}", 4));
        EXPECT_THAT(unitElements(schedule), ElementsAre(std::pair{0, kSmallParameters})) << name;
        EXPECT_EQ(countTasks(schedule, TaskRole::Unshard), 1) << "the root is not resharded after forward";
    }
}

TEST(FsdpUnits, NamedLayersAreUnits) {
    const Schedule schedule = validScheduleOf(smallLlama("{'name':'fsdp2','wrap_layers':['layers.1','head']}", 4));
    // The root keeps the embedding (64,000) and two blocks; layers.1 comes before the head (64,064 with its norm).
    EXPECT_THAT(unitElements(schedule), ElementsAre(std::pair{0, 64'000 + 2 * kSmallBlock}, std::pair{1, kSmallBlock}, std::pair{2, std::int64_t{64'064}}));
}

TEST(FsdpUnits, WrapBySizeTakesTheInnermostModulesThatAreLargeEnough) {
    // From 20,000 elements on: the feed-forward (36,864; its matrices have 12,288 each) is a unit, the attention (12,288) is not, and what
    // is left of the block (12,416) is not either and goes to the root. Embedding and head (64,000) are units.
    const auto elements = unitElements(validScheduleOf(smallLlama("{'name':'fsdp1','wrap':'size','min_wrap_elements':20000}", 4)));
    EXPECT_EQ(elements.size(), 6U);
    EXPECT_EQ(elements.at(0), 3 * 12'416 + 64);
    EXPECT_EQ(elements.at(1), 64'000);
    for (const int block : {2, 3, 4}) EXPECT_EQ(elements.at(block), 3 * 12'288);
    EXPECT_EQ(elements.at(5), 64'000);
    // From 10,000 on each matrix of the feed-forward is one, the attention's four (12,288 together) are one, and only norms are left.
    const auto fine = unitElements(validScheduleOf(smallLlama("{'name':'fsdp1','wrap':'size','min_wrap_elements':10000}", 4)));
    EXPECT_EQ(fine.size(), 1U + 1 + 3 * 4 + 1);
    EXPECT_EQ(fine.at(0), 3 * 128 + 64);
    // From 40,000 on the block is one (49,280), though neither of its halves is.
    EXPECT_EQ(unitElements(validScheduleOf(smallLlama("{'name':'fsdp1','wrap':'size','min_wrap_elements':40000}", 4))).at(2), kSmallBlock);
}

TEST(FsdpUnits, BySizeLlamasFeedForwardsAreUnitsAndItsAttentionsTheRoots) {
    const auto elements = unitElements(scheduleOf("{'model':'llama-3.1-8b','device':'h100-sxm','devices':8,'training':{'seq_len':128,'precision':'bf16-master'},"
                                                  "'strategy':{'name':'fsdp1','wrap':'size'}}"));
    // 3·4096·14336 = 176,160,768 ≥ 1e8; the attention's 41,943,040 and the norms' 8,192 are left over, 32 times, and the last norm.
    EXPECT_EQ(elements.size(), 1U + 32 + 2);
    EXPECT_EQ(elements.at(0), 32 * (41'943'040 + 8'192) + 4'096);
    EXPECT_EQ(elements.at(2), 176'160'768);
}

TEST(FsdpUnits, UnitsInsideACheckpointedBlockAreGatheredOnceMore) {
    // A unit around a block: forward and backward. Units inside it: forward, the second forward, backward.
    const std::string full = ",'recompute':'full'";
    EXPECT_EQ(countTasks(validScheduleOf(smallLlama("{'name':'fsdp1'}", 4, full)), TaskRole::Unshard), 1 + 2 * 3);
    const Schedule inner = validScheduleOf(smallLlama("{'name':'fsdp1','wrap':'size','min_wrap_elements':30000,'backward_prefetch':'none'}", 4, full));
    // Root, embedding and head twice each but the root, which stays; the three feed-forwards three times.
    EXPECT_EQ(countTasks(inner, TaskRole::Unshard), 1 + 2 * 2 + 3 * 3);
}

TEST(FsdpUnits, BatchNormIsAUnitOfItsOwnInFp32UnderFsdp1sMixedPrecision) {
    const std::string resnet = "{'model':'resnet-18','device':'a100-80gb-sxm','devices':4,'training':{'precision':'bf16-master'},'strategy':{'name':'fsdp1'}}";
    const Schedule schedule = validScheduleOf(resnet);
    std::int64_t fp32 = 0, count = 0;
    std::set<int> seen;
    for (const TaskId t : tasksWith(schedule, TaskRole::Unshard)) {
        const Task& task = schedule.programs.front().tasks[t];
        const CollectiveWork& work = schedule.collectives[task.work];
        if (work.dtype != DType::Fp32 || !seen.insert(task.part).second) continue;
        fp32 += work.elements;
        ++count;
    }
    // ResNet-18 has 20 batch norms over 4800 channels, weight and bias each.
    EXPECT_EQ(count, 20);
    EXPECT_EQ(fp32, 2 * 4800);
    // Without mixed precision there is no reason to.
    Scenario plain = scenarioOf(resnet);
    plain.training.precision = *precisionByName("fp32");
    EXPECT_LT(unitElements(scheduleOf(plain)).size(), 15U);
}

TEST(FsdpUnits, WhatCannotBeWrappedIsRefused) {
    EXPECT_THAT(wrongBy(smallLlama("{'name':'fsdp2','wrap_layers':['layers.7']}", 4)), AllOf(HasSubstr("strategy.wrap_layers"), HasSubstr("layers.")));
    EXPECT_THAT(wrongBy(smallLlama("{'name':'fsdp2','wrap':'layers'}", 4)), HasSubstr("give wrap_layers"));
    EXPECT_THAT(wrongBy(smallLlama("{'name':'fsdp2','wrap':'size','wrap_layers':['layers.0']}", 4)), HasSubstr("leave one of them out"));
    // GPT-2's head is tied to its embedding.
    EXPECT_THAT(wrongBy("{'model':'gpt2','device':'a100-80gb-sxm','devices':4,'strategy':{'name':'fsdp2','wrap_layers':['embedding']}}"), HasSubstr("leave both in the root"));
}

TEST(ShardGroups, MustDivideTheRanks) {
    EXPECT_THAT(wrongBy(smallLlama("{'name':'hsdp','shard_group':3}", 4)), AllOf(HasSubstr("strategy.shard_group"), HasSubstr("4 ranks cannot be cut into groups of 3")));
    EXPECT_THAT(wrongBy(smallLlama("{'name':'hsdp','shard_group':1}", 4)), HasSubstr("shard nothing"));
    EXPECT_THAT(wrongBy(smallLlama("{'name':'fsdp1','sharding_strategy':'hybrid_shard','shard_group':8}", 4)), HasSubstr("strategy.shard_group"));
}

}  // namespace
}  // namespace ringside::testing
