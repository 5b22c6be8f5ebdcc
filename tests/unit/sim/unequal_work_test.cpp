// Ranks that differ: micro-steps that repeat, unequal batches, stragglers, jitter, pauses, and an input pipeline that starves.
#include <cmath>
#include <numeric>

#include <gmock/gmock.h>

#include "sim/player/fold_ranks.h"
#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside {
namespace {

using namespace testing;
using ::testing::HasSubstr;

Scenario ddp(int devices, const std::string& more, const std::string& training = "", const std::string& model = "gpt2") {
    return scenarioOf(fmt::format("{{'model': '{}', 'device': 'a100-80gb-sxm', 'devices': {}, 'training': {{'micro_batch': 8{}}}{}}}", model, devices, training, more));
}

double played(const Scenario& scenario, int mostMicroSteps) {
    const Schedule schedule = *writeSchedule(scenario, mostMicroSteps);
    const Prices prices = *priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
    return play(schedule, prices)->stepTime.seconds();
}

TEST(SteadyMicroStep, StandsForManyWithTheSameResult) {
    for (const char* strategy : {"", ", 'strategy': {'name': 'naive', 'no_sync': false}", ", 'strategy': 'picotron'", ", 'strategy': {'name': 'ddp', 'pp': 4}"}) {
        const Scenario scenario = ddp(8, strategy, ", 'grad_accum': 40");
        const Prediction folded = predictionOf(scenario);
        EXPECT_NEAR(folded.stepSeconds, played(scenario, 0), 1e-4 * folded.stepSeconds) << strategy;
        EXPECT_GT(folded.schedule->steady.times, 1) << strategy;
    }
}

TEST(SteadyMicroStep, TasksAndBytesDoNotGrowWithAccumulation) {
    const Prediction few = predictionOf(ddp(8, "", ", 'grad_accum': 16")), many = predictionOf(ddp(8, "", ", 'grad_accum': 1024"));
    EXPECT_EQ(few.schedule->programs[0].tasks.size(), many.schedule->programs[0].tasks.size());
    EXPECT_EQ(few.bytesSentPerRank, many.bytesSentPerRank);  // reduced once
    const auto eachTime = [](int n) { return predictionOf(ddp(8, ", 'strategy': {'name': 'ddp', 'no_sync': false}", fmt::format(", 'grad_accum': {}", n))).bytesSentPerRank; };
    EXPECT_EQ(eachTime(64), 64 * eachTime(1));
}

TEST(SteadyMicroStep, TheBreakdownAndThePathStillAddUpToTheStep) {
    const Prediction p = predictionOf(ddp(8, "", ", 'grad_accum': 100"));
    const Breakdown& b = p.breakdown;
    EXPECT_NEAR((b.compute + b.optimizer + b.communicationExposed + b.host + b.idle).seconds(), p.stepSeconds, 1e-9);
    double path = 0;
    for (const auto& [kind, seconds] : p.pathSeconds) path += seconds;
    EXPECT_NEAR(path, p.stepSeconds, 1e-6 * p.stepSeconds);
}

TEST(UnequalBatches, GetProgramsAndWeightsOfTheirOwn) {
    const Scenario scenario = ddp(4, "", ", 'rank_batches': [4, 4, 8, 16]");
    EXPECT_EQ(scenario.globalBatch(), 32);
    const Schedule schedule = scheduleOf(scenario);
    EXPECT_TRUE(validateSchedule(schedule));
    ASSERT_EQ(schedule.programs.size(), 3U);
    // Mean batch 8: weights 0.5, 1 and 2, so that the plain mean of weighted gradients is the mean over samples.
    double sum = 0;
    for (const RankClass& rankClass : schedule.classes) sum += rankClass.weight * static_cast<double>(rankClass.ranks.count);
    EXPECT_DOUBLE_EQ(sum, 4);
    EXPECT_DOUBLE_EQ(schedule.classes.front().weight, 0.5);
    EXPECT_DOUBLE_EQ(schedule.classes.back().weight, 2);
}

TEST(UnequalBatches, TheLargestShardSetsThePace) {
    const double uneven = predictionOf(ddp(4, "", ", 'rank_batches': [4, 4, 8, 16]")).stepSeconds;
    const double sixteen = predictionOf(ddp(4, "", ", 'rank_batches': [16, 16, 16, 16]")).stepSeconds, eight = predictionOf(ddp(4, "")).stepSeconds;
    EXPECT_GT(uneven, 1.3 * eight);
    EXPECT_NEAR(uneven, sixteen, 0.05 * sixteen);
}

TEST(UnequalBatches, BalancingByDeviceSpeedBeatsEqualSharesOnMixedDevices) {
    const std::string text = "{{'model': 'bert-large', 'cluster': 'mixed-a100-h100', 'training': {{'micro_batch': 32, 'seq_len': 512, 'batch_split': '{}'}}}}";
    const Scenario equal = scenarioOf(fmt::format(fmt::runtime(text), "equal")), balanced = scenarioOf(fmt::format(fmt::runtime(text), "balanced"));
    EXPECT_EQ(equal.globalBatch(), balanced.globalBatch());
    EXPECT_LT(predictionOf(balanced).stepSeconds, 0.9 * predictionOf(equal).stepSeconds);
}

TEST(UnequalBatches, AreRefusedWithTheWrongNumberOfRanks) {
    EXPECT_THAT(refusal("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 4, 'training': {'rank_batches': [1, 2]}}"), HasSubstr("expected one for each of the 4 data-parallel ranks"));
    EXPECT_THAT(refusal("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 2, 'training': {'rank_batches': [1, 2], 'global_batch': 4}}"), HasSubstr("is not 3, the sum of rank_batches"));
}

TEST(UnequalBatches, ComeBackFromTheirOwnResult) {
    const Scenario scenario = ddp(4, "", ", 'grad_accum': 2, 'rank_batches': [4, 4, 8, 16]");
    const Scenario again = scenarioOfJson(toJson(scenario));
    EXPECT_EQ(again.training, scenario.training);
    EXPECT_EQ(again.globalBatch(), 64);
}

TEST(Straggler, ASlowDeviceSlowsEveryoneByItsOwnExcess) {
    // One of 8 devices takes twice as long for every kernel: compute-bound DDP takes nearly twice as long.
    const Prediction even = predictionOf(ddp(8, "")), slow = predictionOf(ddp(8, ", 'perturbation': {'stragglers': [{'rank': 3, 'compute': 2}]}"));
    EXPECT_GT(slow.stepSeconds, 1.7 * even.stepSeconds);
    EXPECT_LT(slow.stepSeconds, 2.01 * even.stepSeconds);
    EXPECT_EQ(slow.schedule->classes.size(), 3U);  // before it, itself, after it
}

TEST(Straggler, SplittingAClassGivesWhatUnfoldingGives) {
    const Scenario scenario = ddp(8, ", 'perturbation': {'stragglers': [{'rank': 3, 'compute': 1.3, 'link': 2}]}");
    const Prediction split = predictionOf(scenario);
    EXPECT_EQ(play(unfoldRanks(*split.schedule), split.prices)->stepTime, split.timeline.stepTime);
}

TEST(Straggler, ASlowLinkStretchesTransfersOnly) {
    const Prediction even = predictionOf(ddp(8, "")), slow = predictionOf(ddp(8, ", 'perturbation': {'stragglers': [{'rank': 0, 'link': 50}]}"));
    EXPECT_GT(slow.stepSeconds, even.stepSeconds);
    EXPECT_EQ(slow.breakdown.optimizer, even.breakdown.optimizer);
}

TEST(Jitter, HasTheMeanAndSpreadThatWereAskedFor) {
    // 100,000 draws: the mean is 1 within 4σ/√n = 0.0013, the deviation 0.1 within one per cent.
    Perturbation perturbation;
    perturbation.jitter = 0.1;
    const RankDraws draws(perturbation, 0, 5, 100'000);
    double sum = 0, squares = 0;
    for (std::uint32_t t = 0; t < 100'000; ++t) {
        const double f = draws.factor(t);
        sum += f;
        squares += (f - 1) * (f - 1);
    }
    EXPECT_NEAR(sum / 1e5, 1, 0.0013);
    EXPECT_NEAR(std::sqrt(squares / 1e5), 0.1, 0.001);
}

TEST(Jitter, CostsTheMostOfTheRanksAndIsTheSameForTheSameSeed) {
    const std::string jitter = ", 'perturbation': {'jitter': 0.2, 'samples': 5, 'seed': 7}";
    const Prediction one = predictionOf(ddp(8, jitter)), again = predictionOf(ddp(8, jitter));
    ASSERT_TRUE(one.distribution);
    EXPECT_EQ(one.distribution->seconds, again.distribution->seconds);
    EXPECT_EQ(one.distribution->seconds.size(), 5U);
    EXPECT_GT(one.distribution->least, one.distribution->undisturbed);  // a maximum over ranks is above the mean
    const Prediction other = predictionOf(ddp(8, ", 'perturbation': {'jitter': 0.2, 'samples': 5, 'seed': 8}"));
    EXPECT_NE(one.distribution->seconds, other.distribution->seconds);
}

TEST(Jitter, HurtsMoreWhereEveryGradientIsWaitedFor) {
    // DDP waits once at the end: its ranks' jitter averages out over the step. Naive waits at every tensor: a sum of maxima.
    const auto penalty = [](const char* strategy) {
        const Prediction p = predictionOf(ddp(16, fmt::format(", 'strategy': '{}', 'perturbation': {{'jitter': 0.3, 'samples': 3}}", strategy)));
        return p.distribution->mean / p.distribution->undisturbed;
    };
    EXPECT_GT(penalty("naive") - 1, 1.5 * (penalty("ddp") - 1));
}

TEST(Pauses, AreHeavyTailedAndRare) {
    // P(length > 10·shortest) = 10^−1.5 = 3.2 % of the pauses; a tenth of the ranks pause.
    Perturbation perturbation;
    perturbation.pauseProbability = 0.1;
    perturbation.pauseMs = 10;
    int paused = 0, longOnes = 0;
    for (int rank = 0; rank < 100'000; ++rank) {
        const RankDraws draws(perturbation, 0, rank, 1000);
        if (draws.pause() == Time()) continue;
        ++paused;
        longOnes += draws.pause() > Time::fromMicroseconds(100e3);
        EXPECT_GE(draws.pause(), Time::fromMicroseconds(10e3));
    }
    EXPECT_NEAR(paused, 10'000, 400);
    EXPECT_NEAR(static_cast<double>(longOnes) / paused, 0.0316, 0.007);
}

TEST(InputPipeline, StarvesTheDeviceWhereItIsSlowerThanTheStep) {
    // 8 samples of 500 ms over 4 loaders: a batch every second, which is far more than the step.
    const Prediction fed = predictionOf(ddp(2, "")), starved = predictionOf(ddp(2, "", ", 'input_ms_per_sample': 500, 'input_workers': 4"));
    EXPECT_NEAR(starved.stepSeconds, 1.0, 0.02);
    EXPECT_GT(starved.breakdown.host.seconds(), 0.5);
    // A loader that keeps up costs nothing.
    EXPECT_NEAR(predictionOf(ddp(2, "", ", 'input_ms_per_sample': 0.1")).stepSeconds, fed.stepSeconds, 1e-4 * fed.stepSeconds);
}

TEST(InputPipeline, LoadsEveryMicroBatch) {
    // Two micro-steps of 8 samples at 100 ms over 4 workers: 2 · 0.2 s.
    EXPECT_NEAR(predictionOf(ddp(1, "", ", 'grad_accum': 2, 'input_ms_per_sample': 100")).stepSeconds, 0.4, 0.02);
}

TEST(Perturbation, IsRefusedWhereItMeansNothing) {
    EXPECT_THAT(refusal("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 2, 'perturbation': {'samples': 5}}"), HasSubstr("nothing is random"));
    EXPECT_THAT(refusal("{'model': 'gpt2', 'device': 'a100-80gb-sxm', 'devices': 2, 'perturbation': {'stragglers': [{'rank': 2}]}}"), HasSubstr("perturbation.stragglers"));
}

}  // namespace
}  // namespace ringside
