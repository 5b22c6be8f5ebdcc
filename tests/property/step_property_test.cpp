// Laws that hold for every step, whatever the configuration. A failure prints the scenario and how to see it again; the seed is
// fixed so that a run can be repeated, and RC_PARAMS="seed=… max_success=…" searches elsewhere and longer.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "sim/player/fold_ranks.h"
#include "sim/player/timeline_trace.h"
#include "sim/schedule/validate_schedule.h"
#include "tests/property/random_scenario.h"

namespace ringside::testing {
namespace {

class StepLaws : public ::testing::Test {
protected:
    static void SetUpTestSuite() { setenv("RC_PARAMS", "seed=1609 max_success=150", 0); }
};

Timeline playedWith(const Scenario& scenario, const Schedule& schedule, const PricingOptions& pricing) {
    const Result<Prices> prices = priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, pricing);
    RC_ASSERT(prices.has_value());
    const Result<Timeline> timeline = play(schedule, *prices);
    RC_ASSERT(timeline.has_value());
    return *timeline;
}

TEST_F(StepLaws, EveryScheduleIsValid) {
    ASSERT_TRUE(rc::check("every schedule is valid", [] {
        const Result<void> valid = validateSchedule(scheduleOf(randomScenario()));
        if (!valid) RC_FAIL(valid.error().toString());
    }));
}

TEST_F(StepLaws, FoldingRanksChangesNothing) {
    ASSERT_TRUE(rc::check("folded == unfolded", [] {
        const Scenario scenario = randomScenario();
        const Schedule schedule = scheduleOf(scenario);
        const Schedule unfolded = unfoldRanks(schedule);
        RC_ASSERT(static_cast<std::int64_t>(unfolded.classes.size()) == schedule.world);
        RC_ASSERT(validateSchedule(unfolded).has_value());
        const Timeline one = playedWith(scenario, schedule, scenario.pricing), all = playedWith(scenario, unfolded, scenario.pricing);
        RC_ASSERT(one.stepTime == all.stepTime);
        for (std::size_t r = 0; r < unfolded.classes.size(); ++r)
            for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
                if (!schedule.classes[c].ranks.contains(unfolded.classes[r].ranks.first)) continue;
                for (std::size_t t = 0; t < one.classes[c].size(); ++t) {
                    RC_ASSERT(one.classes[c][t].start == all.classes[r][t].start);
                    RC_ASSERT(one.classes[c][t].end == all.classes[r][t].end);
                }
            }
    }));
}

TEST_F(StepLaws, TheCriticalPathIsAsLongAsTheStepAndNotLongerThanEverythingInARow) {
    ASSERT_TRUE(rc::check("path == step ≤ serial sum", [] {
        const Scenario scenario = randomScenario();
        const Prediction p = predictionOf(scenario);
        Time cursor, serial;
        for (const PathSegment& segment : criticalPath(*p.schedule, p.timeline)) {
            RC_ASSERT(segment.begin == cursor);
            RC_ASSERT(segment.begin < segment.end);
            cursor = segment.end;
        }
        RC_ASSERT(cursor == p.timeline.stepTime);
        for (std::size_t c = 0; c < p.schedule->classes.size(); ++c) {
            const NodePrices& node = p.prices.nodes[p.schedule->classes[c].nodeGroup];
            const RankProgram& program = p.schedule->programs[p.schedule->classes[c].program];
            const std::vector<Task>& tasks = program.tasks;
            for (std::size_t t = 0; t < tasks.size(); ++t) {
                const TaskTimes& times = p.timeline.classes[c][t];
                if (tasks[t].kind != TaskKind::HostSync) serial += times.end - times.start;
                if (tasks[t].stream != kHostStream) serial += launchTime(*p.schedule, node, tasks[t]) * program.interpreterThreads;
            }
        }
        RC_ASSERT(p.timeline.stepTime <= serial);
    }));
}

