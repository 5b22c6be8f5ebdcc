// Parameter servers for real: synchronous ones train as one device does; asynchronous ones learn, and keep to their staleness.
#include <condition_variable>
#include <mutex>

#include "tests/equivalence/equal_to_single.h"

namespace ringside {
namespace {


TEST(Equivalence, OfAServerOnDevice0) {
    for (const int ranks : {1, 2, 4}) expectEqualToSingle(kGpt, {{"name", "ps-device0"}}, ranks);
    expectEqualToSingle(kLlama, {{"name", "ps-device0"}, {"push_pull_overlap", false}}, 2, 2);
    for (const std::string optimizer : {"adamw", "sgd", "momentum"}) expectEqualToSingle(kMlp, {{"name", "ps-device0"}}, 2, 1, optimizer);
}

TEST(Equivalence, OfAServerInHostMemory) {
    for (const int ranks : {1, 2, 4}) expectEqualToSingle(kGpt, {{"name", "ps-host"}}, ranks);
    expectEqualToSingle(kMlp, {{"name", "ps-host"}, {"push_pull_overlap", false}}, 2, 2, "adamw");
}

TEST(Equivalence, OfDedicatedServers) {
    for (const int servers : {1, 2, 3}) expectEqualToSingle(kMlp, {{"name", "ps-servers"}, {"servers", servers}}, 2);
    expectEqualToSingle(kGpt, {{"name", "ps-servers"}, {"servers", 2}}, 4, 2);
    expectEqualToSingle(kMlp, {{"name", "ps-servers"}, {"servers", 2}}, 2, 1, "sgd");
}

TEST(Equivalence, OfServersSpreadOverTheWorkers) {
    for (const int ranks : {1, 2, 4}) expectEqualToSingle(kGpt, {{"name", "ps-sharded"}}, ranks);
    expectEqualToSingle(kLlama, {{"name", "ps-sharded"}, {"push_pull_overlap", false}}, 3, 2);
    for (const std::string optimizer : {"adamw", "sgd", "momentum"}) expectEqualToSingle(kMlp, {{"name", "ps-sharded"}}, 4, 1, optimizer);
}

// Without any lead all workers take every step together.
TEST(Equivalence, OfStaleSynchronousParallelWithoutStaleness) { expectEqualToSingle(kMlp, {{"name", "ssp"}, {"staleness", 0}, {"servers", 1}}, 2); }

TEST(ServerMemory, IsWhatTheScheduleForetells) {
    expectForetoldMemory(kGpt, {{"name", "ps-device0"}}, 2);
    expectForetoldMemory(kGpt, {{"name", "ps-host"}}, 2);
    expectForetoldMemory(kGpt, {{"name", "ps-sharded"}}, 2);
}

TEST(AsynchronousServer, LearnsAndAppliesEveryPushByItself) {
    constexpr int kRanks = 3, kRounds = 60;
    ExecuteOptions options;
    options.hyper.learningRate = 3e-3;
    const Scenario scenario = scenarioOf(kMlp, {{"name", "async-ps"}, {"servers", 1}}, kRanks, 16, 1);
    const Result<real::Outcome> outcome = real::run(scenario, kRounds, options, true);
    ASSERT_TRUE(outcome) << outcome.error().toString();
    expectHalvedLosses(*outcome);
    // An update per key, worker and step.
    EXPECT_EQ(outcome->servers[0].applied, kRanks * kRounds * static_cast<std::int64_t>(outcome->schedule.servers.keys.size()));
}

// Rank 1 does not begin until rank 0 has begun its step 2 (counted from 0): two ahead is allowed, and nobody is ever further ahead.
TEST(BoundedStaleness, LetsAWorkerRunAheadButNoFurther) {
    std::mutex mutex;
    std::condition_variable changed;
    int begun = 0;
    const auto hold = [&](std::int64_t rank, int step) {
        std::unique_lock lock(mutex);
        if (rank == 0 && step == 3) {  // steps 0, 1 and 2 are done, although rank 1 has done none
            begun = 3;
            changed.notify_all();
        }
        if (rank == 1 && step == 0) changed.wait(lock, [&] { return begun == 3; });
    };
    const Scenario scenario = scenarioOf(kMlp, {{"name", "ssp"}, {"staleness", 2}, {"servers", 2}}, 2, 4, 1);
    const Result<real::Outcome> outcome = real::run(scenario, 12, steadyOptions(), true, hold);
    ASSERT_TRUE(outcome) << outcome.error().toString();
    EXPECT_EQ(outcome->servers[0].largestLead, 2);
    // Of rank 1's first push: rank 0 has applied three since both began.
    EXPECT_GE(outcome->servers[0].largestStaleness, 3);
}

TEST(BoundedStaleness, Learns) { expectLearns(kMlp, {{"name", "ssp"}, {"staleness", 3}, {"servers", 1}}, 2, 60, 3e-3); }

}  // namespace
}  // namespace ringside
