// The plan end to end: its winners are those of an exhaustive grid, its losers say why.
#include "sim/study/plan.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/study/money.h"
#include "sim/study/pareto.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using ::testing::HasSubstr;

/// Four layers on devices cut to 7 GB: large micro-batches do not fit without recompute, some not with it.
Json smallBase() {
    return {{"model", {{"model_type", "gpt2"}, {"n_layer", 4}, {"n_head", 12}, {"n_embd", 768}, {"vocab_size", 50257}, {"n_positions", 1024}}},
            {"device", {{"memory_gb", 7}}}};
}

PlanQuery queryOf(const Json& base, const std::vector<std::string>& hardware, const CountRequest& counts) {
    PlanQuery query;
    query.base = base;
    query.source = "test.json";
    for (const std::string& name : hardware) {
        Result<HardwareOption> option = hardwareOption(name, counts, base, testing::catalogs());
        if (!option) throw std::runtime_error(option.error().toString());
        query.hardware.push_back(*option);
    }
    query.prices = *PriceCatalog::builtin();
    return query;
}

/// Nothing fails and checkpoints are free, so that steps and rent alone decide.
PlanQuery smallQuery() {
    PlanQuery query = queryOf(smallBase(), {"a100-40gb-sxm", "l4"}, {{1, 2, 4}, 0});
    query.globalBatch = 16;
    query.tokens = 1e9;
    query.failures.deviceMtbfHours = 1e12;
    query.checkpoint.seconds = 0;
    return query;
}

Plan planOf(const PlanQuery& query) {
    Result<Plan> plan = makePlan(query, testing::catalogs());
    if (!plan) throw std::runtime_error(plan.error().toString());
    return std::move(*plan);
}

struct GridPoint {
    std::string device, strategy;
    int devices = 0;
    double step = 0, usd = 0;
};

/// Every strategy, bucket, recompute and power-of-two micro-batch, no pruning.
std::vector<GridPoint> exhaustiveGrid(const PlanQuery& query, int& outOfMemory) {
    std::vector<GridPoint> grid;
    for (const char* device : {"a100-40gb-sxm", "l4"})
        for (const int devices : {1, 2, 4})
            for (const Json& strategy : {Json{{"name", "single"}}, Json{{"name", "naive"}}, Json{{"name", "ddp"}, {"gradient_as_bucket_view", true}},
                                         Json{{"name", "ddp"}, {"gradient_as_bucket_view", true}, {"bucket_mb", 100}}, Json{{"name", "picotron"}},
                                         Json{{"name", "picotron"}, {"bucket_mb", 100}}}) {
                if ((strategy["name"] == "single") != (devices == 1)) continue;
                for (const char* recompute : {"none", "selective", "full"})
                    for (int micro = 1; micro * devices <= 16; micro *= 2) {
                        Json document = smallBase();
                        document["device"]["name"] = device;
                        document["devices"] = devices;
                        document["strategy"] = strategy;
                        document["training"] = {{"micro_batch", micro}, {"grad_accum", 16 / (micro * devices)}, {"recompute", recompute}};
                        const Scenario scenario = testing::scenarioOfJson(document);
                        const Prediction prediction = testing::predictionOf(scenario);
                        if (prediction.verdict == MemoryVerdict::OutOfMemory) {
                            ++outOfMemory;
                            continue;
                        }
                        grid.push_back({device, strategy["name"], devices, prediction.stepSeconds,
                                        usdFor(*clusterUsdPerHour(scenario.cluster, query.prices, query.commitment), prediction.stepSeconds)});
                    }
            }
    return grid;
}

