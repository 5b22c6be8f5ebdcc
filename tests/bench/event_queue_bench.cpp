// Event queues in the hold model: pop one, push one later. Both queues run in turn within one benchmark; `ratio` is the
// heap's time over the calendar's, so that a busy machine slows both alike.
#include <benchmark/benchmark.h>
#include <time.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "sim/engine/event_queue.h"

namespace {

using namespace ringside;

struct Payload {
    std::uint64_t a, b;
};

enum Shape : std::int64_t { Uniform, Exponential, TwoScales, HeavyTail, FewTimes };

std::vector<std::int64_t> increments(std::int64_t shape) {
    std::mt19937_64 random(1);
    std::vector<std::int64_t> values(1 << 16);
    for (std::int64_t& value : values) {
        const double u = static_cast<double>(random() >> 11) * 0x1p-53;
        switch (shape) {
            case Uniform: value = static_cast<std::int64_t>(u * 2e6); break;
            case Exponential: value = static_cast<std::int64_t>(-std::log1p(-u) * 1e6); break;
            case TwoScales: value = static_cast<std::int64_t>(random() % 10 ? u * 1e3 : u * 1e8); break;
            case HeavyTail: value = static_cast<std::int64_t>(std::pow(1 - u, -1 / 1.1) * 1e5); break;
            default: value = static_cast<std::int64_t>(random() % 4) * 1'000'000;
        }
    }
    return values;
}

double cpuSeconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Queue>
class Hold {
public:
    Hold(std::int64_t pending, const std::vector<std::int64_t>& steps) : steps_(steps) {
        for (std::int64_t i = 0; i < pending; ++i) queue_.push(Time::fromPicoseconds(step()), 0, Payload{0, 0});
        run(pending * 8);  // into the steady state
    }
    double run(std::int64_t count) {
        const double start = cpuSeconds();
        for (std::int64_t i = 0; i < count; ++i) {
            const auto event = queue_.pop();
            queue_.push(event.time + Time::fromPicoseconds(step()), 0, event.payload);
        }
        return cpuSeconds() - start;
    }

private:
    std::int64_t step() { return steps_[next_++ & 0xffff]; }
    const std::vector<std::int64_t>& steps_;
    std::size_t next_ = 0;
    Queue queue_;
};

void heapAgainstCalendar(benchmark::State& state) {
    constexpr std::int64_t kEvents = 100'000;
    const auto steps = increments(state.range(1));
    Hold<BinaryHeapQueue<Payload>> heap(state.range(0), steps);
    Hold<CalendarQueue<Payload>> calendar(state.range(0), steps);
    double heapSeconds = 0, calendarSeconds = 0;
    for (auto _ : state) {
        heapSeconds += heap.run(kEvents);
        const double seconds = calendar.run(kEvents);
        calendarSeconds += seconds;
        state.SetIterationTime(seconds);
    }
    const double events = static_cast<double>(kEvents) * static_cast<double>(state.iterations());
    state.counters["heap_ns"] = heapSeconds / events * 1e9;
    state.counters["calendar_ns"] = calendarSeconds / events * 1e9;
    state.counters["ratio"] = heapSeconds / calendarSeconds;
}
BENCHMARK(heapAgainstCalendar)
    ->Name("EventQueue/HeapAgainstCalendar")
    ->ArgNames({"pending", "shape"})
    ->ArgsProduct({{16, 1024, 16384}, {Uniform, Exponential, TwoScales, HeavyTail, FewTimes}})
    ->UseManualTime();

}  // namespace
