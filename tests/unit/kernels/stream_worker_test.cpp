// The CPU's streams where only they can be tested: with work that blocks until the test lets it go.
#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/stream_worker.h"

namespace ringside {
namespace {

class StreamWorkers : public testing::TestWithParam<bool> {
protected:
    std::unique_ptr<StreamWorker> worker(const char* name) { return std::make_unique<StreamWorker>(StreamWorker::Options{name, GetParam(), {}}, failure_); }
    static StreamWork blockOn(std::latch& gate) {
        return [&gate](const StreamContext&) -> Result<void> {
            gate.wait();
            return {};
        };
    }
    static StreamWork append(std::vector<int>& list, int value) {
        return [&list, value](const StreamContext&) -> Result<void> {
            list.push_back(value);
            return {};
        };
    }
    StreamFailure failure_;
};
INSTANTIATE_TEST_SUITE_P(Idle, StreamWorkers, testing::Values(false, true), [](const auto& parameter) { return parameter.param ? std::string("Spinning") : std::string("Sleeping"); });

TEST_P(StreamWorkers, TakeWorkWhileBusyAndRunItInOrder) {
    std::latch gate(1);
    std::vector<int> order;
    const auto a = worker("a");
    a->issue(blockOn(gate), nullptr);
    for (int i = 0; i < 1000; ++i) a->issue(append(order, i), nullptr);
    EXPECT_EQ(a->lastTicket(), 1001U);
    gate.count_down();
    a->await(a->lastTicket());
    ASSERT_EQ(order.size(), 1000U);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_P(StreamWorkers, HoldBackWhatWaitsForAnotherAndRunWhatDoesNot) {
    std::latch gate(1);
    std::atomic<bool> passed{false};
    std::vector<int> order;
    const auto a = worker("a"), b = worker("b");
    a->issue(blockOn(gate), nullptr);
    b->issue(append(order, 1), nullptr);
    const std::uint64_t before = b->lastTicket();
    b->waitFor(*a, a->lastTicket());
    b->issue([&](const StreamContext&) -> Result<void> {
        passed = true;
        return {};
    }, nullptr);
    b->await(before);
    EXPECT_EQ(order, std::vector<int>{1});
    EXPECT_FALSE(passed.load()) << "a is still at its first item";
    gate.count_down();
    b->await(b->lastTicket());
    EXPECT_TRUE(passed.load());
}

TEST_P(StreamWorkers, WakeEveryoneWhoWaits) {
    std::latch gate(1);
    const auto a = worker("a");
    a->issue(blockOn(gate), nullptr);
    std::atomic<int> woken{0};
    std::vector<std::thread> waiting;
    for (int i = 0; i < 4; ++i)
        waiting.emplace_back([&] {
            a->await(1);
            ++woken;
        });
    gate.count_down();
    for (std::thread& thread : waiting) thread.join();
    EXPECT_EQ(woken.load(), 4);
}

TEST_P(StreamWorkers, TakeWorkFromSeveralThreads) {
    std::atomic<int> ran{0};
    const auto a = worker("a");
    std::vector<std::thread> issuing;
    for (int i = 0; i < 4; ++i)
        issuing.emplace_back([&] {
            for (int k = 0; k < 500; ++k)
                a->issue([&](const StreamContext&) -> Result<void> {
                    ++ran;
                    return {};
                }, nullptr);
        });
    for (std::thread& thread : issuing) thread.join();
    a->await(a->lastTicket());
    EXPECT_EQ(ran.load(), 2000);
}

TEST_P(StreamWorkers, SkipOnAllStreamsWhatComesAfterAnError) {
    std::vector<int> order;
    const auto a = worker("a"), b = worker("b");
    a->issue([](const StreamContext&) -> Result<void> { throw std::runtime_error("thrown"); }, nullptr);
    a->await(1);
    a->issue(append(order, 1), nullptr);
    b->issue(append(order, 2), nullptr);
    a->await(a->lastTicket());
    b->await(b->lastTicket());
    EXPECT_TRUE(order.empty());
    const auto error = failure_.take();
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->toString(), "stream a: thrown");
    EXPECT_FALSE(failure_.failed());
    a->issue(append(order, 3), nullptr);
    a->await(a->lastTicket());
    EXPECT_EQ(order, std::vector<int>{3});
}

TEST_P(StreamWorkers, FinishWhatIsQueuedBeforeTheyEnd) {
    std::vector<int> order;
    {
        const auto a = worker("a");
        for (int i = 0; i < 100; ++i) a->issue(append(order, i), nullptr);
    }
    EXPECT_EQ(order.size(), 100U);
}

TEST_P(StreamWorkers, LetGoOfWhatWorkHeldBeforeItIsDone) {
    auto held = std::make_shared<int>(1);
    const auto a = worker("a");
    a->issue([held](const StreamContext&) -> Result<void> { return {}; }, nullptr);
    a->await(1);
    EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace ringside
