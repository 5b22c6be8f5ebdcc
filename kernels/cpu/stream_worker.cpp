#include "kernels/cpu/stream_worker.h"

#include <pthread.h>

#include <chrono>
#include <exception>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ringside {

namespace {

constexpr std::chrono::microseconds kSpin{20};

void relax() {
#if defined(__x86_64__)
    _mm_pause();
#endif
}

/// True as soon as `ready`; false after kSpin.
template <class Ready>
bool spinUntil(const Ready& ready) {
    const auto end = std::chrono::steady_clock::now() + kSpin;
    do {
        for (int i = 0; i < 16; ++i) {
            if (ready()) return true;
            relax();
        }
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

std::int64_t nowNs() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

void StreamFailure::set(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_.store(true, std::memory_order_release);
}

std::optional<Error> StreamFailure::first() const {
    const std::lock_guard lock(mutex_);
    return error_;
}

std::optional<Error> StreamFailure::take() {
    const std::lock_guard lock(mutex_);
    failed_.store(false, std::memory_order_release);
    return std::exchange(error_, std::nullopt);
}

StreamWorker::StreamWorker(Options options, StreamFailure& failure) : options_(std::move(options)), failure_(failure), thread_([this] { loop(); }) {}

StreamWorker::~StreamWorker() {
    {
        const std::lock_guard lock(queueMutex_);
        stopping_ = true;
    }
    queueChanged_.notify_one();
    thread_.join();
}

void StreamWorker::issue(StreamWork work, WorkTimes* times) { push({std::move(work), times, nullptr, 0}); }

void StreamWorker::waitFor(const StreamWorker& other, std::uint64_t ticket) {
    // Its own order already holds for the stream itself; what is done needs no item.
    if (&other == this || other.completed_.load(std::memory_order_acquire) >= ticket) return;
    push({{}, nullptr, &other, ticket});
}

std::uint64_t StreamWorker::lastTicket() const { return pushed_.load(std::memory_order_acquire); }

void StreamWorker::push(Item item) {
    bool wake = false;
    {
        const std::lock_guard lock(queueMutex_);
        queue_.push_back(std::move(item));
        pushed_.fetch_add(1, std::memory_order_release);
        // Whoever wakes it takes the mark down, so that the next item does not pay for waking it again.
        wake = std::exchange(sleeping_, false);
    }
    if (wake) queueChanged_.notify_one();
}

bool StreamWorker::takeBatch(std::vector<Item>& batch) {
    const auto somethingNew = [this] { return pushed_.load(std::memory_order_acquire) != completed_.load(std::memory_order_relaxed); };
    if (options_.spin && !somethingNew()) spinUntil(somethingNew);
    std::unique_lock lock(queueMutex_);
    while (queue_.empty() && !stopping_) {
        sleeping_ = true;
        queueChanged_.wait(lock);
    }
    sleeping_ = false;
    batch.swap(queue_);
    return !batch.empty();
}

void StreamWorker::loop() {
    pthread_setname_np(pthread_self(), options_.name.substr(0, 15).c_str());
    const StreamContext context{options_.start ? options_.start() : nullptr};
    std::vector<Item> batch;
    while (takeBatch(batch)) {
        for (Item& item : batch) {
            execute(item, context);
            item.work = nullptr;  // what it holds is free before anybody hears that it is done
            complete();
        }
        batch.clear();
    }
}

void StreamWorker::execute(Item& item, const StreamContext& context) {
    if (item.other != nullptr) return item.other->await(item.ticket);
    if (failure_.failed()) return;
    WorkTimes times;
    times.beginNs = nowNs();
    try {
        Result<void> result = item.work(context);
        if (!result) failure_.set(std::move(result).error());
    } catch (const std::exception& exception) {
        failure_.set({ErrorCode::RuntimeFailure, exception.what(), "stream " + options_.name});
    }
    times.endNs = nowNs();
    if (item.times != nullptr) *item.times = times;
}

void StreamWorker::complete() {
    // Sequentially consistent with await(): either it sees the new count, or this sees that it waits.
    completed_.fetch_add(1, std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_seq_cst) == 0) return;
    { const std::lock_guard lock(doneMutex_); }
    done_.notify_all();
}

void StreamWorker::await(std::uint64_t ticket) const {
    const auto reached = [&] { return completed_.load(std::memory_order_seq_cst) >= ticket; };
    if (reached() || (options_.spin && spinUntil(reached))) return;
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    {
        std::unique_lock lock(doneMutex_);
        done_.wait(lock, reached);
    }
    waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace ringside
