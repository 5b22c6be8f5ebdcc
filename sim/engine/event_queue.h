// Event queues: the next event by (time, priority, sequence), a total order that is first-in-first-out among equals.
//
// Two interchangeable concrete classes with the same functions; there is no virtual call, a user is a template over the
// queue or simply names one. One test body runs over both. n is the number of pending events, E = sizeof(Event<Payload>).
//
//   class             push                  pop                   memory at most     choose it when
//   BinaryHeapQueue   O(log n)              O(log n)              n·E                few events, or as the reference
//   CalendarQueue     O(1) amortised,       O(1) amortised,       n·(4·E + 12)       hundreds of events and more
//                     O(log n) at worst     O(log n) at worst
//
// Memory in bytes at the highest n so far, without the spare room of vectors. The calendar's stores (open bucket, late
// heap, buckets, overflow) may each have held much at different times; in the hold model it stays near n·(2·E + 12).
// "At worst" is the case of very many events at nearly one instant, which fall into one bucket; they are sorted once.
// Neither allocates per event: storage grows to the high-water mark and is reused. Not thread-safe; one queue belongs to
// one simulation, and any number of queues may live in one process.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/base/check.h"
#include "model/base/units.h"

namespace ringside {

/// One event. 16 bytes plus the payload: 24 with an 8-byte payload, 32 with a 16-byte one.
/// Lower priority values run first among events of one instant; the sequence is the push count of the queue (48 bits).
template <class Payload>
struct Event {
    Time time;
    std::uint64_t key = 0;  ///< priority << 48 | sequence
    Payload payload{};

    std::uint16_t priority() const { return static_cast<std::uint16_t>(key >> 48); }
    std::uint64_t sequence() const { return key & ((std::uint64_t{1} << 48) - 1); }

    /// The total order of events: no two events of one queue compare equal.
    bool before(const Event& other) const {
        // Without a branch, because in a heap it could not be predicted.
        return (static_cast<int>(time < other.time) | (static_cast<int>(time == other.time) & static_cast<int>(key < other.key))) != 0;
    }
};

namespace detail {

constexpr std::uint64_t eventKey(std::uint16_t priority, std::uint64_t sequence) {
    return (std::uint64_t{priority} << 48) | sequence;
}

/// A binary min-heap of events over one vector.
template <class E>
class EventHeap {
public:
    bool empty() const { return events_.empty(); }
    std::size_t size() const { return events_.size(); }
    const E& top() const { return events_.front(); }
    void push(const E& event) {
        events_.push_back(event);
        std::push_heap(events_.begin(), events_.end(), later);
    }
    E pop() {
        std::pop_heap(events_.begin(), events_.end(), later);
        E event = std::move(events_.back());
        events_.pop_back();
        return event;
    }
    void clear() { events_.clear(); }

private:
    static bool later(const E& a, const E& b) { return b.before(a); }
    std::vector<E> events_;
};

}  // namespace detail

/// The plain binary heap. Payload: trivially copyable, default constructible.
template <class Payload>
class BinaryHeapQueue {
public:
    using EventType = Event<Payload>;
    static_assert(std::is_trivially_copyable_v<Payload>, "events are moved in bulk; keep big state elsewhere and push its index");

    /// Any time in ±Time::max() is allowed, also one before the last popped (the engine forbids that, the queue does not).
    void push(Time time, std::uint16_t priority, Payload payload) {
        heap_.push(EventType{time, detail::eventKey(priority, sequence_++), payload});
    }
    /// Removes and returns the first event. REQUIRES: !empty().
    EventType pop() { return heap_.pop(); }
    /// Time of the first event. REQUIRES: !empty(). Not const: the calendar may have to open its next bucket.
    Time peekTime() { return heap_.top().time; }
    /// The first event, valid until the next push or pop. REQUIRES: !empty().
    const EventType& peek() { return heap_.top(); }
    bool empty() const { return heap_.empty(); }
    std::size_t size() const { return heap_.size(); }
    /// Forgets all events and restarts the sequence; keeps the storage.
    void clear() {
        heap_.clear();
        sequence_ = 0;
    }

private:
    detail::EventHeap<EventType> heap_;
    std::uint64_t sequence_ = 0;
};

/// A calendar of unsorted buckets over a window of time, refilled from an unsorted overflow list.
///
/// Time is cut in four: [… bottomEnd) sorted and being consumed, with a small heap for what is pushed in there late;
/// [bottomEnd … windowEnd) in buckets of 2^shift ps; and beyond that the overflow. When the window is used up, a new one
/// is laid over the overflow, its width taken from a sample of it, so that far outliers stay in the overflow.
/// Invariants: every event of `bottom_` and `late_` is before every bucketed one, every bucketed one before the overflow.
template <class Payload>
class CalendarQueue {
public:
    using EventType = Event<Payload>;
    static_assert(std::is_trivially_copyable_v<Payload>, "events are moved in bulk; keep big state elsewhere and push its index");

