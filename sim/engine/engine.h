// Engine: a clock and a queue of payloads, with cancellation. Any number of engines may live in one process.
//
//     Engine<Task*> engine;
//     auto timeout = engine.schedule(engine.now() + delay, kPriority, task);
//     engine.cancel(timeout);
//     while (auto event = engine.next()) handle(event->payload);   // the clock stands at event->time
//
// Models never see the queue, and the engine never sees a formula: it only knows when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/check.h"
#include "model/base/units.h"
#include "sim/engine/event_queue.h"

namespace ringside {

/// Names one scheduled event. Stays harmless for ever: cancelling after the event ran, or twice, does nothing.
struct EventHandle {
    std::uint32_t slot = ~std::uint32_t{0};
    std::uint32_t generation = 0;
};

/// Payload: trivially copyable. Queue: BinaryHeapQueue or CalendarQueue (event_queue.h).
/// A slot is reused when its event has run or been cancelled; its generation then counts up, so that old handles and the
/// queue's entry of a cancelled event are recognised as stale. Memory: O(most events pending at once).
template <class Payload, template <class> class Queue = CalendarQueue>
class Engine {
public:
    struct Fired {
        Time time;
        std::uint16_t priority;
        Payload payload;
    };

    /// The time of the last event that ran; starts at zero.
    Time now() const { return now_; }
    bool empty() const { return pending_ == 0; }
    /// Events scheduled and neither run nor cancelled.
    std::size_t pending() const { return pending_; }

    /// Runs `payload` at `time`: lower priorities first within an instant, then in the order of scheduling.
    /// REQUIRES: time ≥ now().
    EventHandle schedule(Time time, std::uint16_t priority, Payload payload) {
        CHECK(time >= now_);
        std::uint32_t slot;
        if (free_.empty()) {
            slot = static_cast<std::uint32_t>(slots_.size());
            slots_.push_back(Slot{payload, 0});
        } else {
            slot = free_.back();
            free_.pop_back();
            slots_[slot].payload = payload;
        }
        const EventHandle handle{slot, slots_[slot].generation};
        queue_.push(time, priority, handle);
        ++pending_;
        return handle;
    }

    /// True if the event was still to come, and now never will.
    bool cancel(EventHandle handle) {
        if (!isPending(handle)) return false;
        release(handle.slot);
        return true;
    }
    bool isPending(EventHandle handle) const {
        return handle.slot < slots_.size() && slots_[handle.slot].generation == handle.generation;
    }

    /// Takes the next event and moves the clock to it; nothing if none is left.
    std::optional<Fired> next() {
        while (!queue_.empty()) {
            const auto event = queue_.pop();
            if (!isPending(event.payload)) continue;
            now_ = event.time;
            Fired fired{event.time, event.priority(), slots_[event.payload.slot].payload};
            release(event.payload.slot);
            return fired;
        }
        return std::nullopt;
    }

private:
    struct Slot {
        Payload payload;
        std::uint32_t generation;
    };

    void release(std::uint32_t slot) {
        ++slots_[slot].generation;
        free_.push_back(slot);
        --pending_;
    }

    Queue<EventHandle> queue_;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> free_;
    std::size_t pending_ = 0;
    Time now_;
};

}  // namespace ringside
