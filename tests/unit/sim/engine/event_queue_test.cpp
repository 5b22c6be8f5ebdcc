// One test body for every event queue.
#include "sim/engine/event_queue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <tuple>

namespace ringside {
namespace {

using Payload = std::uint64_t;
static_assert(sizeof(Event<std::uint64_t>) == 24);
struct TwoWords {
    std::uint64_t a, b;
};
static_assert(sizeof(Event<TwoWords>) == 32);

constexpr Time ps(std::int64_t n) { return Time::fromPicoseconds(n); }

template <class Queue>
class EventQueue : public testing::Test {};
using Queues = testing::Types<BinaryHeapQueue<Payload>, CalendarQueue<Payload>>;
TYPED_TEST_SUITE(EventQueue, Queues);

TYPED_TEST(EventQueue, PopsByTime) {
    TypeParam queue;
    for (const std::int64_t t : {5, 1, 4, 2, 3}) queue.push(ps(t), 0, static_cast<Payload>(t));
    for (std::int64_t t = 1; t <= 5; ++t) {
        EXPECT_EQ(queue.peekTime(), ps(t));
        EXPECT_EQ(queue.pop().payload, static_cast<Payload>(t));
    }
    EXPECT_TRUE(queue.empty());
}

TYPED_TEST(EventQueue, PopsEqualTimesByPriorityThenFirstInFirstOut) {
    TypeParam queue;
    queue.push(ps(7), 2, 0);
    queue.push(ps(7), 1, 1);
    queue.push(ps(7), 2, 2);
    queue.push(ps(7), 0, 3);
    queue.push(ps(7), 1, 4);
    for (const Payload expected : {3u, 1u, 4u, 0u, 2u}) EXPECT_EQ(queue.pop().payload, expected);
}

TYPED_TEST(EventQueue, TenThousandSimultaneousEventsComeOutInPushOrder) {
    TypeParam queue;
    for (Payload i = 0; i < 10'000; ++i) queue.push(ps(3), 0, i);
    for (Payload i = 0; i < 5'000; ++i) ASSERT_EQ(queue.pop().payload, i);
    // Pushed at the instant that is being served: after all that were there before.
    for (Payload i = 10'000; i < 10'100; ++i) queue.push(ps(3), 0, i);
    for (Payload i = 5'000; i < 10'100; ++i) ASSERT_EQ(queue.pop().payload, i);
}

TYPED_TEST(EventQueue, TakesTimesBeforeTheLastPoppedAndAtBothEndsOfTheRange) {
    TypeParam queue;
    for (int i = 0; i < 200; ++i) queue.push(ps(1000 + i), 0, 1);
    queue.push(Time::max(), 0, 3);
    for (int i = 0; i < 100; ++i) queue.pop();
    queue.push(ps(-5), 0, 0);
    queue.push(ps(-Time::max().picoseconds()), 0, 9);
    EXPECT_EQ(queue.pop().payload, 9u);
    EXPECT_EQ(queue.pop().payload, 0u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(queue.pop().payload, 1u);
    EXPECT_EQ(queue.pop().time, Time::max());
    EXPECT_TRUE(queue.empty());
}

TYPED_TEST(EventQueue, SpansTheWholeRangeOfTimeInOneWindow) {
    TypeParam queue;
    const std::int64_t end = Time::max().picoseconds();
    for (std::int64_t i = 0; i < 128; ++i) {
        queue.push(ps(end - i), 0, 0);
        queue.push(ps(-end + i), 0, 0);
    }
    Time last = ps(-end);
    for (int i = 0; i < 256; ++i) {
        const Time time = queue.pop().time;
        EXPECT_LE(last, time);
        last = time;
    }
    EXPECT_EQ(last, Time::max());
}

TYPED_TEST(EventQueue, StartsAfreshWhenCleared) {
    TypeParam queue;
    for (int i = 0; i < 300; ++i) queue.push(ps(i * 10), 0, 0);
    for (int i = 0; i < 50; ++i) queue.pop();
    queue.clear();
    EXPECT_TRUE(queue.empty());
    queue.push(ps(1), 0, 42);
    const auto event = queue.pop();
    EXPECT_EQ(event.payload, 42u);
    EXPECT_EQ(event.sequence(), 0u);
}

// The hold model (pop one, push one later) against an ordered set, for increments of very different shapes.
TYPED_TEST(EventQueue, AgreesWithAnOrderedSetWhateverTheIncrements) {
    for (int shape = 0; shape < 6; ++shape) {
        std::mt19937_64 random(static_cast<std::uint64_t>(shape) + 1);
        const auto increment = [&]() -> std::int64_t {
            const double u = static_cast<double>(random() >> 11) * 0x1p-53;
            switch (shape) {
                case 0: return static_cast<std::int64_t>(u * 2e6);                            // uniform
                case 1: return static_cast<std::int64_t>(-std::log1p(-u) * 1e6);              // exponential
                case 2: return static_cast<std::int64_t>(random() % 10 ? u * 1e3 : u * 1e9);  // two scales
                case 3: return static_cast<std::int64_t>(std::pow(1 - u, -1.5) * 1e3);        // heavy tail
                case 4: return static_cast<std::int64_t>(random() % 3) * 1'000'000;           // few distinct times, zero too
                default: return 0;                                                            // time stands still
            }
        };
        for (const std::size_t pending : {3u, 100u, 3000u}) {
            TypeParam queue;
            std::set<std::tuple<Time, std::uint64_t, Payload>> reference;
            std::uint64_t sequence = 0;
            const auto push = [&](Time time) {
                const std::uint16_t priority = static_cast<std::uint16_t>(random() % 3);
                reference.emplace(time, (std::uint64_t{priority} << 48) | sequence, sequence);
                queue.push(time, priority, sequence++);
            };
            for (std::size_t i = 0; i < pending; ++i) push(ps(increment()));
            for (int i = 0; i < 20'000; ++i) {
                const auto event = queue.pop();
                const auto [time, key, payload] = *reference.begin();
                reference.erase(reference.begin());
                ASSERT_EQ(event.time, time) << "shape " << shape << " pending " << pending;
                ASSERT_EQ(event.key, key);
                ASSERT_EQ(event.payload, payload);
                push(event.time + ps(increment()));
                ASSERT_EQ(queue.size(), pending);
            }
        }
    }
}

}  // namespace
}  // namespace ringside