TEST_F(StepLaws, ATaskStartsAfterItsDependenciesAndItsStream) {
    ASSERT_TRUE(rc::check("order is kept", [] {
        const Prediction p = predictionOf(randomScenario());
        for (std::size_t c = 0; c < p.schedule->classes.size(); ++c) {
            const RankProgram& program = p.schedule->programs[p.schedule->classes[c].program];
            const std::vector<TaskTimes>& times = p.timeline.classes[c];
            std::vector<Time> streamFree(program.streams.size()), axisFree(p.schedule->axes.size());
            for (TaskId t = 0; t < program.tasks.size(); ++t) {
                const Task& task = program.tasks[t];
                if (task.kind != TaskKind::HostSync)
                    for (const TaskId earlier : program.dependenciesOf(task)) RC_ASSERT(times[earlier].end <= times[t].start);
                RC_ASSERT(times[t].issued <= times[t].start);
                RC_ASSERT(times[t].start <= times[t].end);
                RC_ASSERT(streamFree[task.stream] <= times[t].start);
                streamFree[task.stream] = times[t].end;
                if (task.kind != TaskKind::Collective) continue;
                Time& free = axisFree[p.schedule->collectives[task.work].axis];
                RC_ASSERT(free <= times[t].start);
                free = times[t].end;
            }
        }
    }));
}

/// One resource, 10 % to four times faster.
PricingOptions moreOfSomething(PricingOptions pricing) {
    const double factor = *rc::gen::element(1.1, 1.5, 2.0, 4.0);
    switch (*rc::gen::inRange(0, 4)) {
        case 0: pricing.networkScale *= factor; break;
        case 1: pricing.computeScale *= factor; break;
        case 2: pricing.memoryScale *= factor; break;
        default: pricing.hostScale *= factor; break;
    }
    return pricing;
}

Time stepWithoutInterference(const Scenario& scenario, const Schedule& schedule, const PricingOptions& pricing) {
    Prices prices = *priceSchedule(schedule, scenario.cluster, scenario.profiles, scenario.training.precision.math, pricing);
    for (NodePrices& node : prices.nodes)
        for (std::vector<float>& column : node.slowdown) std::fill(column.begin(), column.end(), 1.0F);
    return play(schedule, prices)->stepTime;
}

// Without interference a step is a longest path through a fixed graph, so shorter tasks cannot make it longer. With interference they can, a little:
// a collective that starts or ends at another moment may slow kernels that suffer more (resnet-18, Picotron with 1 MiB buckets on the mixed cluster,
// network ×1.5: 53 ns of 5.75 ms). The longest path then bounds the growth: what more of a resource leaves without interference is never longer than
// the step was with it.
TEST_F(StepLaws, MoreOfAResourceNeverMakesTheStepLongerApartFromInterference) {
    ASSERT_TRUE(rc::check("more is never slower", [] {
        const Scenario scenario = randomScenario();
        const Schedule schedule = scheduleOf(scenario);
        const PricingOptions more = moreOfSomething(scenario.pricing);
        if (schedule.servers.count > 0) {
            // Messages that get ready at another time come to the servers in another order: a queue may then be a little longer.
            RC_ASSERT(playedWith(scenario, schedule, more).meanStepSeconds() <= 1.05 * playedWith(scenario, schedule, scenario.pricing).meanStepSeconds());
            return;
        }
        const Time before = playedWith(scenario, schedule, scenario.pricing).stepTime, after = playedWith(scenario, schedule, more).stepTime;
        const Time beforeAlone = stepWithoutInterference(scenario, schedule, scenario.pricing), afterAlone = stepWithoutInterference(scenario, schedule, more);
        RC_LOG() << "network ×" << more.networkScale << ", compute ×" << more.computeScale << ", memory ×" << more.memoryScale << ", host ×" << more.hostScale << ": "
                 << before.picoseconds() << " → " << after.picoseconds() << " ps, without interference " << beforeAlone.picoseconds() << " → "
                 << afterAlone.picoseconds() << std::endl;
        RC_ASSERT(afterAlone <= beforeAlone);
        RC_ASSERT(beforeAlone <= before);
        RC_ASSERT(after.seconds() <= before.seconds() * 1.001);
    }));
}

/// Bytes live at the worst moment, without the allocator's rounding.
Bytes peakBytes(const Schedule& schedule) {
    const RankProgram& program = schedule.programs.front();
    Bytes live = 0, peak = 0;
    for (const BufferUse& use : program.uses) {
        if (use.kind == UseKind::Allocate) live += program.buffers[use.buffer].bytes;
        if (use.kind == UseKind::Free) live -= program.buffers[use.buffer].bytes;
        peak = std::max(peak, live);
    }
    return peak;
}

