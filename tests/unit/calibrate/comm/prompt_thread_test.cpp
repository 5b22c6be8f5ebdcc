// Threads of collectives go before kernels, and give that up again.
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
        EXPECT_EQ(sched_getscheduler(0), PromptScope::allowed() ? SCHED_FIFO : before);
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
    EXPECT_EQ(inside, PromptScope::allowed() ? SCHED_FIFO : before);
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
    EXPECT_EQ(there, PromptScope::allowed() ? SCHED_FIFO : before);
    EXPECT_EQ(sched_getscheduler(0), before);
}

}  // namespace
}  // namespace ringside
