// Parameter servers, synchronous: what travels, who waits for whom; docs/models/parameter-server.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "sim/player/timeline_trace.h"
#include "sim/schedule/validate_schedule.h"
#include "tests/support/scenarios.h"

namespace ringside::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kGpt2Parameters = 124'439'808;  // 14 layers own parameters: embedding, 12 blocks, head (its ln_f)
constexpr std::int64_t kMlpParameters = 25'175'040;    // 1024·4096 + 4096 + 4096·4096 + 4096 + 4096·1024 + 1024

std::string document(const std::string& model, int devices, const std::string& strategy, const std::string& training = "'micro_batch':2", const std::string& more = "") {
    return "{'model':'" + model + "','device':'a100-80gb-sxm','devices':" + std::to_string(devices) + (devices > 8 ? ",'devices_per_node':8" : "") + ",'training':{" + training +
           "},'strategy':" + strategy + more + "}";
}

Bytes messageBytes(const Schedule& schedule, const RankClass& rankClass, TaskKind kind) {
    Bytes sum = 0;
    for (const Task& task : schedule.programs[rankClass.program].tasks)
        if (task.kind == kind) sum += schedule.messages[task.work].bytes;
    return sum;
}

Timeline played(const Scenario& scenario, const Schedule& schedule) {
    const Result<Prices> prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, scenario.pricing);
    if (!prices) throw std::runtime_error(prices.error().toString());
    Result<Timeline> timeline = play(schedule, *prices);
    if (!timeline) throw std::runtime_error(timeline.error().toString());
    return std::move(*timeline);
}

TEST(ParameterServer, EveryWorkerSendsAndReceivesTheModelOnce) {
    for (const int devices : {2, 4, 16})
        for (const char* strategy : {"'ps-host'", "'ps-servers'", "'async-ps'", "'ssp'"})
            for (const char* training : {"'micro_batch':2", "'micro_batch':2,'grad_accum':3"}) {
                const Schedule schedule = scheduleOf(document("gpt2", devices, strategy, training));
                for (const RankClass& rankClass : schedule.classes) {
                    EXPECT_EQ(bytesSentPerRank(schedule, rankClass), 4 * kGpt2Parameters) << strategy << " on " << devices;
                    EXPECT_EQ(messageBytes(schedule, rankClass, TaskKind::Pull), 4 * kGpt2Parameters) << strategy << " on " << devices;
                }
            }
}

TEST(ParameterServer, ABf16ModelWithFp32GradientsPushesFourAndPullsTwoBytesPerParameter) {
    const Schedule schedule = scheduleOf(document("gpt2", 4, "'ps-servers'", "'precision':'bf16-master'"));
    EXPECT_EQ(messageBytes(schedule, schedule.classes[0], TaskKind::Push), 4 * kGpt2Parameters);
    EXPECT_EQ(messageBytes(schedule, schedule.classes[0], TaskKind::Pull), 2 * kGpt2Parameters);
}

TEST(PsDevice0, Rank0HasNothingToSend) {
    const Schedule schedule = scheduleOf(document("mlp", 16, "'ps-device0'"));
    // Rank 0, its seven neighbours, the eight of the other node.
    ASSERT_EQ(schedule.classes.size(), 3U);
    EXPECT_EQ(schedule.classes[0].ranks.count, 1);
    EXPECT_EQ(schedule.classes[1].ranks.count, 7);
    EXPECT_EQ(schedule.classes[2].ranks.count, 8);
    EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[0]), 0);
    EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[1]), 4 * kMlpParameters);
    EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[2]), 4 * kMlpParameters);
}

TEST(PsSharded, MovesWhatARingAllReduceMoves) {
    // Per layer of E parameters each device owns ⌈E/N⌉: (N−1)·⌈E/N⌉ out in the all-to-all and again in the all-gather.
    for (const int n : {2, 3, 8, 16}) {
        Bytes expected = 0;
        for (const std::int64_t e : {1024 * 4096 + 4096, 4096 * 4096 + 4096, 4096 * 1024 + 1024}) expected += 2 * (n - 1) * ((e + n - 1) / n) * 4;
        const Schedule schedule = scheduleOf(document("mlp", n, "'ps-sharded'"));
        EXPECT_EQ(bytesSentPerRank(schedule, schedule.classes[0]), expected) << n;
        EXPECT_NEAR(static_cast<double>(expected), 2.0 * (n - 1) / n * 4 * kMlpParameters, 2 * 3 * 4.0 * n);
    }
}

