#include "calibrate/execute/rank_cores.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringside {
namespace {

TEST(RankCores, AreSideBySideInTheOrderOfRanks) {
    const std::vector<int> machine{0, 1, 2, 3, 4, 5, 6, 7};
    EXPECT_EQ(firstCoreOf(machine, 0, 8, 1), 0);
    EXPECT_EQ(firstCoreOf(machine, 7, 8, 1), 7);
    EXPECT_EQ(firstCoreOf(machine, 1, 2, 4), 4);  // cores 4 to 7
}

TEST(RankCores, AreThoseThatALauncherOrContainerLeaves) {
    const std::vector<int> half{4, 5, 6, 7};
    EXPECT_EQ(firstCoreOf(half, 1, 2, 1), 5);
    EXPECT_EQ(firstCoreOf(half, 1, 2, 2), 6);
}

TEST(RankCores, AreNoneWhereRanksMustShareThem) {
    const std::vector<int> two{0, 1};
    EXPECT_EQ(firstCoreOf(two, 0, 3, 1), std::nullopt);
    EXPECT_EQ(firstCoreOf(two, 0, 2, 2), std::nullopt);
    EXPECT_EQ(firstCoreOf(two, 2, 2, 1), std::nullopt);  // a launcher that counts wrongly
    EXPECT_EQ(firstCoreOf({}, 0, 1, 1), std::nullopt);
}

TEST(RankCores, AreNeighbours) {
    const std::vector<int> everySecond{0, 2, 4, 6};
    EXPECT_EQ(firstCoreOf(everySecond, 1, 2, 1), 2);
    EXPECT_EQ(firstCoreOf(everySecond, 0, 2, 2), std::nullopt);  // 0 and 2, with another one's core between them
}

TEST(RankCores, HoldAThreadAndWhatItStarts) {
    std::vector<int> own;
    int chosen = -1;
    std::thread([&] {
        chosen = allowedCores().back();
        if (stayOnCores(chosen, 1)) std::thread([&] { own = allowedCores(); }).join();
    }).join();
    if (own.empty()) GTEST_SKIP() << "the host does not allow it";
    EXPECT_THAT(own, testing::ElementsAre(chosen));
}

}  // namespace
}  // namespace ringside
