// Local SGD, DiLoCo and EASGD; docs/models/local-sgd.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMlpParameters = 25'175'040;

std::string mlp(const std::string& strategy, int devices = 4, const std::string& training = "'micro_batch':64,'optimizer':'adamw-fused'", const std::string& more = "") {
    return "{'model':'mlp','device':'a100-80gb-sxm','devices':" + std::to_string(devices) + (devices > 8 ? ",'devices_per_node':8" : "") + ",'training':{" + training + "},'strategy':" + strategy +
           more + "}";
}

TEST(LocalSgd, AveragesTheParametersOncePerPeriod) {
    for (const char* strategy : {"local-sgd", "diloco", "easgd"})
        for (const int devices : {2, 4, 16}) {
            const Schedule schedule = scheduleOf(mlp("{'name':'" + std::string(strategy) + "','period':7}", devices));
            // 2(N−1)/N·Ψ·4 B in the step that averages, nothing in the others.
            EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[0]), 2 * (devices - 1) * (4 * kMlpParameters / devices)) << strategy << " on " << devices;
            EXPECT_EQ(schedule.period, 7);
            for (const Task& task : schedule.programs.front().tasks)
                EXPECT_TRUE(task.periodic || task.kind != TaskKind::Collective);
        }
}

TEST(LocalSgd, AStepIsTheMeanOverARound) {
    for (const char* strategy : {"local-sgd", "diloco", "easgd"}) {
        const Prediction p = predictionOf(mlp("{'name':'" + std::string(strategy) + "','period':5}"));
        ASSERT_TRUE(p.round);
        EXPECT_EQ(p.round->period, 5);
        EXPECT_GT(p.round->averagingSeconds, p.round->localSeconds);
        EXPECT_NEAR(p.stepSeconds, (4 * p.round->localSeconds + p.round->averagingSeconds) / 5, 1e-12) << strategy;
        EXPECT_EQ(p.bytesSentPerRank, (6 * kMlpParameters + 4) / 5) << "2·3/4·4Ψ in one of five steps";
        double path = 0;
        for (const auto& [kind, seconds] : p.pathSeconds) path += seconds;
        EXPECT_NEAR(path, p.stepSeconds, 1e-9);
    }
}

TEST(LocalSgd, ALocalStepIsThatOfOneDeviceAmongEquals) {
    const auto local = [](const char* strategy, const char* more) { return predictionOf(mlp(strategy, 4, "'micro_batch':64,'optimizer':'adamw-fused'", more)).round->localSeconds; };
    // Averaging is idle time for products, so a step of a round runs at a hair's breadth more clock: at full clock here.
    const double alone = predictionOf(mlp("'single'", 1, "'micro_batch':64,'optimizer':'adamw-fused'", ",'profile':{'sustained_clock':1}")).stepSeconds;
    for (const char* strategy : {"'local-sgd'", "'easgd'"}) {
        EXPECT_NEAR(local(strategy, ",'profile':{'device_variation':0,'sustained_clock':1}"), alone, 1e-9);
        EXPECT_GT(local(strategy, ",'profile':{'sustained_clock':1}"), alone);  // the round ends with the slowest of them
    }
}

TEST(LocalSgd, TheLongerThePeriodTheShorterTheStep) {
    for (const char* strategy : {"local-sgd", "diloco", "easgd"}) {
        double before = 1;
        for (const int period : {1, 2, 8, 100}) {
            const double seconds = predictionOf(mlp("{'name':'" + std::string(strategy) + "','period':" + std::to_string(period) + "}")).stepSeconds;
            EXPECT_LT(seconds, before) << strategy << " every " << period;
            before = seconds;
        }
    }
}

TEST(LocalSgd, DefaultsAreThoseOfThePapers) {
    EXPECT_EQ(scheduleOf(mlp("'local-sgd'")).period, 4);
    EXPECT_EQ(scheduleOf(mlp("'diloco'")).period, 500);
    EXPECT_EQ(scheduleOf(mlp("'easgd'")).period, 10);
    EXPECT_EQ(scheduleOf(mlp("'diloco'", 1)).period, 1) << "one device averages with nobody";
}

TEST(PostLocalSgd, AveragesGradientsWithinTheGroupInEveryStep) {
    const Schedule schedule = scheduleOf(mlp("{'name':'local-sgd','local_group':4}", 16));
    std::int64_t inGroup = 0;
    for (const Task& task : schedule.programs.front().tasks) {
        if (task.kind != TaskKind::Collective) continue;
        const CollectiveWork& work = schedule.collectives[task.work];
        if (task.periodic) continue;
        inGroup += work.elements;
        EXPECT_EQ(schedule.axes[work.axis].size, 4);
    }
    EXPECT_EQ(inGroup, kMlpParameters);
    // Per step 2·3/4·4Ψ within the group; every fourth 2·15/16·4Ψ over all.
    EXPECT_NEAR(static_cast<double>(bytesSentPerRank(schedule, schedule.classes[0])), 6.0 * kMlpParameters + 7.5 * kMlpParameters, 1000);
    EXPECT_NEAR(static_cast<double>(meanBytesSentPerRank(schedule, schedule.classes[0])), 6.0 * kMlpParameters + 7.5 / 4 * kMlpParameters, 1000);
    EXPECT_THAT(writeSchedule(scenarioOf(mlp("{'name':'local-sgd','local_group':3}", 16))).error().toString(), HasSubstr("groups of 3 do not divide 16 ranks"));
}