TEST(ParameterServer, AKeyIsALayerAndIsPushedWhenItsLastGradientIsComplete) {
    const Schedule schedule = scheduleOf(document("gpt2", 4, "'ps-servers'"));
    EXPECT_EQ(schedule.servers.keys.size(), 14U);
    EXPECT_EQ(countTasks(schedule, TaskKind::Push), 14);
    EXPECT_EQ(countTasks(schedule, TaskKind::Pull), 14);
    const std::vector<Task>& tasks = schedule.programs.front().tasks;
    std::vector<int> layers;
    for (const Task& task : tasks)
        if (task.kind == TaskKind::Push) layers.push_back(task.layer);
    // Backward goes from the head to the embedding; the tied embedding is complete only at the very end.
    for (std::size_t i = 0; i + 1 < layers.size(); ++i) EXPECT_GT(layers[i], layers[i + 1]);
    EXPECT_EQ(layers.back(), 0);
}

TEST(ParameterServer, WithoutOverlapNothingIsPushedBeforeBackwardEnds) {
    const auto firstPush = [](const Schedule& schedule) {
        const std::vector<Task>& tasks = schedule.programs.front().tasks;
        std::size_t push = tasks.size(), backward = 0;
        for (std::size_t t = tasks.size(); t-- > 0;) {
            if (tasks[t].kind == TaskKind::Push) push = t;
            if (tasks[t].phase == Phase::Backward) backward = std::max(backward, t);
        }
        return std::pair(push, backward);
    };
    const auto [eager, backward] = firstPush(scheduleOf(document("gpt2", 4, "'ps-servers'")));
    EXPECT_LT(eager, backward);
    const auto [late, end] = firstPush(scheduleOf(document("gpt2", 4, "{'name':'ps-servers','push_pull_overlap':false}")));
    EXPECT_GT(late, end);
    // A worker that clips must have seen all its gradients.
    const auto [clipped, clippedEnd] = firstPush(scheduleOf(document("gpt2", 4, "'ps-servers'", "'gradient_clipping':true")));
    EXPECT_GT(clipped, clippedEnd);
    EXPECT_LE(predictionOf(document("gpt2", 4, "'ps-servers'")).stepSeconds, predictionOf(document("gpt2", 4, "{'name':'ps-servers','push_pull_overlap':false}")).stepSeconds);
}

TEST(ParameterServer, APullEndsAfterTheSlowestWorkersPush) {
    const Scenario scenario = scenarioOf(document("gpt2", 16, "'ps-device0'"));
    const Schedule schedule = scheduleOf(scenario);
    const Timeline timeline = played(scenario, schedule);
    std::vector<Time> lastPush(schedule.servers.keys.size());
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        const std::vector<Task>& tasks = schedule.programs[schedule.classes[c].program].tasks;
        for (std::size_t t = 0; t < tasks.size(); ++t)
            if (tasks[t].kind == TaskKind::Push) {
                Time& last = lastPush[schedule.messages[tasks[t].work].key];
                last = std::max(last, timeline.classes[c][t].end);
            }
    }
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        const std::vector<Task>& tasks = schedule.programs[schedule.classes[c].program].tasks;
        for (std::size_t t = 0; t < tasks.size(); ++t) {
            if (tasks[t].kind != TaskKind::Pull) continue;
            EXPECT_GT(timeline.classes[c][t].end, lastPush[schedule.messages[tasks[t].work].key]);
        }
    }
}

// A step whose messages are all that matters: the servers' NICs carry n·Ψ, the workers' Ψ each: t ≈ max(Ψ/Bw, n·Ψ/(k·Bs)) each way.
TEST(PsServers, AreAsFastAsTheSlowerEndOfTheWire) {
    const auto step = [](int servers, double hostScale) {
        Scenario scenario = scenarioOf(document("mlp", 16, "{'name':'ps-servers','push_pull_overlap':false,'servers':" + std::to_string(servers) + "}", "'micro_batch':1", ",'network':'ethernet-25g'"));
        scenario.pricing.hostScale = hostScale;
        return played(scenario, scheduleOf(scenario));
    };
    // Two worker nodes of eight, one 25 Gb/s NIC each: 3.125e9 / 8 B/s per worker. 1e6 times the host: its work takes no time.
    const double psi = 4.0 * kMlpParameters, nic = 25e9 / 8;
    const auto lastPull = [](const Timeline& timeline) { return timeline.stepTime.seconds(); };
    const double one = lastPull(step(1, 1e6)), two = lastPull(step(2, 1e6)), four = lastPull(step(4, 1e6)), eight = lastPull(step(8, 1e6));
    // One server: 16 Ψ in and 16 Ψ out through one NIC; layers of the second direction follow those of the first, so that both overlap.
    EXPECT_GT(one, 16 * psi / nic);
    EXPECT_LT(one, 2 * 16 * psi / nic * 1.02);
    EXPECT_NEAR(two / one, 0.5, 0.02);  // as many servers as worker nodes: the wire of both ends is full
    EXPECT_NEAR(four / two, 1, 0.02) << "the workers' own NICs limit";
    EXPECT_NEAR(eight / two, 1, 0.02);
}

