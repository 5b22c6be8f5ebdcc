// StreamWorker: a stream of the CPU device: a thread that runs what it is given, in order.
//
// Every item gets a ticket, counted from 1; an event is a stream and the ticket that it had reached. Putting an item into the
// queue of a busy worker takes no system call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/device.h"

namespace ringside {

/// The first error of any stream since the last take(). Work that comes after it is skipped on every stream.
class StreamFailure {
public:
    bool failed() const { return failed_.load(std::memory_order_acquire); }
    void set(Error error);
    std::optional<Error> first() const;
    std::optional<Error> take();

private:
    std::atomic<bool> failed_{false};
    mutable std::mutex mutex_;
    std::optional<Error> error_;
};

class StreamWorker {
public:
    struct Options {
        std::string name;              ///< of the thread, for debuggers; the first 15 characters count
        bool spin = false;             ///< look for work for some microseconds before sleeping; never where one core is all there is
        std::function<void*()> start;  ///< runs first on the thread; what it returns is StreamContext::native
    };
    StreamWorker(Options options, StreamFailure& failure);
    /// Runs what is queued, then ends.
    ~StreamWorker();
    StreamWorker(const StreamWorker&) = delete;
    StreamWorker& operator=(const StreamWorker&) = delete;

    void issue(StreamWork work, WorkTimes* times);
    /// The worker goes on when `other` has reached the ticket. `other` must outlive the items of this one.
    void waitFor(const StreamWorker& other, std::uint64_t ticket);
    /// The ticket of the last item that was put in.
    std::uint64_t lastTicket() const;
    /// Blocks until the item with this ticket, and so all before it, is done.
    void await(std::uint64_t ticket) const;

private:
    struct Item {
        StreamWork work;
        WorkTimes* times = nullptr;
        const StreamWorker* other = nullptr;
        std::uint64_t ticket = 0;
    };
    void push(Item item);
    void loop();
    bool takeBatch(std::vector<Item>& batch);
    void execute(Item& item, const StreamContext& context);
    void complete();

    const Options options_;
    StreamFailure& failure_;

    mutable std::mutex queueMutex_;
    std::condition_variable queueChanged_;
    std::vector<Item> queue_;
    std::atomic<std::uint64_t> pushed_{0};
    bool sleeping_ = false, stopping_ = false;

    std::atomic<std::uint64_t> completed_{0};
    mutable std::atomic<int> waiters_{0};
    mutable std::mutex doneMutex_;
    mutable std::condition_variable done_;

    std::thread thread_;  // last: it uses all of the above
};

}  // namespace ringside
