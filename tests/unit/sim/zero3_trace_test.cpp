// What ZeRO stage 3 gathers, prefetches and releases, derived by hand on four submodules of ten elements each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/strategy/zero3_trace.h"

namespace ringside::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::int64_t> kSizes{10, 10, 10, 10};
const std::vector<bool> kNonePersistent(4, false);

/// Forward through 0, 1, 2, 3 (visits 0 to 3), backward through 3, 2, 1, 0 (visits 4 to 7).
std::vector<Zero3Visit> thereAndBack() { return {{{0}}, {{1}}, {{2}}, {{3}}, {{3}}, {{2}}, {{1}}, {{0}}}; }

std::vector<Zero3VisitPlan> planned(std::int64_t prefetch, std::int64_t live, std::int64_t reuse, const std::vector<bool>& persistent = kNonePersistent) {
    const std::vector<Zero3Visit> visits = thereAndBack();
    return planZero3Pass(visits, kSizes, persistent, {true, prefetch, live, reuse});
}

TEST(Zero3Trace, WithoutATraceEverySubmoduleGathersItsOwnAndLetsItGo) {
    const std::vector<Zero3Visit> visits = thereAndBack();
    const auto plans = planZero3Pass(visits, kSizes, kNonePersistent, {false, 1000, 1000, 1000});
    for (std::size_t v = 0; v < visits.size(); ++v) {
        EXPECT_EQ(plans[v].fetch, visits[v].parameters) << v;
        EXPECT_THAT(plans[v].prefetch, IsEmpty()) << v;
        EXPECT_EQ(plans[v].release, visits[v].parameters) << v;
    }
}

TEST(Zero3Trace, PrefetchTakesTheNextOfTheTraceUntilTheBucketIsFull) {
    const auto plans = planned(10, 1000, 1);
    EXPECT_THAT(plans[0].fetch, ElementsAre(0U)) << "nobody could prefetch the first";
    EXPECT_THAT(plans[0].prefetch, ElementsAre(1U));
    for (std::size_t v = 1; v < 8; ++v) EXPECT_THAT(plans[v].fetch, IsEmpty()) << v;
    EXPECT_THAT(plans[1].prefetch, ElementsAre(2U));
    EXPECT_THAT(plans[2].prefetch, ElementsAre(3U));
    // 3 is used again at once, so the trace's next that is missing is 2.
    EXPECT_THAT(plans[3].prefetch, ElementsAre(2U));
    EXPECT_THAT(plans[3].release, IsEmpty());
    EXPECT_THAT(plans[7].release, ElementsAre(0U));
}

TEST(Zero3Trace, ThePrefetchStopsAtTheFirstThatFillsItsBucket) {
    // 15 elements: one is too little, the second passes the mark and is still taken.
    EXPECT_THAT(planned(15, 1000, 0)[0].prefetch, ElementsAre(1U, 2U));
    EXPECT_THAT(planned(0, 1000, 0)[0].prefetch, IsEmpty());
}

TEST(Zero3Trace, MaxLiveBoundsPrefetchingButReleasesNothing) {
    const auto plans = planned(1000, 20, 1000);
    EXPECT_THAT(plans[0].prefetch, ElementsAre(1U)) << "20 − 10 live leave room for one";
    EXPECT_THAT(plans[1].prefetch, IsEmpty()) << "20 are live";
    // Everything stays all the same (the reuse distance says so): 40 live in the end.
    for (std::size_t v = 0; v < 4; ++v) EXPECT_THAT(plans[v].release, IsEmpty()) << v;
}

TEST(Zero3Trace, AParameterStaysIfItsNextUseIsWithinTheReuseDistance) {
    // Elements used between forward and backward of submodule i: 2·(3 − i)·10 = 60, 40, 20, 0.
    const auto plans = planned(0, 1000, 30);
    EXPECT_THAT(plans[0].release, ElementsAre(0U));
    EXPECT_THAT(plans[1].release, ElementsAre(1U));
    EXPECT_THAT(plans[2].release, IsEmpty());
    EXPECT_THAT(plans[3].release, IsEmpty());
    EXPECT_THAT(plans[4].fetch, IsEmpty());
    EXPECT_THAT(plans[5].fetch, IsEmpty());
    EXPECT_THAT(plans[6].fetch, ElementsAre(1U));
    EXPECT_THAT(plans[7].fetch, ElementsAre(0U));
    EXPECT_THAT(planned(0, 1000, 20)[2].release, ElementsAre(2U)) << "a distance equal to the limit is too far";
}

TEST(Zero3Trace, AUseThatPrefetchSkippedKeepsTheParameter) {
    // With 20 ahead, submodule 1 finds 3 missing, passes over the backward uses of 3, 2 and 1 (all there) and takes 0: so
    // 1 must stay, although its reuse distance of 40 is beyond the limit of 0.
    const auto plans = planned(20, 1000, 0);
    EXPECT_THAT(plans[1].prefetch, ElementsAre(3U, 0U));
    EXPECT_THAT(plans[1].release, IsEmpty());
}

TEST(Zero3Trace, PersistentParametersAreNeitherGatheredNorReleased) {
    const auto plans = planned(20, 1000, 0, {true, false, true, false});
    for (const Zero3VisitPlan& plan : plans)
        for (const auto* list : {&plan.fetch, &plan.prefetch, &plan.release})
            for (const std::uint32_t p : *list) EXPECT_TRUE(p == 1 || p == 3) << p;
}

}  // namespace
}  // namespace ringside::testing
