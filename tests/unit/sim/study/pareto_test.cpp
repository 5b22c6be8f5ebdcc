// The front: no point on it is dominated, and no other point is missing from it.
#include "sim/study/pareto.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace ringside {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Pareto, KeepsWhatIsFasterOrCheaperThanEverythingElse) {
    // (2, 5) is beaten by (1, 4); (3, 3) and (4, 1) pay less for more time.
    const std::vector<Tradeoff> points = {{4, 1}, {2, 5}, {1, 4}, {3, 3}};
    EXPECT_THAT(paretoFront(points), ElementsAre(2, 3, 0));
}

TEST(Pareto, OfEqualTimesTheCheaperStaysAndOfEqualPointsAll) {
    EXPECT_THAT(paretoFront(std::vector<Tradeoff>{{1, 2}, {1, 1}, {2, 1}}), ElementsAre(1));
    EXPECT_THAT(paretoFront(std::vector<Tradeoff>{{1, 1}, {2, 2}, {1, 1}}), ElementsAre(0, 2));
    EXPECT_THAT(paretoFront(std::vector<Tradeoff>{}), IsEmpty());
}

TEST(Pareto, HoldsExactlyThePointsThatNoOtherDominates) {
    const bool holds = rc::check("front = all that are not dominated", [] {
        std::vector<Tradeoff> points;
        const int count = *rc::gen::inRange(0, 40);
        for (int i = 0; i < count; ++i) points.push_back({static_cast<double>(*rc::gen::inRange(0, 12)), static_cast<double>(*rc::gen::inRange(0, 12))});
        const std::vector<std::size_t> front = paretoFront(points);
        for (std::size_t i = 0; i < points.size(); ++i) {
            const bool dominated = std::any_of(points.begin(), points.end(), [&](const Tradeoff& other) { return dominates(other, points[i]); });
            const bool kept = std::find(front.begin(), front.end(), i) != front.end();
            RC_ASSERT(kept == !dominated);
        }
        RC_ASSERT(std::is_sorted(front.begin(), front.end(), [&](std::size_t a, std::size_t b) { return points[a].time < points[b].time; }));
    });
    EXPECT_TRUE(holds);
}

}  // namespace
}  // namespace ringside