TEST(PsServers, TakeAsManyNodesAsTheWorkersByDefault) {
    EXPECT_EQ(scheduleOf(document("mlp", 32, "'ps-servers'")).servers.count, 4);
    EXPECT_EQ(scheduleOf(document("mlp", 32, "{'name':'ps-servers','servers':3}")).servers.count, 3);
}

TEST(PsDevice0, TheMoreWorkersTheLongerTheStep) {
    double before = 0;
    for (const int devices : {2, 4, 8, 16, 32}) {
        const double seconds = predictionOf(document("gpt2", devices, "'ps-device0'")).stepSeconds;
        EXPECT_GT(seconds, before) << devices;
        before = seconds;
    }
    // Incast: on 32 devices 24 workers of other nodes send Ψ each through device 0's one 200 Gb/s NIC, and fetch as much.
    EXPECT_GT(before, 24 * 4.0 * kGpt2Parameters / 25e9);
}

TEST(ParameterServer, WorkersHaveNoOptimizerState) {
    const Scenario scenario = scenarioOf(document("mlp", 4, "'ps-device0'", "'micro_batch':2,'optimizer':'adamw-fused'"));
    const Schedule schedule = scheduleOf(scenario);
    const auto bytes = [&](std::size_t c, MemoryCategory category) {
        Bytes sum = 0;
        for (const Buffer& buffer : schedule.programs[schedule.classes[c].program].buffers)
            if (buffer.category == category && buffer.persistent && !buffer.onHost) sum += buffer.bytes;
        return sum;
    };
    EXPECT_EQ(bytes(0, MemoryCategory::OptimizerState), 8 * kMlpParameters);
    EXPECT_EQ(bytes(1, MemoryCategory::OptimizerState), 0);
    // The sums, and the largest push while it is added: layer 1 with 4096·4096 + 4096.
    EXPECT_EQ(bytes(0, MemoryCategory::Buckets), 4 * (kMlpParameters + 4096 * 4096 + 4096));
    EXPECT_EQ(bytes(1, MemoryCategory::Buckets), 0);
    EXPECT_EQ(bytes(0, MemoryCategory::Parameters), bytes(1, MemoryCategory::Parameters));
    // The fullest rank is the one that is reported.
    const Prediction prediction = predictionOf(scenario);
    EXPECT_EQ(prediction.memoryClass, 0U);
    EXPECT_EQ(categoryBytes(prediction, MemoryCategory::OptimizerState), 8 * kMlpParameters);
}

TEST(PsHost, KeepsEverythingOfTheServerInHostMemory) {
    const Prediction prediction = predictionOf(document("mlp", 4, "'ps-host'", "'micro_batch':2,'optimizer':'adamw-fused'"));
    EXPECT_EQ(categoryBytes(prediction, MemoryCategory::OptimizerState), 0);
    // Parameters 4Ψ, state 8Ψ, sums 4Ψ and the largest push.
    const Schedule& schedule = *prediction.schedule;
    Bytes host = 0;
    for (const Buffer& buffer : schedule.programs[schedule.classes[0].program].buffers) host += buffer.onHost ? buffer.bytes : 0;
    EXPECT_EQ(host, 16 * kMlpParameters + 4 * (4096 * 4096 + 4096));
}

TEST(PsSharded, HoldsOneNthOfTheOptimizerState) {
    const Schedule schedule = scheduleOf(document("mlp", 8, "'ps-sharded'", "'optimizer':'adamw-fused'"));
    Bytes state = 0;
    for (const Buffer& buffer : schedule.programs[0].buffers) state += buffer.category == MemoryCategory::OptimizerState ? buffer.bytes : 0;
    EXPECT_EQ(state, kMlpParameters);  // 8Ψ / 8; every layer divides by 8
}

TEST(PsSharded, APullDoesNotHoldUpTheNextPush) {
    const Schedule schedule = scheduleOf(document("gpt2", 4, "'ps-sharded'"));
    const RankProgram& program = schedule.programs.front();
    for (const Task& task : program.tasks) {
        if (task.kind != TaskKind::Collective) continue;
        const bool push = schedule.collectives[task.work].op == CollectiveOp::AllToAll;
        EXPECT_EQ(schedule.axes[schedule.collectives[task.work].axis].name, push ? "push" : "pull");
        EXPECT_EQ(program.streams[task.stream].name, push ? "nccl push" : "nccl pull");
    }
}

TEST(ParameterServer, IsSlowedByAStraggler) {
    const std::string many = "{'name':'ps-servers','servers':64}";  // so that compute decides
    const Prediction all = predictionOf(document("gpt2", 8, many)),
                     slow = predictionOf(document("gpt2", 8, many, "'micro_batch':2", ",'perturbation':{'stragglers':[{'rank':3,'compute':2}]}"));
    EXPECT_GT(slow.stepSeconds, all.stepSeconds * 1.25);
}

