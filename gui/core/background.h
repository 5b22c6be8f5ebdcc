// Background: one piece of work at a time off the GUI's thread. A new one makes the old one's answer unwanted.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

#include <QMetaObject>
#include <QObject>

namespace ringside::gui {

/// Belongs to a widget or another QObject of the GUI's thread. Nothing here waits, but for the destructor: it asks whatever still
/// runs to stop and joins it, so `work` must look at its stop_token now and then, and may use what outlives this object.
class Background : public QObject {
    Q_OBJECT
public:
    explicit Background(QObject* parent = nullptr) : QObject(parent) {}
    ~Background() override {
        for (auto& [ticket, thread] : threads_) thread.request_stop();
        threads_.clear();
    }

    /// Runs work(stop) on a thread of its own, then done(answer) on this one, unless start() or cancel() was called in between.
    template <class Work, class Done>
    void start(Work work, Done done) {
        cancel();
        const std::uint64_t ticket = ++ticket_;
        running_ = true;
        threads_[ticket] = std::jthread([this, ticket, work = std::move(work), done = std::move(done)](std::stop_token stop) mutable {
            auto answer = std::make_shared<decltype(work(stop))>(work(stop));
            QMetaObject::invokeMethod(this, [this, ticket, answer, done = std::move(done)]() mutable {
                threads_.erase(ticket);
                if (ticket != ticket_ || !running_) return;
                running_ = false;
                done(std::move(*answer));
            }, Qt::QueuedConnection);
        });
    }

    /// Whatever runs is told to stop, and its answer is not wanted.
    void cancel() {
        running_ = false;
        for (auto& [ticket, thread] : threads_) thread.request_stop();
    }

    bool running() const { return running_; }

private:
    std::map<std::uint64_t, std::jthread> threads_;
    std::uint64_t ticket_ = 0;
    bool running_ = false;
};

}  // namespace ringside::gui
