// KernelTable: the time of a kernel that was measured under its own name.
//
// Memory kernels follow their curve of seconds over bytes; arithmetic kernels the rate of the nearest measured shapes.
// docs/models/measured-tables.md.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/cost/measurements.h"
#include "model/cost/shape_regression.h"

namespace ringside {

/// Seconds over bytes. Between points a straight line in the logarithms of both; beyond the last its rate goes on; before the first
/// a fixed time and a rate, from the first two points.
class MemoryCurve {
public:
    /// REQUIRES: points not empty, seconds above 0. Points of one size are averaged.
    explicit MemoryCurve(const std::vector<KernelPoint>& points);
    /// O(log points). Above 0 for any bytes ≥ 0.
    double seconds(double bytes) const;

private:
    std::vector<std::pair<double, double>> points_;  // bytes, seconds; by bytes
    double fixed_ = 0, perByte_ = 0;                 // before the first point
};

/// Immutable; safe to use from many threads.
class KernelTable {
public:
    /// REQUIRES: what kernelPointsFromJson checks.
    explicit KernelTable(const KernelPoints& kernels);

    /// Nothing where neither the kernel (of that arithmetic type and mask) nor, for a memory kernel, "*" was measured. Allocates
    /// nothing; O(points of the kernel).
    std::optional<double> seconds(const KernelWork& work) const;

private:
    using Kind = std::pair<DType, bool>;  // arithmetic type, causal
    std::map<std::string, MemoryCurve, std::less<>> memory_;
    std::map<std::string, std::map<Kind, ShapeRegression>, std::less<>> arithmetic_;  // logarithm of seconds per FLOP
};

}  // namespace ringside