TEST(ParameterServer, FoldedRanksGiveTheSameTimesAsEveryRankByItself) {
    for (const char* strategy : {"'ps-device0'", "'ps-host'", "'ps-sharded'", "'ps-servers'", "'async-ps'", "{'name':'ssp','staleness':1}"})
        for (const int devices : {4, 16}) {
            const Scenario scenario = scenarioOf(document("gpt2", devices, strategy));
            const Schedule schedule = scheduleOf(scenario);
            const Timeline folded = played(scenario, schedule), unfolded = played(scenario, unfoldRanks(schedule));
            EXPECT_EQ(folded.stepTime, unfolded.stepTime) << strategy << " on " << devices;
            EXPECT_EQ(folded.meanStepSeconds(), unfolded.meanStepSeconds()) << strategy << " on " << devices;
        }
}

TEST(ParameterServer, SchedulesAreValidWithAnyKnob) {
    for (const char* name : {"ps-device0", "ps-host", "ps-sharded", "ps-servers", "async-ps", "ssp"})
        for (const int devices : {1, 2, 3, 16})
            for (const char* overlap : {"true", "false"})
                for (const char* training : {"'micro_batch':2", "'grad_accum':3,'precision':'fp16-autocast','gradient_clipping':true", "'precision':'bf16-master','recompute':'full'"})
                    for (const char* step : {"steady", "first"}) {
                        const Result<void> valid = validateSchedule(scheduleOf(document("gpt2", devices, "{'name':'" + std::string(name) + "','push_pull_overlap':" + overlap + "}", training,
                                                                                        ",'step':'" + std::string(step) + "'")));
                        EXPECT_TRUE(valid) << name << " on " << devices << ": " << (valid ? "" : valid.error().toString());
                    }
}

TEST(ParameterServer, RefusesKnobsOfOthers) {
    for (const char* name : {"ps-device0", "ps-host", "ps-sharded", "ps-servers", "async-ps", "ssp"})
        EXPECT_THAT(refusal(document("mlp", 4, "{'name':'" + std::string(name) + "','bucket_mb':25}")), HasSubstr("bucket_mb")) << name;
    EXPECT_THAT(refusal(document("mlp", 4, "{'name':'ps-device0','servers':2}")), HasSubstr("servers"));
    EXPECT_THAT(refusal(document("mlp", 4, "{'name':'async-ps','staleness':2}")), HasSubstr("staleness"));
}

TEST(PsServers, NeedANetwork) {
    const Scenario scenario = scenarioOf(document("mlp", 4, "'ps-servers'", "'micro_batch':2", ",'network':'none'"));
    const Result<Prediction> prediction = predict(scenario);
    ASSERT_FALSE(prediction);
    EXPECT_EQ(prediction.error().code, ErrorCode::BadInput);
    EXPECT_THAT(prediction.error().toString(), AllOf(HasSubstr("has no NICs"), HasSubstr("--network")));
}

TEST(ParameterServer, TheServerHasTracksOfItsOwnInTheTrace) {
    const Prediction prediction = predictionOf(document("mlp", 4, "'ps-device0'"));
    const Trace trace = traceOf(prediction);
    std::vector<std::string> names;
    for (const Track& track : trace.tracks)
        if (track.rank == 4) names.push_back(track.name);
    EXPECT_THAT(names, ::testing::ElementsAre("server 0: receive", "server 0: apply", "server 0: send"));
    // Three layers: each is added up (once for each of the classes that push it together or more often) and applied once.
    int applied = 0;
    for (const ServerSlice& slice : prediction.timeline.server) applied += slice.kind == ServerSlice::Kind::Apply;
    EXPECT_EQ(applied, 3);
}

TEST(ParameterServer, TheServersWorkIsOnTheCriticalPathWhereItDecides) {
    const Prediction prediction = predictionOf(document("gpt2", 8, "'ps-host'"));
    EXPECT_GT(prediction.pathSeconds.at(PathKind::Server), 0);
    double sum = 0;
    for (const auto& [kind, seconds] : prediction.pathSeconds) sum += seconds;
    EXPECT_NEAR(sum, prediction.stepSeconds, 1e-9);
}

TEST(ValidateSchedule, APulledKeyMustBePushed) {
    Schedule schedule = scheduleOf(document("mlp", 4, "'ps-servers'"));
    for (Task& task : schedule.programs.front().tasks)
        if (task.kind == TaskKind::Push) {
            task.kind = TaskKind::Pull;
            break;
        }
    const Result<void> valid = validateSchedule(schedule);
    ASSERT_FALSE(valid);
    EXPECT_THAT(valid.error().toString(), HasSubstr("is pushed 0 times and pulled 2 times"));
}

}  // namespace
}  // namespace ringside::testing