    /// Any time in ±Time::max() is allowed, also one before the last popped.
    void push(Time time, std::uint16_t priority, Payload payload) {
        ++size_;
        place(EventType{time, detail::eventKey(priority, sequence_++), payload});
    }
    /// Removes and returns the first event. REQUIRES: !empty().
    EventType pop() {
        const bool fromBottom = firstIsInBottom();
        --size_;
        return fromBottom ? bottom_[bottomNext_++] : late_.pop();
    }
    /// Time of the first event. REQUIRES: !empty().
    Time peekTime() { return peek().time; }
    /// The first event, valid until the next push or pop. REQUIRES: !empty().
    const EventType& peek() { return firstIsInBottom() ? bottom_[bottomNext_] : late_.top(); }
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    /// Forgets all events and restarts the sequence; keeps the storage.
    void clear() {
        bottom_.clear();
        late_.clear();
        overflow_.clear();
        nodes_.clear();
        std::fill(heads_.begin(), heads_.end(), kNone);
        std::fill(occupied_.begin(), occupied_.end(), 0);
        bottomNext_ = size_ = bucketCount_ = 0;
        freeNode_ = kNone;
        bottomEnd_ = Time::fromPicoseconds(std::numeric_limits<std::int64_t>::min());
        sequence_ = 0;
    }

private:
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    static constexpr std::size_t kSortDirectly = 48;  // overflow this small is sorted at once; no window is worth it

    struct Node {
        EventType event;
        std::uint32_t next;
    };

    // Distance from the window's start; REQUIRES: time ≥ windowStart_. Unsigned, so that it cannot overflow.
    std::uint64_t offset(Time time) const {
        return static_cast<std::uint64_t>(time.picoseconds()) - static_cast<std::uint64_t>(windowStart_.picoseconds());
    }

    void place(const EventType& event) {
        if (event.time < bottomEnd_) {
            late_.push(event);
            return;
        }
        const std::uint64_t bucket = offset(event.time) >> shift_;
        if (bucket < bucketCount_)
            link(static_cast<std::size_t>(bucket), event);
        else
            overflow_.push_back(event);
    }

    void link(std::size_t bucket, const EventType& event) {
        std::uint32_t node = freeNode_;
        if (node == kNone) {
            node = static_cast<std::uint32_t>(nodes_.size());
            nodes_.emplace_back();
        } else {
            freeNode_ = nodes_[node].next;
        }
        nodes_[node] = Node{event, heads_[bucket]};
        heads_[bucket] = node;
        occupied_[bucket >> 6] |= std::uint64_t{1} << (bucket & 63);
    }

    // Opens the next bucket if need be, and says on which side of the late heap the first event stands.
    bool firstIsInBottom() {
        if (bottomNext_ == bottom_.size()) {
            if (!late_.empty()) return false;
            refill();
            return true;
        }
        return late_.empty() || bottom_[bottomNext_].before(late_.top());
    }

    // Makes bottom_ hold the next events. REQUIRES: size_ > 0, bottom_ and late_ used up.
    void refill() {
        CHECK(size_ > 0);
        bottom_.clear();
        bottomNext_ = 0;
        if (!openNextBucket()) {
            layWindow();
            if (bottom_.empty()) CHECK(openNextBucket());
        }
    }

    // Moves the next occupied bucket, sorted, to bottom_. False if the window holds nothing more.
    bool openNextBucket() {
        if (bucketCount_ == 0) return false;
        std::size_t word = nextBucket_ >> 6;
        const std::size_t words = (bucketCount_ + 63) >> 6;
        while (word < words && occupied_[word] == 0) ++word;
        if (word == words) {
            bucketCount_ = 0;
            return false;
        }
        const std::size_t bucket = (word << 6) + static_cast<std::size_t>(std::countr_zero(occupied_[word]));
        occupied_[word] &= occupied_[word] - 1;
        std::uint32_t node = std::exchange(heads_[bucket], kNone);
        while (node != kNone) {
            bottom_.push_back(nodes_[node].event);
            const std::uint32_t next = nodes_[node].next;
            nodes_[node].next = freeNode_;
            freeNode_ = node;
            node = next;
        }
        sortBottom();
        nextBucket_ = bucket + 1;
        // The end of this bucket, kept within what a time can hold: widths are powers of two and may reach past it.
        const std::int64_t start = windowStart_.picoseconds();
        const std::uint64_t room = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - static_cast<std::uint64_t>(start);
        const std::uint64_t length = std::min(room, static_cast<std::uint64_t>(nextBucket_) << shift_);
        bottomEnd_ = Time::fromPicoseconds(static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + length));
        return true;
    }

