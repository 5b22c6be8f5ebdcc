// Counter geometry: a counter's series stacked, one column per pixel, from any number of samples.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/timeline/time_axis.h"
#include "traces/trace.h"

namespace ringside::gui {

/// Where the largest sum within each run of 16^k samples stands.
class CounterIndex {
public:
    CounterIndex() = default;
    explicit CounterIndex(const CounterSeries& counter);

    Bytes largest() const { return largest_; }
    /// The sample with the largest sum in [first, last). REQUIRES: first < last. O(log samples).
    std::size_t largestIn(std::size_t first, std::size_t last) const;
    Bytes sumAt(std::size_t sample) const { return sums_[sample]; }

private:
    std::vector<Bytes> sums_;
    std::vector<std::vector<std::uint32_t>> levels_;
    Bytes largest_ = 0;
};

/// The sample in force at t (the last at or before it); -1 before the first.
std::int64_t sampleAt(const CounterSeries& counter, Time t);

/// For each whole pixel of the axis the sample to show: the largest among those in force in it; -1 where there is none yet.
/// O(width × log samples).
void counterColumns(const CounterSeries& counter, const CounterIndex& index, const TimeAxis& axis, std::vector<std::int64_t>& out);

}  // namespace ringside::gui