TEST(Plan, ItsWinnersAreThoseOfAnExhaustiveGridOfTheSameChoices) {
    PlanQuery query = smallQuery();
    query.strategies = {"single", "naive", "ddp", "picotron"};
    const Plan plan = planOf(query);
    int outOfMemory = 0;
    const std::vector<GridPoint> grid = exhaustiveGrid(query, outOfMemory);
    EXPECT_GT(outOfMemory, 10) << "the grid must press against the memory, or pruning is not tested";
    EXPECT_LT(plan.evaluated, static_cast<std::int64_t>(grid.size()) + outOfMemory) << "the search should try less than everything";

    const auto fastest = std::min_element(grid.begin(), grid.end(), [](const GridPoint& a, const GridPoint& b) { return a.step < b.step; });
    const auto cheapest = std::min_element(grid.begin(), grid.end(), [](const GridPoint& a, const GridPoint& b) { return a.usd < b.usd; });
    ASSERT_TRUE(plan.found());
    EXPECT_NEAR(plan.fastest().stepSeconds, fastest->step, 1e-9 * fastest->step);
    EXPECT_EQ(plan.fastest().hardware, fastest->device);
    EXPECT_EQ(plan.fastest().devices, fastest->devices);
    EXPECT_NEAR(plan.cheapest().usdPerStep, cheapest->usd, 1e-9 * cheapest->usd);
    EXPECT_EQ(plan.cheapest().hardware, cheapest->device);
    EXPECT_EQ(plan.cheapest().devices, cheapest->devices);

    // Also the best of every group: hardware, count, strategy.
    std::map<std::tuple<std::string, std::int64_t, std::string>, double> best;
    for (const GridPoint& p : grid) {
        const auto [at, fresh] = best.try_emplace({p.device, p.devices, p.strategy}, p.step);
        if (!fresh) at->second = std::min(at->second, p.step);
    }
    std::size_t compared = 0;
    const auto compare = [&](const Candidate& c) {
        EXPECT_NEAR(c.stepSeconds, best.at({c.hardware, c.devices, c.strategy}), 1e-4 * c.stepSeconds) << labelOf(c);
        ++compared;
    };
    for (const Candidate& c : plan.pareto) compare(c);
    for (const Rejection& r : plan.rejected)
        if (r.candidate) compare(*r.candidate);
    EXPECT_EQ(compared, best.size());
}

TEST(Plan, ItsFrontHoldsWhatNoOtherCandidateDominates) {
    const Plan plan = planOf(smallQuery());
    std::vector<Candidate> all = plan.pareto;
    for (const Rejection& r : plan.rejected)
        if (r.candidate) all.push_back(*r.candidate);
    for (const Candidate& c : plan.pareto)
        for (const Candidate& other : all)
            EXPECT_FALSE(dominates({other.secondsPerSample, other.usdPerSample}, {c.secondsPerSample, c.usdPerSample})) << labelOf(other) << " beats " << labelOf(c);
    for (const Rejection& r : plan.rejected) EXPECT_NE(r.reason, "") << r.strategy;
}

