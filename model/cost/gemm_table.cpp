#include "model/cost/gemm_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace ringside {
namespace {

constexpr std::size_t kLanes = 8;
constexpr float kFarAway = 1e9F;       ///< coordinate of padding: weightless
constexpr float kHitWeight = 1e12F;    ///< weight at distance 0

float logOf(std::int64_t x) { return std::log2(static_cast<float>(x)); }

double measuredSeconds(const GemmSample& sample) {
    const GemmShape& s = sample.shape;
    return 2.0 * static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) / (sample.tflops * 1e12);
}

}  // namespace

GemmTable::GemmTable(const std::vector<GemmSample>& samples, const GemmModel& formula, double fixedSeconds, Bytes elementSize) {
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
        shapes_.push_back(shape);
        ratio_.push_back(total.first / total.second / predicted);
    }
    const std::size_t padded = (shapes_.size() + kLanes - 1) / kLanes * kLanes;
    for (std::vector<float>* column : {&batch_, &m_, &n_, &k_}) column->assign(padded, kFarAway);
    logRatio_.assign(padded, 0);
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
        batch_[i] = logOf(shapes_[i].batch);
        m_[i] = logOf(shapes_[i].m);
        n_[i] = logOf(shapes_[i].n);
        k_[i] = logOf(shapes_[i].k);
        logRatio_[i] = static_cast<float>(std::log(ratio_[i]));
    }
}

double GemmTable::correction(const GemmShape& shape) const {
    const float b = logOf(shape.batch), m = logOf(shape.m), n = logOf(shape.n), k = logOf(shape.k);
    float weights[kLanes] = {}, sums[kLanes] = {}, heaviest[kLanes] = {};
    for (std::size_t i = 0; i < logRatio_.size(); i += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const float db = batch_[i + lane] - b, dm = m_[i + lane] - m, dn = n_[i + lane] - n, dk = k_[i + lane] - k;
            const float squared = db * db + dm * dm + dn * dn + dk * dk;
            const float weight = 1 / (squared * squared + 1 / kHitWeight);
            weights[lane] += weight;
            sums[lane] += weight * logRatio_[i + lane];
            heaviest[lane] = heaviest[lane] > weight ? heaviest[lane] : weight;
        }
    }
    float weight = 0, sum = 0, top = 0;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        weight += weights[lane];
        sum += sums[lane];
        top = std::max(top, heaviest[lane]);
    }
    if (top > 0.5F * kHitWeight)  // at, or within rounding of, a measured shape
        for (std::size_t i = 0; i < shapes_.size(); ++i)
            if (shapes_[i] == shape) return ratio_[i];
    return weight > 0 ? std::exp(static_cast<double>(sum / weight)) : 1.0;
}

}  // namespace ringside
