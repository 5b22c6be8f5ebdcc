// The team splits a range without gaps or overlaps.
#include <atomic>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/thread_team.h"

namespace ringside {
namespace {

TEST(ThreadTeam, CoversEveryRangeOnce) {
    for (const int threads : {1, 2, 5}) {
        ThreadTeam team(threads);
        for (const std::int64_t count : {0, 1, 4, 5, 6, 1000})
            for (const std::int64_t grain : {1, 3, 5000}) {
                std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
                team.parallelFor(count, grain, [&](const TeamShare& share) {
                    EXPECT_LT(share.member, threads);
                    for (std::int64_t i = share.begin; i < share.end; ++i) ++seen[static_cast<std::size_t>(i)];
                });
                for (const auto& times : seen) EXPECT_EQ(times.load(), 1);
            }
    }
}

TEST(ThreadTeam, KeepsWorkBelowTheGrainOnTheCallingThread) {
    ThreadTeam team(4);
    int calls = 0;
    team.parallelFor(100, 64, [&](const TeamShare& share) {
        ++calls;
        EXPECT_EQ(share.member, 0);
        EXPECT_EQ(share.end - share.begin, 100);
    });
    EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace ringside