// A model of one layer saves nothing by running it again: backward then holds the layer's values and what its second forward needs for a moment.
// Beyond that moment recompute never costs memory, and from a few layers on it saves.
TEST_F(StepLaws, RecomputeNeverNeedsMoreMemoryThanOneLayersForward) {
    ASSERT_TRUE(rc::check("recompute ≤ none + a layer", [] {
        Scenario scenario = randomScenario();
        const auto peak = [&](Recompute recompute) {
            scenario.training.recompute = recompute;
            return peakBytes(scheduleOf(scenario));
        };
        Bytes layer = 0;
        const Schedule schedule = scheduleOf(scenario);
        for (const LayerType& type : schedule.workload->types) {
            Bytes values = 0;
            for (const Value& value : type.values) values += value.bytes();
            layer = std::max(layer, values);
        }
        const Bytes none = peak(Recompute::None), selective = peak(Recompute::Selective), full = peak(Recompute::Full);
        RC_LOG() << "none " << none << ", selective " << selective << ", full " << full << ", a layer " << layer << std::endl;
        RC_ASSERT(selective <= none + layer);
        RC_ASSERT(full <= none + layer);
    }));
}

TEST_F(StepLaws, OfDeepModelsFullRecomputeNeedsLessThanSelectiveAndThatLessThanNone) {
    ASSERT_TRUE(rc::check("full ≤ selective ≤ none", [] {
        Json document = randomDocument();
        document["model"] = *oneOf({"gpt2", "bert-base"});  // 12 blocks
        document["training"]["seq_len"] = *rc::gen::element(64, 128, 500);
        RC_LOG() << document.dump() << std::endl;
        Scenario scenario = scenarioOfJson(document);
        const auto peak = [&](Recompute recompute) {
            scenario.training.recompute = recompute;
            return peakBytes(scheduleOf(scenario));
        };
        const Bytes none = peak(Recompute::None), selective = peak(Recompute::Selective), full = peak(Recompute::Full);
        RC_LOG() << "none " << none << ", selective " << selective << ", full " << full << std::endl;
        RC_ASSERT(selective <= none);
        RC_ASSERT(full <= selective);
    }));
}

TEST_F(StepLaws, MemoryAddsUp) {
    ASSERT_TRUE(rc::check("categories sum to the peak, reserved ≥ allocated", [] {
        const Prediction p = predictionOf(randomScenario(), {false, true, false});
        RC_ASSERT(p.memory.peakReserved >= p.memory.peakAllocated);
        Bytes sum = 0;
        for (const Bytes bytes : p.memory.atPeak) {
            RC_ASSERT(bytes >= 0);
            sum += bytes;
        }
        RC_ASSERT(sum == p.memory.peakAllocated + p.memory.outside);
        for (const MemorySample& sample : p.memory.samples) {
            Bytes live = 0;
            for (const Bytes bytes : sample.bytes) live += bytes;
            RC_ASSERT(live <= sum);
            RC_ASSERT(live - p.memory.outside <= sample.reserved);
        }
        RC_ASSERT(p.memory.outOfMemory == (p.verdict == MemoryVerdict::OutOfMemory));
    }));
}

TEST_F(StepLaws, TheBreakdownSumsToTheStep) {
    ASSERT_TRUE(rc::check("breakdown == step", [] {
        const Prediction p = predictionOf(randomScenario());
        const Breakdown& b = p.breakdown;
        const Time sum = b.compute + b.optimizer + b.communicationExposed + b.host + b.idle;
        if (p.round) {  // of both kinds of step, weighted; each part is rounded to a picosecond
            const double period = static_cast<double>(p.round->period);
            RC_ASSERT(std::abs(sum.seconds() - (p.round->averagingSeconds + (period - 1) * p.round->localSeconds) / period) < 2e-11);
        } else {
            RC_ASSERT(sum == p.timeline.stepTime);
        }
        if (p.schedule->world == 1) RC_ASSERT(b.communication() == Time());
        if (p.schedule->strategy == "naive") RC_ASSERT(b.communicationHidden == Time());
    }));
}

