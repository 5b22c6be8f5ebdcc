#include "model/cost/kernel_table.h"

#include <algorithm>
#include <cmath>

#include "model/base/check.h"

namespace ringside {

MemoryCurve::MemoryCurve(const std::vector<KernelPoint>& points) {
    CHECK(!points.empty());
    std::map<double, std::pair<double, int>> bySize;
    for (const KernelPoint& point : points) {
        auto& [sum, count] = bySize[point.bytes];
        sum += point.seconds;
        ++count;
    }
    for (const auto& [bytes, total] : bySize) points_.emplace_back(bytes, total.first / total.second);
    const auto [firstBytes, firstSeconds] = points_.front();
    if (points_.size() > 1) {
        const auto [bytes, seconds] = points_[1];
        perByte_ = std::max(0.0, (seconds - firstSeconds) / (bytes - firstBytes));
        // Smaller work is not free: a steep first segment must not push the fixed part below what any start-up costs.
        perByte_ = std::min(perByte_, firstBytes > 0 ? 0.9 * firstSeconds / firstBytes : 0.0);
    }
    fixed_ = firstSeconds - perByte_ * firstBytes;
}

double MemoryCurve::seconds(double bytes) const {
    if (bytes <= points_.front().first) return fixed_ + perByte_ * std::max(0.0, bytes);
    const auto [lastBytes, lastSeconds] = points_.back();
    if (bytes >= lastBytes) return lastBytes > 0 ? lastSeconds * bytes / lastBytes : lastSeconds;
    const auto above = std::upper_bound(points_.begin(), points_.end(), bytes, [](double b, const auto& point) { return b < point.first; });
    const auto [b0, s0] = *(above - 1);
    const auto [b1, s1] = *above;
    if (b0 <= 0) return s0 + (s1 - s0) * (bytes - b0) / (b1 - b0);
    return s0 * std::exp(std::log(s1 / s0) * std::log(bytes / b0) / std::log(b1 / b0));
}

KernelTable::KernelTable(const KernelPoints& kernels) {
    for (const auto& [name, points] : kernels) {
        if (points.empty()) continue;
        if (points.front().flops <= 0) {
            memory_.emplace(name, MemoryCurve(points));
            continue;
        }
        for (const KernelPoint& point : points)
            arithmetic_[name][{point.math, point.causal}].add(ShapeRegression::pointOf(point.shape, point.bytes / point.flops),
                                                              std::log(point.seconds / point.flops));
    }
}

std::optional<double> KernelTable::seconds(const KernelWork& work) const {
    if (work.cls == KernelClass::Memory) {
        auto curve = memory_.find(work.name);
        if (curve == memory_.end()) curve = memory_.find(std::string_view(kAnyMemoryKernel));
        if (curve == memory_.end()) return std::nullopt;
        return curve->second.seconds(work.bytes);
    }
    const auto byName = arithmetic_.find(work.name);
    if (byName == arithmetic_.end() || work.flops <= 0) return std::nullopt;
    const auto table = byName->second.find({work.math, work.causal});
    if (table == byName->second.end()) return std::nullopt;
    return work.flops * std::exp(table->second.at(ShapeRegression::pointOf(work.shape, work.bytes / work.flops)));
}

}  // namespace ringside