TEST(Plan, MoneyTimeAndEnergyFollowFromTheStep) {
    PlanQuery query = smallQuery();
    query.prices.set("a100-40gb-sxm", 2, "test");
    query.energy.gramsCo2PerKwh = 400;
    query.failures.deviceMtbfHours = 1000;
    query.checkpoint.seconds = 30;
    const Plan plan = planOf(query);
    const auto found = std::find_if(plan.pareto.begin(), plan.pareto.end(), [](const Candidate& c) { return c.hardware == "a100-40gb-sxm" && c.devices == 4; });
    ASSERT_NE(found, plan.pareto.end());
    const Candidate& c = *found;
    // 4 × 2 USD an hour; 1e9 tokens are 1e9 / (16 · 1,024) = 61,035 steps, each lasting step / goodput of wall-clock.
    EXPECT_DOUBLE_EQ(c.usdPerHour, 8);
    EXPECT_DOUBLE_EQ(c.usdPerStep, 8 * c.stepSeconds / 3600);
    const double steps = 1e9 / (16 * 1024), hours = steps * c.stepSeconds / c.goodput.goodput / 3600;
    EXPECT_NEAR(*c.days, hours / 24, 1e-9 * hours);
    EXPECT_NEAR(*c.totalUsd, 8 * hours, 1e-9 * 8 * hours);
    EXPECT_NEAR(*c.totalKwh, *c.powerW / 1000 * hours, 1e-9 * *c.totalKwh);
    EXPECT_NEAR(*c.totalCo2Kg, *c.totalKwh * 0.4, 1e-9 * *c.totalKwh);
    // 400 W each, idle to busy, half as much for the node, a fifth more for the facility: 4 · (40 … 400 + 200) · 1.2.
    EXPECT_GT(*c.powerW, 4 * 240 * 1.2);
    EXPECT_LE(*c.powerW, 4 * 600 * 1.2);
    // A job of 4 devices fails every 250 h; Daly: √(2 · 30 · 900,000) · (1 + …) − 30 ≈ 7,328 s.
    EXPECT_DOUBLE_EQ(c.goodput.mtbfSeconds, 900'000);
    EXPECT_NEAR(c.goodput.intervalSeconds, 7328, 1);
    EXPECT_LT(c.goodput.goodput, 1);
}

TEST(Plan, DearHardwareIsNotCheapestEvenIfItIsFastest) {
    PlanQuery query = smallQuery();
    query.prices.set("a100-40gb-sxm", 1000, "test");
    EXPECT_EQ(planOf(query).cheapest().hardware, "l4");
    EXPECT_EQ(planOf(query).fastest().hardware, "a100-40gb-sxm");
    query.prices.set("a100-40gb-sxm", 0.001, "test");
    EXPECT_EQ(planOf(query).cheapest().hardware, "a100-40gb-sxm");
}

TEST(Plan, IsTheSameEveryTime) {
    const PlanQuery query = smallQuery();
    EXPECT_EQ(toJson(query, planOf(query)).dump(), toJson(query, planOf(query)).dump());
}

TEST(Plan, WhatMissesTheDeadlineSaysByHowMuch) {
    PlanQuery query = smallQuery();
    const double best = *planOf(query).fastest().days;
    query.deadlineDays = best * 1.01;
    const Plan tight = planOf(query);
    ASSERT_TRUE(tight.found());
    EXPECT_LE(*tight.cheapest().days, best * 1.01) << "the cheapest must meet the deadline too";
    EXPECT_TRUE(std::any_of(tight.rejected.begin(), tight.rejected.end(), [](const Rejection& r) { return r.reason.find("misses the deadline by") == 0; }));

    query.deadlineDays = best / 2;
    const Plan impossible = planOf(query);
    EXPECT_FALSE(impossible.found());
    ASSERT_TRUE(impossible.nearestMiss);
    EXPECT_NEAR(*impossible.nearestMiss->days, best, 1e-9 * best) << "the nearest miss is the fastest";
    const Json json = toJson(query, impossible);
    EXPECT_TRUE(json["fastest"].is_null());
    EXPECT_FALSE(json["goal"]["met"].get<bool>());
    EXPECT_FALSE(json["nearest_miss"].is_null());
}

TEST(Plan, ATargetRateIsAGoalToo) {
    PlanQuery query = smallQuery();
    query.tokens.reset();
    const double most = planOf(query).fastest().tokensPerSecond;
    query.tokensPerSecond = most * 0.99;
    const Plan plan = planOf(query);
    for (const Candidate& c : plan.pareto) EXPECT_GE(c.tokensPerSecond, most * 0.99);
    EXPECT_FALSE(plan.fastest().days) << "no amount of work, no days";
    query.tokensPerSecond = most * 2;
    EXPECT_FALSE(planOf(query).found());
}

TEST(Plan, WhatDoesNotFitNamesTheTensorAndTheBytesLacking) {
    Json base = {{"model", "llama-3-8b"}, {"training", {{"seq_len", 2048}}}};
    base["strategy"] = {{"tp", 1}, {"pp", 1}};  // not cut, which would make it fit
    PlanQuery query = queryOf(base, {"l4"}, {{1, 8}, 0});
    query.strategies = {"single", "ddp"};
    const Plan plan = planOf(query);
    EXPECT_FALSE(plan.found());
    EXPECT_FALSE(plan.nearestMiss);
    ASSERT_EQ(plan.rejected.size(), 2U);
    for (const Rejection& r : plan.rejected) {
        EXPECT_EQ(r.why, Rejection::Why::OutOfMemory);
        EXPECT_THAT(r.reason, HasSubstr("out of memory with micro-batch 1 and full recompute"));
        EXPECT_THAT(r.reason, HasSubstr("weight"));
        // 8.03 B parameters in fp32 with gradients and two moments are 16 bytes each: 120 GiB, of which 24 are there.
        EXPECT_GT(r.lackingBytes, 90 * kGiB);
        EXPECT_LT(r.lackingBytes, 200 * kGiB);
    }
    // One prediction settles that a setting cannot fit: single has one setting, ddp two buckets.
    EXPECT_EQ(plan.evaluated, 3);
}

TEST(Plan, ModelsThatDoNotFitWholeAreCutWhereTheStrategyCan) {
    Json base = {{"model", "llama-3-8b"}, {"training", {{"seq_len", 2048}, {"precision", "bf16"}}}};
    PlanQuery query = queryOf(base, {"l4"}, {{8}, 0});
    query.strategies = {"ddp"};
    const Plan plan = planOf(query);
    ASSERT_TRUE(plan.found());
    const Json& knobs = plan.fastest().knobs;
    EXPECT_GT(knobs.value("tp", 1) * knobs.value("pp", 1), 1) << knobs.dump();
}

TEST(Plan, CountsManyMicroStepsAsThePredictionOfItsScenarioDoes) {
    PlanQuery query = queryOf(smallBase(), {"a100-40gb-sxm"}, {{1}, 0});
    query.globalBatch = 128;
    const Plan plan = planOf(query);
    ASSERT_TRUE(plan.found());
    const Candidate& c = plan.fastest();
    ASSERT_GT(c.gradAccum, 4);
    EXPECT_EQ(c.microBatch * c.gradAccum, 128);
    EXPECT_NEAR(testing::predictionOf(testing::scenarioOfJson(c.scenario)).stepSeconds, c.stepSeconds, 1e-12) << "the scenario it gives is the one it counted";
}

TEST(Plan, WhatTheScenarioFixesIsNotSearched) {
    PlanQuery query = smallQuery();
    query.base["training"] = {{"recompute", "full"}, {"micro_batch", 2}};
    query.base["strategy"] = {{"bucket_mb", 7}};
    query.strategies = {"ddp"};
    const Plan plan = planOf(query);
    std::vector<Candidate> all = plan.pareto;
    for (const Rejection& r : plan.rejected)
        if (r.candidate) all.push_back(*r.candidate);
    ASSERT_FALSE(all.empty());
    for (const Candidate& c : all) {
        EXPECT_EQ(c.recompute, Recompute::Full);
        EXPECT_EQ(c.microBatch, 2);
        EXPECT_EQ(c.knobs["bucket_mb"], 7);
    }
}

TEST(Plan, EveryCandidateTrainsTheSameBatch) {
    const Plan plan = planOf(smallQuery());
    for (const Candidate& c : plan.pareto) EXPECT_EQ(c.microBatch * c.gradAccum * c.devices, 16) << labelOf(c);
}

TEST(Plan, ABatchThatDoesNotSplitIsARejectionThatSaysSo) {
    PlanQuery query = smallQuery();
    query.base["strategy"] = {{"tp", 1}, {"pp", 1}};
    query.globalBatch = 6;
    const Plan plan = planOf(query);
    const auto four = std::find_if(plan.rejected.begin(), plan.rejected.end(), [](const Rejection& r) { return r.devices == 4; });
    ASSERT_NE(four, plan.rejected.end());
    EXPECT_THAT(four->reason, HasSubstr("do not split evenly over 4 ranks"));
    EXPECT_TRUE(plan.found()) << "1 and 2 devices can";
}

TEST(Plan, RefusesQuestionsThatHaveNoAnswer) {
    const auto refusal = [](PlanQuery query) {
        const Result<Plan> plan = makePlan(query, testing::catalogs());
        return plan ? std::string("accepted") : plan.error().toString();
    };
    PlanQuery query = smallQuery();
    query.tokens.reset();
    query.deadlineDays = 3;
    EXPECT_THAT(refusal(query), HasSubstr("needs an amount of work"));
    query = smallQuery();
    query.samples = 10;
    EXPECT_THAT(refusal(query), HasSubstr("one of --tokens, --samples and --steps"));
    query = smallQuery();
    query.base["strategy"] = {{"bucket_nb", 3}};
    EXPECT_THAT(refusal(query), HasSubstr("bucket_nb"));
    query = smallQuery();
    query.strategies = {"ddpp"};
    EXPECT_THAT(refusal(query), HasSubstr("did you mean 'ddp'"));
    query = queryOf({{"model", "resnet-50"}}, {"v100-sxm"}, {{8}, 0});
    query.tokens = 1e9;
    EXPECT_THAT(refusal(query), HasSubstr("reads no tokens"));
    query = queryOf(smallBase(), {"mi250x"}, {{8}, 0});
    EXPECT_THAT(refusal(query), HasSubstr("--price mi250x=USD"));
    query = smallQuery();
    query.hardware.clear();
    EXPECT_THAT(refusal(query), HasSubstr("no hardware"));
}

}  // namespace
}  // namespace ringside
