#include "model/cost/gemm_table.h"

#include <cmath>
#include <map>
#include <tuple>

namespace ringside {
namespace {

double flopsOf(const GemmShape& s) { return 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k); }
double measuredSeconds(const GemmSample& sample) { return flopsOf(sample.shape) / (sample.tflops * 1e12); }

}  // namespace

GemmTable::GemmTable(const std::vector<GemmSample>& samples, const GemmModel& formula, double fixedSeconds, Bytes elementSize) {
    // Times are averaged, not their logarithms: what counts is how long several of them take together.
    using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
    std::map<Key, std::pair<double, int>> byShape;
    for (const GemmSample& sample : samples) {
        auto& [sum, count] = byShape[{sample.shape.batch, sample.shape.m, sample.shape.n, sample.shape.k}];
        sum += measuredSeconds(sample);
        ++count;
    }
    for (const auto& [key, total] : byShape) {
        const GemmShape shape{std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key)};
        const double predicted = formula.seconds(shape, gemmBytes(shape, elementSize), elementSize) + fixedSeconds;
        const double seconds = total.first / total.second;
        logRatio_.add(ShapeRegression::pointOf(shape), std::log(seconds / predicted));
        logSecondsPerFlop_.add(ShapeRegression::pointOf(shape), std::log(seconds / flopsOf(shape)));
    }
}

double GemmTable::correction(const GemmShape& shape) const { return std::exp(logRatio_.at(ShapeRegression::pointOf(shape))); }
double GemmTable::secondsPerFlop(const GemmShape& shape) const { return std::exp(logSecondsPerFlop_.at(ShapeRegression::pointOf(shape))); }

}  // namespace ringside
