// Threads of collectives go before kernels, and give that up again.
#include <atomic>
#include <chrono>
#include <thread>

#include <sched.h>

#include <gtest/gtest.h>

#include "calibrate/comm/prompt_thread.h"

namespace ringside {
namespace {

TEST(PromptScope, EndsWithTheThreadAsItWas) {
    const int before = sched_getscheduler(0);
    {
        const PromptScope prompt;
        EXPECT_EQ(sched_getscheduler(0), PromptScope::allowed() ? SCHED_RR : before);
        const PromptScope again;  // as in a collective that is made of others
    }
    EXPECT_EQ(sched_getscheduler(0), before);
}

TEST(PromptScope, OnlyThreadsStartedWithinInheritIt) {
    const int before = sched_getscheduler(0);
    int inside = -1, outside = -1;
    {
        const PromptScope prompt;
        std::thread([&] { inside = sched_getscheduler(0); }).join();
    }
    std::thread([&] { outside = sched_getscheduler(0); }).join();
    EXPECT_EQ(inside, PromptScope::allowed() ? SCHED_RR : before);
    EXPECT_EQ(outside, before);
}

TEST(PromptScope, AThreadThatStaysPromptKeepsItToItself) {
    const int before = sched_getscheduler(0);
    int there = -1;
    std::thread([&] {
        stayPrompt();
        stayPrompt();
        there = sched_getscheduler(0);
    }).join();
    EXPECT_EQ(there, PromptScope::allowed() ? SCHED_RR : before);
    EXPECT_EQ(sched_getscheduler(0), before);
}

// The network thread turns round for a lock; who holds it has slept, and comes behind it on their core.
TEST(PromptScope, GivesWayToAnotherThatItTurnsRoundFor) {
    { const PromptScope probe; }
    if (!PromptScope::allowed()) GTEST_SKIP() << "the host does not allow it";
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::seconds kGiveUp(10);  // the slice is 100 ms
    std::atomic<bool> turning{false}, released{false};
    bool gotIt = false;
    std::thread([&] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        const PromptScope prompt;
        std::thread holder([&] {
            while (!turning) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            released = true;
        });
        std::thread network([&] {
            const Clock::time_point giveUp = Clock::now() + kGiveUp;
            turning = true;
            while (!released && Clock::now() < giveUp) {}
            gotIt = released;
        });
        holder.join();
        network.join();
    }).join();
    EXPECT_TRUE(gotIt);
}

}  // namespace
}  // namespace ringside
