// LatestWorker: one thread that always works on the newest question. Questions that came in between are never looked at.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace ringside::gui {

/// Safe to use from any thread. The destructor waits for the question that is being worked on and gives no answer any more.
template <class Question, class Answer>
class LatestWorker {
public:
    using Work = std::function<Answer(const Question&)>;
    /// Called on the worker's thread, with the ticket that ask() gave; tickets only grow.
    using Take = std::function<void(std::uint64_t ticket, Answer answer)>;

    LatestWorker(Work work, Take take) : work_(std::move(work)), take_(std::move(take)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

    /// Returns at once. A question that still waits is forgotten.
    std::uint64_t ask(Question question) {
        const std::lock_guard lock(mutex_);
        waiting_ = std::move(question);
        wake_.notify_one();
        return ++asked_;
    }

    /// Whether nothing waits and nothing is worked on.
    bool idle() const {
        const std::lock_guard lock(mutex_);
        return !waiting_ && !busy_;
    }

private:
    void run(const std::stop_token& stop) {
        while (true) {
            std::optional<Question> question;
            std::uint64_t ticket = 0;
            {
                std::unique_lock lock(mutex_);
                busy_ = false;
                if (!wake_.wait(lock, stop, [this] { return waiting_.has_value(); })) return;
                question = std::exchange(waiting_, std::nullopt);
                ticket = asked_;
                busy_ = true;
            }
            Answer answer = work_(*question);
            if (stop.stop_requested()) return;
            take_(ticket, std::move(answer));
        }
    }

    Work work_;
    Take take_;
    mutable std::mutex mutex_;
    std::condition_variable_any wake_;
    std::optional<Question> waiting_;
    std::uint64_t asked_ = 0;
    bool busy_ = false;
    std::jthread thread_;  ///< last: it starts when everything else is there, and ends first
};

}  // namespace ringside::gui
