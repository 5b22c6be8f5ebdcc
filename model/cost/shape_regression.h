// ShapeRegression: a smooth function of a kernel's shape through measured values.
//
// Moving least squares in the logarithms of the shape: around the asked shape a plane is laid through the nearest samples, the
// nearer the heavier. It goes through every sample and follows a trend between and a little beyond them.
// docs/models/measured-tables.md.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "model/workload/kernel_work.h"

namespace ringside {

class ShapeRegression {
public:
    static constexpr std::size_t kDimensions = 5;
    /// log2 of batch, m, n, k and of bytes per FLOP (0 where nobody measured bytes).
    using Point = std::array<double, kDimensions>;
    static Point pointOf(const GemmShape& shape, double bytesPerFlop = 1);

    /// Values of one point are averaged.
    void add(const Point& point, double value);
    bool empty() const { return samples_.empty(); }

    /// The value at a sample, else that of the plane, kept within the range of the nearest samples and a little beyond. O(samples),
    /// allocates nothing. REQUIRES: not empty.
    double at(const Point& point) const;

private:
    struct Sample {
        Point point;
        double value;
        int count;
    };
    std::vector<Sample> samples_;
};

}  // namespace ringside
