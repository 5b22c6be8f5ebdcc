// ThreadTeam: the threads of one kernel: splits a range among them and waits for all.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace ringside {

/// A stretch of the range, and which member of the team (0 is the calling thread) has it.
struct TeamShare {
    std::int64_t begin = 0, end = 0;
    int member = 0;
};

class ThreadTeam {
public:
    /// Other threads than the caller's start when they are first needed and run where their maker may run.
    explicit ThreadTeam(int threads) : threads_(threads) {}
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int threads() const { return threads_; }

    /// Calls body(TeamShare) on stretches of [0, count) that are at least `grain` long, at most one per thread.
    /// REQUIRES: body does not throw.
    template <class Body>
    void parallelFor(std::int64_t count, std::int64_t grain, const Body& body) {
        if (count <= 0) return;
        const std::int64_t wanted = grain > 0 ? count / grain : count;
        const int parts = static_cast<int>(wanted < threads_ ? (wanted > 1 ? wanted : 1) : threads_);
        if (parts == 1) return body(TeamShare{0, count, 0});
        runAll({[](const void* b, const TeamShare& share) { (*static_cast<const Body*>(b))(share); }, &body, count, parts});
    }

private:
    struct Job {
        void (*call)(const void*, const TeamShare&) = nullptr;
        const void* body = nullptr;
        std::int64_t count = 0;
        int parts = 0;
    };
    void runAll(const Job& job);
    void helperLoop(int member);
    static void runShare(const Job& job, int member);

    const int threads_;
    std::mutex mutex_;
    std::condition_variable changed_, finished_;
    std::uint64_t generation_ = 0;
    int running_ = 0;
    bool stopping_ = false;
    Job job_;
    std::vector<std::thread> helpers_;
};

}  // namespace ringside