TEST_F(StepLaws, ThroughputTimesStepIsTheGlobalBatch) {
    ASSERT_TRUE(rc::check("throughput", [] {
        const Scenario scenario = randomScenario();
        const Prediction p = predictionOf(scenario);
        const double batch = p.samplesPerSecond * p.stepSeconds;
        const double ranks = static_cast<double>(scenario.cluster.deviceCount());  // exhausted ones bring no samples
        const double expected = static_cast<double>(scenario.globalBatch()) * (ranks - static_cast<double>(scenario.parallel.exhaustedRanks)) / ranks;
        RC_ASSERT(std::abs(batch - expected) < 1e-9 * batch);
        RC_ASSERT(p.p10Seconds <= p.stepSeconds);
        RC_ASSERT(p.stepSeconds <= p.p90Seconds);
        RC_ASSERT(p.mfu > 0);
        RC_ASSERT(p.mfu <= p.hfu);
    }));
}

TEST_F(StepLaws, TheTraceHoldsEveryTaskOnceAtItsTime) {
    ASSERT_TRUE(rc::check("every task once", [] {
        const Prediction p = predictionOf(randomScenario(), {false, true, false});
        const Trace trace = traceOf(p);
        std::map<std::int64_t, std::set<std::int64_t>> seen;  // by rank
        for (std::size_t s = 0; s < trace.size(); ++s) {
            if (trace.task[s] < 0) continue;
            const Track& track = trace.tracks[trace.track[s]];
            RC_ASSERT(seen[track.rank].insert(trace.task[s]).second);
            const auto c = std::find_if(p.schedule->classes.begin(), p.schedule->classes.end(), [&](const RankClass& rc) { return rc.ranks.first == track.rank; });
            RC_ASSERT(c != p.schedule->classes.end());
            const TaskTimes& times = p.timeline.classes[static_cast<std::size_t>(c - p.schedule->classes.begin())][static_cast<std::size_t>(trace.task[s])];
            RC_ASSERT(trace.start[s] == times.start);
            RC_ASSERT(trace.start[s] + trace.duration[s] == times.end);
        }
        for (const RankClass& rankClass : p.schedule->classes)
            RC_ASSERT(seen[rankClass.ranks.first].size() == p.schedule->programs[rankClass.program].tasks.size());
    }));
}

TEST_F(StepLaws, EveryRankSendsTheGradientsOncePerReduction) {
    ASSERT_TRUE(rc::check("wire bytes", [] {
        Json document = randomDocument();
        // Of the strategies that all-reduce every gradient as it is.
        RC_PRE(document.contains("strategy"));
        const Json& strategy = document["strategy"];
        RC_PRE(strategy["name"] == "ddp" || strategy["name"] == "naive" || strategy["name"] == "picotron");
        RC_PRE(strategy.value("comm_hook", "none") != "powersgd" && !strategy.value("async_gradients", false));
        RC_LOG() << document.dump() << std::endl;
        const Scenario scenario = scenarioOfJson(document);
        // ZeRO and Megatron cut and pad gradients in ways of their own: their unit tests have the formulas.
        const std::set<std::string> whole = {"ddp", "naive", "picotron", "zero-redundancy-optimizer"};
        RC_PRE(whole.contains(scenario.parallel.strategy));
        const Schedule schedule = scheduleOf(scenario);
        std::int64_t reduced = 0;
        for (const Task& task : schedule.programs.front().tasks)
            if (task.role == TaskRole::BucketReduce || task.role == TaskRole::GradientReduce || task.role == TaskRole::ShardReduce) reduced += schedule.collectives[task.work].elements;
        const bool once = scenario.parallel.noSync || scenario.parallel.strategy == "picotron";
        const std::int64_t gradients = parameterCount(*schedule.workload) * (once ? 1 : scenario.training.gradAccum);
        if (isFsdp(scenario.parallel.strategy)) RC_ASSERT(reduced >= gradients);  // units are padded
        else RC_ASSERT(reduced == gradients);
    }));
}

}  // namespace
}  // namespace ringside::testing
