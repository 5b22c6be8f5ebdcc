#include "calibrate/fit/repeat_spread.h"

#include <algorithm>
#include <cmath>

namespace ringside {
namespace {

template <class Point>
void share(std::vector<Point>& points) {
    double squares = 0;
    for (const Point& point : points) squares += point.relativeSpread * point.relativeSpread;
    for (Point& point : points) point.relativeSpread = std::max(point.relativeSpread, std::sqrt(squares / static_cast<double>(points.size())));
}

double secondsOf(const GemmSample& sample) {
    const GemmShape& s = sample.shape;
    return 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) / (sample.tflops * 1e12);
}

}  // namespace

void shareSpread(std::vector<GemmSample>& table) { share(table); }
void shareSpread(std::vector<CollectivePoint>& curve) { share(curve); }

void addTaskSpread(Profile& profile, double seconds) {
    constexpr double kMost = 10;  // that a profile may state
    const auto add = [&](double& spread, double of) { spread = std::min(kMost, std::hypot(spread, seconds / of)); };
    for (auto& [name, points] : profile.kernels)
        for (KernelPoint& point : points) add(point.relativeSpread, point.seconds);
    for (auto& [type, samples] : profile.gemmTable)
        for (GemmSample& sample : samples) add(sample.relativeSpread, secondsOf(sample));
}

}  // namespace ringside