Bytes persistent(const Schedule& schedule, MemoryCategory category) {
    Bytes sum = 0;
    for (const Buffer& buffer : schedule.programs.front().buffers) sum += buffer.persistent && buffer.category == category ? buffer.bytes : 0;
    return sum;
}

TEST(DiLoCo, KeepsAnOuterCopyAndAnOuterMomentum) {
    // AdamW 8Ψ, and 4Ψ + 4Ψ besides.
    EXPECT_EQ(persistent(scheduleOf(mlp("'diloco'")), MemoryCategory::OptimizerState), 16 * kMlpParameters);
    EXPECT_EQ(persistent(scheduleOf(mlp("'local-sgd'")), MemoryCategory::OptimizerState), 8 * kMlpParameters);
}

TEST(Easgd, KeepsTheCentreOnEveryRankUnlessServersDo) {
    EXPECT_EQ(persistent(scheduleOf(mlp("'easgd'")), MemoryCategory::Parameters), 8 * kMlpParameters);
    EXPECT_EQ(persistent(scheduleOf(mlp("{'name':'easgd','async_averaging':true}")), MemoryCategory::Parameters), 4 * kMlpParameters);
}

TEST(Easgd, AsynchronousWorkersExchangeWithTheCentreByThemselves) {
    const Scenario scenario = scenarioOf(mlp("{'name':'easgd','async_averaging':true,'period':4,'servers':2}"));
    const Schedule schedule = scheduleOf(scenario);
    EXPECT_EQ(schedule.servers.count, 2);
    EXPECT_EQ(schedule.servers.discipline, ServerDiscipline::Async);
    EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[0]), 4 * kMlpParameters);
    const Prediction p = predictionOf(scenario);
    ASSERT_TRUE(p.timeline.async);
    EXPECT_NEAR(p.stepSeconds, (3 * p.round->localSeconds + p.round->averagingSeconds) / 4, 0.02 * p.stepSeconds);
    // A straggler costs the others nothing, where the all-reduce makes them wait.
    const std::string slow = ",'perturbation':{'stragglers':[{'rank':1,'compute':3}]}";
    const auto loss = [&](const std::string& strategy) {
        const std::string training = "'micro_batch':2048,'optimizer':'adamw-fused'";
        return predictionOf(mlp(strategy, 4, training, slow)).stepSeconds / predictionOf(mlp(strategy, 4, training)).stepSeconds;
    };
    EXPECT_GT(loss("'easgd'"), 1.5);
    EXPECT_LT(loss("{'name':'easgd','async_averaging':true}"), 1.3);
    EXPECT_THAT(writeSchedule(scenarioOf(mlp("{'name':'easgd','servers':2}"))).error().toString(), HasSubstr("async_averaging"));
}

TEST(LocalSgd, SchedulesAreValidAndFold) {
    for (const char* strategy : {"'local-sgd'", "{'name':'local-sgd','local_group':2,'period':1}", "'diloco'", "'easgd'", "{'name':'easgd','async_averaging':true}"})
        for (const int devices : {1, 2, 16})
            for (const char* training : {"'micro_batch':2", "'grad_accum':3,'precision':'fp16-autocast','gradient_clipping':true", "'precision':'bf16-master'", "'grad_accum':64"})
                for (const char* step : {"steady", "first"}) {
                    const Scenario scenario = scenarioOf(mlp(strategy, devices, training, ",'step':'" + std::string(step) + "'"));
                    const Schedule schedule = scheduleOf(scenario);
                    const Result<void> valid = validateSchedule(schedule);
                    EXPECT_TRUE(valid) << strategy << " on " << devices << ": " << (valid ? "" : valid.error().toString());
                    const Prices prices = *priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
                    EXPECT_EQ(play(schedule, prices)->stepTime, play(unfoldRanks(schedule), prices)->stepTime);
                }
}

TEST(LocalSgd, RepeatedMicroStepsCountInEveryStepOfARound) {
    // 64 micro-steps, of which most are played once: as long as when all of them are written.
    for (const char* strategy : {"'local-sgd'", "{'name':'easgd','async_averaging':true}"}) {
        const Scenario scenario = scenarioOf(mlp(strategy, 4, "'micro_batch':64,'grad_accum':64"));
        const auto seconds = [&](int mostMicroSteps) {
            const Schedule schedule = *writeSchedule(scenario, mostMicroSteps);
            const Prices prices = *priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
            return play(schedule, prices)->meanStepSeconds();
        };
        EXPECT_NEAR(seconds(8), seconds(0), 1e-3 * seconds(0)) << strategy;
    }
}

}  // namespace
}  // namespace ringside::testing
