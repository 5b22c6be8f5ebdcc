#include "traces/analysis/interval.h"

#include <bitset>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace ringside {
namespace {

Interval span(int begin, int end) { return {Time::fromPicoseconds(begin), Time::fromPicoseconds(end)}; }

TEST(Interval, UnionJoinsOverlappingAndTouchingIntervals) {
    EXPECT_EQ(unionOf({span(5, 9), span(0, 3), span(2, 4), span(4, 5)}), (IntervalSet{span(0, 9)}));
    EXPECT_EQ(unionOf({span(5, 9), span(0, 3)}), (IntervalSet{span(0, 3), span(5, 9)}));
}

TEST(Interval, EmptyAndReversedIntervalsCountAsNothing) { EXPECT_EQ(unionOf({span(3, 3), span(5, 2)}), IntervalSet{}); }

TEST(Interval, UnionKeepsTheLongerOfNestedIntervals) { EXPECT_EQ(unionOf({span(0, 10), span(2, 3)}), (IntervalSet{span(0, 10)})); }

TEST(Interval, DifferenceCutsOneIntervalIntoPieces) {
    EXPECT_EQ(difference(IntervalSet{span(0, 10)}, IntervalSet{span(2, 3), span(5, 7)}), (IntervalSet{span(0, 2), span(3, 5), span(7, 10)}));
}

TEST(Interval, OneIntervalMayCutTwo) {
    EXPECT_EQ(difference(IntervalSet{span(0, 4), span(6, 10)}, IntervalSet{span(3, 7)}), (IntervalSet{span(0, 3), span(7, 10)}));
}

TEST(Interval, ClipKeepsWhatLiesInTheWindow) {
    EXPECT_EQ(clip(IntervalSet{span(0, 4), span(6, 10)}, Time::fromPicoseconds(3), Time::fromPicoseconds(7)), (IntervalSet{span(3, 4), span(6, 7)}));
    EXPECT_EQ(clip(IntervalSet{span(0, 4)}, Time::fromPicoseconds(3), Time::fromPicoseconds(3)), IntervalSet{});
}

using Instants = std::bitset<64>;

Instants instantsOf(std::span<const Interval> intervals) {
    Instants result;
    for (const Interval& i : intervals)
        for (auto t = i.begin.picoseconds(); t < i.end.picoseconds(); ++t) result.set(static_cast<std::size_t>(t));
    return result;
}

bool isSet(const IntervalSet& set) {
    for (std::size_t i = 0; i < set.size(); ++i)
        if (set[i].begin >= set[i].end || (i > 0 && set[i].begin <= set[i - 1].end)) return false;
    return true;
}

std::vector<Interval> anyIntervals() {
    std::vector<Interval> result;
    for (const auto& [a, b] : *rc::gen::container<std::vector<std::pair<int, int>>>(rc::gen::pair(rc::gen::inRange(0, 64), rc::gen::inRange(0, 64))))
        result.push_back(span(a, b));
    return result;
}

TEST(Interval, EveryOperationAgreesWithSetsOfInstants) {
    ASSERT_TRUE(rc::check([] {
        const std::vector<Interval> rawA = anyIntervals(), rawB = anyIntervals();
        const IntervalSet a = unionOf(rawA), b = unionOf(rawB);
        const Instants x = instantsOf(rawA), y = instantsOf(rawB);
        const IntervalSet both = intersection(a, b), either = unionOf(a, b), rest = difference(a, b);
        RC_ASSERT(isSet(a) && isSet(both) && isSet(either) && isSet(rest));
        RC_ASSERT(instantsOf(a) == x);
        RC_ASSERT(instantsOf(both) == (x & y));
        RC_ASSERT(instantsOf(either) == (x | y));
        RC_ASSERT(instantsOf(rest) == (x & ~y));
        RC_ASSERT(lengthOf(a).picoseconds() == static_cast<std::int64_t>(x.count()));
        RC_ASSERT(intersectionLength(a, b).picoseconds() == static_cast<std::int64_t>((x & y).count()));
    }));
}

}  // namespace
}  // namespace ringside
