// What the trace of a prediction carries for those who look at it: tensors alive, groups of collectives, a complete critical path.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/scenarios.h"
#include "traces/analysis/collectives.h"
#include "traces/analysis/memory_at.h"
#include "traces/analysis/trace_path.h"

namespace ringside::testing {
namespace {

PredictOptions withMemory() {
    PredictOptions options;
    options.memoryTimeline = true;
    return options;
}

TEST(PredictedTrace, TensorsAliveAddUpToTheMemoryAllocatedAtEverySample) {
    for (const char* strategy : {"ddp", "fsdp2", "zero3"}) {
        const Prediction p = predictionOf(scenarioOf(std::string("{'model':'gpt2','device':'a100-80gb-sxm','devices':8,'strategy':'") + strategy + "'}"), withMemory());
        const Trace trace = traceOf(p);
        ASSERT_FALSE(trace.allocations.empty());
        const CounterSeries& counter = trace.counters.at(0);
        ASSERT_EQ(counter.name, "memory by category");
        EXPECT_EQ(counter.limit, p.capacityBytes);
        std::size_t checked = 0;
        for (std::size_t row = 0; row < counter.at.size(); row += 37) {
            // Several samples of one instant: the last one is what holds then.
            if (row + 1 < counter.at.size() && counter.at[row + 1] == counter.at[row]) continue;
            const MemoryAt memory = memoryAt(trace, counter.rank, counter.at[row]);
            Bytes alive = 0;
            for (const std::uint32_t a : memory.alive) alive += trace.allocations[a].bytes;
            EXPECT_EQ(alive + p.memory.outside, memory.allocated) << strategy << " at " << formatTime(counter.at[row]);
            ++checked;
        }
        EXPECT_GT(checked, 5U);
    }
}

TEST(PredictedTrace, ItsCriticalPathIsThatOfTheSchedule) {
    for (const char* scenario : {"{'model':'gpt2','device':'a100-80gb-sxm','devices':8}", "{'model':'gpt2','device':'a100-80gb-sxm','devices':16,'network':'ethernet-25g'}",
                                 "{'model':'gpt2','device':'a100-80gb-sxm','devices':16,'network':'ethernet-100g','strategy':'fsdp2'}"}) {
        const Prediction p = predictionOf(scenarioOf(scenario), withMemory());
        const Trace trace = traceOf(p);
        const TracePath path = tracePath(trace, Time{}, p.timeline.stepTime);
        const auto seconds = [&](PathKind kind) {
            const auto it = p.pathSeconds.find(kind);
            return it == p.pathSeconds.end() ? 0.0 : it->second;
        };
        const auto category = [&](SliceCategory c) { return path.byCategory[static_cast<std::size_t>(c)].seconds(); };
        const double step = p.timeline.stepTime.seconds();
        EXPECT_NEAR(category(SliceCategory::Compute), seconds(PathKind::Compute), 0.005 * step) << scenario;
        EXPECT_NEAR(category(SliceCategory::Communication), seconds(PathKind::Communication), 0.005 * step) << scenario;
        EXPECT_NEAR(category(SliceCategory::Optimizer), seconds(PathKind::Optimizer), 0.005 * step) << scenario;
        EXPECT_LT(path.idle.seconds(), 0.005 * step) << "everything waits for something that is shown";
    }
}

TEST(PredictedTrace, CollectivesOfDifferentGroupsAreToldApart) {
    const Prediction p = predictionOf(scenarioOf("{'model':'gpt2','device':'a100-80gb-sxm','devices':8,'strategy':{'name':'ddp','tp':2}}"), withMemory());
    const Trace trace = traceOf(p);
    std::set<std::string> groups;
    for (const CollectiveDetails& details : trace.collectives) {
        groups.insert(details.group);
        if (details.groupSize < p.schedule->world) {
            EXPECT_EQ(std::ssize(details.ranks), details.groupSize);
        }
    }
    EXPECT_EQ(groups.size(), 2U);
}

}  // namespace
}  // namespace ringside::testing
