#include "calibrate/comm/prompt_thread.h"

#include <atomic>

#include <sched.h>

namespace ringside {
namespace {

std::atomic<bool> allowedHere{true};  // until the host says no

constexpr int kPriority = 1;  // the least above all that is not real-time

bool setScheduling(int policy, int priority) {
    sched_param param{};
    param.sched_priority = priority;
    return sched_setscheduler(0, policy, &param) == 0;
}

}  // namespace

PromptScope::PromptScope() {
    if (!allowedHere.load(std::memory_order_relaxed)) return;
    const int policy = sched_getscheduler(0);
    sched_param param{};
    if (policy < 0 || sched_getparam(0, &param) != 0) return;
    if (!setScheduling(SCHED_RR, kPriority)) {
        allowedHere = false;
        return;
    }
    policyBefore_ = policy;
    priorityBefore_ = param.sched_priority;
}

PromptScope::~PromptScope() {
    if (policyBefore_ >= 0) setScheduling(policyBefore_, priorityBefore_);
}

void stayPrompt() { static thread_local const PromptScope always; }

bool PromptScope::allowed() { return allowedHere; }

void PromptScope::forbid() { allowedHere = false; }

}  // namespace ringside
