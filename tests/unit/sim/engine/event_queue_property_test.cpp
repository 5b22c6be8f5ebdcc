// Laws of every event queue: the order is total and first-in-first-out, whatever is pushed and popped when.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "sim/engine/event_queue.h"

namespace ringside {
namespace {

struct Pushed {
    std::int64_t time;
    int priority;
    std::uint32_t order;
};

template <template <class> class Queue>
bool anySequenceOfPushesAndPopsFollowsTheOrder() {
    return rc::check([] {
        Queue<std::uint32_t> queue;
        std::vector<Pushed> model;
        const std::int64_t range = *rc::gen::element<std::int64_t>(1, 4, 1'000, 1'000'000'000'000);
        const auto operations = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 5));
        std::uint32_t order = 0;
        const auto popOne = [&] {
            const auto first = std::min_element(model.begin(), model.end(), [](const Pushed& a, const Pushed& b) {
                return std::tie(a.time, a.priority, a.order) < std::tie(b.time, b.priority, b.order);
            });
            RC_ASSERT(queue.peekTime().picoseconds() == first->time);
            RC_ASSERT(queue.peek().payload == first->order);
            RC_ASSERT(queue.pop().payload == first->order);
            model.erase(first);
        };
        for (const int operation : operations) {
            // Bursts, so that the calendar lays windows and not only sorts.
            const int count = operation == 4 ? 60 : 1;
            for (int i = 0; i < count; ++i) {
                if (operation == 0 && !model.empty()) {
                    popOne();
                    continue;
                }
                const Pushed event{*rc::gen::inRange<std::int64_t>(0, range), *rc::gen::inRange(0, 3), order++};
                queue.push(Time::fromPicoseconds(event.time), static_cast<std::uint16_t>(event.priority), event.order);
                model.push_back(event);
            }
            RC_ASSERT(queue.size() == model.size());
        }
        while (!model.empty()) popOne();
        RC_ASSERT(queue.empty());
    });
}

TEST(EventQueueLaws, BinaryHeapFollowsTheTotalOrder) { ASSERT_TRUE(anySequenceOfPushesAndPopsFollowsTheOrder<BinaryHeapQueue>()); }
TEST(EventQueueLaws, CalendarFollowsTheTotalOrder) { ASSERT_TRUE(anySequenceOfPushesAndPopsFollowsTheOrder<CalendarQueue>()); }

}  // namespace
}  // namespace ringside
