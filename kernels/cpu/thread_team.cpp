#include "kernels/cpu/thread_team.h"

#include "kernels/cpu/openmp_threads.h"

namespace ringside {

ThreadTeam::~ThreadTeam() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
}

void ThreadTeam::runShare(const Job& job, int member) {
    if (member >= job.parts) return;
    job.call(job.body, {job.count * member / job.parts, job.count * (member + 1) / job.parts, member});
}

void ThreadTeam::runAll(const Job& job) {
    {
        const std::lock_guard lock(mutex_);
        while (static_cast<int>(helpers_.size()) < threads_ - 1) {
            const int member = static_cast<int>(helpers_.size()) + 1;
            helpers_.emplace_back([this, member] { helperLoop(member); });
        }
        job_ = job;
        ++generation_;
        running_ = threads_ - 1;
    }
    changed_.notify_all();
    runShare(job, 0);
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return running_ == 0; });
}

void ThreadTeam::helperLoop(int member) {
    setOpenMpThreads(1);  // a library call from inside a share stays on this thread
    std::uint64_t seen = 0;
    for (;;) {
        Job job;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stopping_ || generation_ != seen; });
            if (stopping_) return;
            seen = generation_;
            job = job_;
        }
        runShare(job, member);
        const std::lock_guard lock(mutex_);
        if (--running_ == 0) finished_.notify_one();
    }
}

}  // namespace ringside
