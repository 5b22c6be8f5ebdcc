#include "calibrate/measure/both_ways.h"

#include <vector>

#include <gmock/gmock.h>

#include "tests/unit/calibrate/comm/ranks_as_threads.h"

namespace ringside {
namespace {

using ::testing::Each;

TEST(BothWays, TheFirstRankGetsFromAllAndGivesToAll) {
    constexpr std::int64_t kElements = 3000;
    constexpr int kRanks = 4;
    withWorlds(kRanks, [](CommWorld& world) {
        auto channels = BothWays::connect(world);
        ASSERT_TRUE(channels) << channels.error().toString();
        const float own = static_cast<float>(world.rank() + 1);
        std::vector<float> send(kElements * kRanks, own), receive(kElements * kRanks, 0);
        const Result<void> done = channels->exchange({}, send.data(), receive.data(), kElements);
        ASSERT_TRUE(done) << done.error().toString();
        if (world.rank() > 0) {
            receive.resize(kElements);
            EXPECT_THAT(receive, Each(1.0f));
            return;
        }
        for (int other = 1; other < kRanks; ++other)
            EXPECT_THAT(std::vector<float>(receive.begin() + (other - 1) * kElements, receive.begin() + other * kElements), Each(static_cast<float>(other + 1)));
    });
}

}  // namespace
}  // namespace ringside
