#include "sim/engine/engine.h"

#include <gtest/gtest.h>

namespace ringside {
namespace {

constexpr Time ps(std::int64_t n) { return Time::fromPicoseconds(n); }

TEST(Engine, MovesItsClockToEachEvent) {
    Engine<int> engine;
    engine.schedule(ps(20), 0, 2);
    engine.schedule(ps(10), 0, 1);
    EXPECT_EQ(engine.next()->payload, 1);
    EXPECT_EQ(engine.now(), ps(10));
    EXPECT_EQ(engine.next()->payload, 2);
    EXPECT_EQ(engine.now(), ps(20));
    EXPECT_FALSE(engine.next());
}

TEST(Engine, ACancelledEventNeverRuns) {
    Engine<int> engine;
    const EventHandle doomed = engine.schedule(ps(10), 0, 1);
    engine.schedule(ps(20), 0, 2);
    EXPECT_TRUE(engine.cancel(doomed));
    EXPECT_FALSE(engine.cancel(doomed));
    EXPECT_EQ(engine.pending(), 1u);
    EXPECT_EQ(engine.next()->payload, 2);
    EXPECT_TRUE(engine.empty());
}

TEST(Engine, AnOldHandleDoesNotCancelTheEventThatReusesItsSlot) {
    Engine<int> engine;
    const EventHandle first = engine.schedule(ps(10), 0, 1);
    engine.next();
    const EventHandle second = engine.schedule(ps(30), 0, 2);
    EXPECT_EQ(first.slot, second.slot);
    EXPECT_FALSE(engine.cancel(first));
    EXPECT_EQ(engine.next()->payload, 2);
}

TEST(Engine, TwoEnginesShareNothing) {
    Engine<int> a;
    Engine<int, BinaryHeapQueue> b;
    a.schedule(ps(10), 0, 1);
    b.schedule(ps(5), 0, 2);
    EXPECT_EQ(a.next()->payload, 1);
    EXPECT_EQ(b.now(), Time());
    EXPECT_EQ(b.next()->payload, 2);
}

}  // namespace
}  // namespace ringside