    // A bucket's list runs from the last pushed to the first; most buckets hold a handful, for which insertion is best.
    // Simultaneous events reverse into sorted order at once.
    void sortBottom() {
        const std::size_t n = bottom_.size();
        if (n == 1) return;
        std::reverse(bottom_.begin(), bottom_.end());
        if (n <= 24) {
            for (std::size_t i = 1; i < n; ++i) {
                const EventType event = bottom_[i];
                std::size_t j = i;
                for (; j > 0 && event.before(bottom_[j - 1]); --j) bottom_[j] = bottom_[j - 1];
                bottom_[j] = event;
            }
            return;
        }
        const auto earlier = [](const EventType& a, const EventType& b) { return a.before(b); };
        if (!std::is_sorted(bottom_.begin(), bottom_.end(), earlier)) std::sort(bottom_.begin(), bottom_.end(), earlier);
    }

    // Lays a new window over the overflow and moves there what it covers. REQUIRES: overflow_ is not empty.
    void layWindow() {
        Time first = overflow_.front().time, last = first;
        for (const EventType& event : overflow_) {
            first = std::min(first, event.time);
            last = std::max(last, event.time);
        }
        if (overflow_.size() <= kSortDirectly || first == last) {
            // Few events, or all at one instant: sort them as they are. The overflow is in push order, hence reverse.
            bottom_.swap(overflow_);
            std::reverse(bottom_.begin(), bottom_.end());
            sortBottom();
            bottomEnd_ = last + Time::fromPicoseconds(1);
            bucketCount_ = 0;
            return;
        }
        windowStart_ = first;
        const std::uint64_t reach = windowReach(last);
        std::size_t count = std::bit_ceil(overflow_.size()) / 2;
        count = std::clamp<std::size_t>(count, 64, std::size_t{1} << 20);
        shift_ = 0;
        while ((reach >> shift_) >= count) ++shift_;
        bucketCount_ = count;
        if (heads_.size() < count) {
            heads_.resize(count, kNone);
            occupied_.resize((count + 63) >> 6, 0);
        }
        nextBucket_ = 0;
        bottomEnd_ = first;
        std::size_t kept = 0;
        for (const EventType& event : overflow_) {
            const std::uint64_t bucket = offset(event.time) >> shift_;
            if (bucket < bucketCount_)
                link(static_cast<std::size_t>(bucket), event);
            else
                overflow_[kept++] = event;
        }
        // A window that takes little of the overflow would have it scanned again and again: widen the next one.
        cautious_ = kept > overflow_.size() - overflow_.size() / 8;
        overflow_.resize(kept);
    }

    // How far the window reaches from its start: past about 7/8 of the overflow by a sample, or over all of it.
    std::uint64_t windowReach(Time last) const {
        if (cautious_) return offset(last);
        std::array<std::uint64_t, 64> sample;
        const std::size_t stride = std::max<std::size_t>(1, overflow_.size() / sample.size());
        std::size_t count = 0;
        for (std::size_t i = 0; i < overflow_.size() && count < sample.size(); i += stride) sample[count++] = offset(overflow_[i].time);
        const auto quantile = sample.begin() + static_cast<std::ptrdiff_t>(count - 1 - count / 8);
        std::nth_element(sample.begin(), quantile, sample.begin() + static_cast<std::ptrdiff_t>(count));
        return *quantile > 0 ? *quantile : offset(last);
    }

    std::vector<EventType> bottom_;          // sorted; consumed from bottomNext_ on
    std::size_t bottomNext_ = 0;
    Time bottomEnd_ = Time::fromPicoseconds(std::numeric_limits<std::int64_t>::min());
    detail::EventHeap<EventType> late_;      // pushed before bottomEnd_ after the bucket was opened
    std::vector<Node> nodes_;                // storage of the buckets' lists
    std::uint32_t freeNode_ = kNone;
    std::vector<std::uint32_t> heads_;       // per bucket: the node pushed last
    std::vector<std::uint64_t> occupied_;    // one bit per bucket
    std::size_t bucketCount_ = 0;            // 0: no window
    std::size_t nextBucket_ = 0;
    Time windowStart_;
    unsigned shift_ = 0;
    std::vector<EventType> overflow_;        // beyond the window, in push order
    bool cautious_ = false;
    std::size_t size_ = 0;
    std::uint64_t sequence_ = 0;
};

}  // namespace ringside
