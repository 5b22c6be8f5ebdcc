#include "calibrate/fit/alpha_beta_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <Eigen/Dense>
#include <fmt/format.h>

#include "model/base/check.h"

namespace ringside {
namespace {

constexpr std::size_t kLeastSizes = 3;     ///< of a regime, where there are several
constexpr double kTukey = 4.685;           ///< 95 % efficiency on normal noise
constexpr double kPenalty = 10;            ///< squared standard deviations that another regime must explain
constexpr double kLossCap = 9;             ///< an outlier is worth three standard deviations and no more
constexpr int kMostRounds = 30;

struct Size {
    double bytes, seconds;
    double relativeError;  // of the median
};

/// Median of pairwise slopes, long baselines and small times counting more; then the offset that half of the weight agrees with.
std::pair<double, double> startingLine(std::span<const Size> sizes) {
    std::vector<Weighted> slopes, offsets;
    for (std::size_t i = 0; i < sizes.size(); ++i)
        for (std::size_t j = i + 1; j < sizes.size(); ++j) {
            const double distance = sizes[j].bytes - sizes[i].bytes;
            slopes.push_back({(sizes[j].seconds - sizes[i].seconds) / distance, distance / (sizes[i].seconds + sizes[j].seconds)});
        }
    const double beta = std::max(0.0, weightedMedian(std::move(slopes)));
    for (const Size& size : sizes) offsets.push_back({size.seconds - beta * size.bytes, 1 / size.seconds});
    return {std::max(0.0, weightedMedian(std::move(offsets))), beta};
}

/// Of the sizes' medians, from their repetitions; 0 without.
double typicalError(std::span<const Size> sizes) {
    std::vector<double> errors;
    for (const Size& size : sizes) errors.push_back(size.relativeError);
    return median(std::move(errors));
}

struct Line {
    AlphaBeta fit;
    double loss = 0;  // in squared standard deviations of `noise`
};

Line fitLine(std::span<const Size> sizes, double noise) {
    auto [alpha, beta] = startingLine(sizes);
    const double n = static_cast<double>(sizes.size());
    // Bytes in units of the largest, so that the normal equations are well scaled. Rows are divided by the time that the last round
    // fitted: dividing by the measured one would favour samples that came out too fast.
    const double unit = sizes.back().bytes;
    Eigen::Matrix2d normal = Eigen::Matrix2d::Identity();
    std::vector<double> weights(sizes.size(), 1.0), residuals(sizes.size());
    double scale = noise, weightSum = n;
    for (int round = 0; round < kMostRounds; ++round) {
        const auto fitted = [&, a = alpha, b = beta](std::size_t i) { return std::max(a + b * sizes[i].bytes, 1e-3 * sizes[i].seconds); };
        for (std::size_t i = 0; i < sizes.size(); ++i) residuals[i] = sizes[i].seconds / fitted(i) - 1;
        // A floor: among a dozen sizes the deviation may come out far too small by chance, and good ones would be thrown away.
        scale = std::max(0.5 * noise, scaledMad(residuals));
        normal.setZero();
        Eigen::Vector2d right = Eigen::Vector2d::Zero();
        weightSum = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const double u = residuals[i] / (kTukey * scale);
            weights[i] = std::abs(u) < 1 ? (1 - u * u) * (1 - u * u) : 0;
            weightSum += weights[i];
            const Eigen::Vector2d row(1 / fitted(i), sizes[i].bytes / unit / fitted(i));
            normal += weights[i] * row * row.transpose();
            right += weights[i] * row * (sizes[i].seconds / fitted(i));
        }
        if (normal.determinant() <= 1e-12 * normal(0, 0) * normal(1, 1)) break;  // all the weight on one size: the start is as good
        Eigen::Vector2d solution = normal.ldlt().solve(right);
        if (solution(0) < 0) solution = {0, right(1) / normal(1, 1)};
        if (solution(1) < 0) solution = {right(0) / normal(0, 0), 0};
        const double moved = std::abs(solution(0) - alpha) / (alpha + 1e-30) + std::abs(solution(1) / unit - beta) / (beta + 1e-30);
        alpha = solution(0);
        beta = solution(1) / unit;
        if (moved < 1e-10) break;
    }
    Line line;
    line.fit.fromBytes = sizes.front().bytes;
    line.fit.toBytes = sizes.back().bytes;
    line.fit.alpha = alpha;
    line.fit.beta = beta;
    double squares = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const double residual = sizes[i].seconds / (alpha + beta * sizes[i].bytes) - 1;
        if (weights[i] <= 0) ++line.fit.outliers;
        else squares += residual * residual;
        line.loss += std::min(kLossCap, residual * residual / (noise * noise));
    }
    const double freedom = std::max(1.0, weightSum - 2);
    // The repetitions of a size tell its error too; residuals that are smaller are luck.
    const double variance = std::max(squares / freedom, typicalError(sizes) * typicalError(sizes));
    line.fit.relativeResidual = std::sqrt(variance);
    // Six standard errors, more where little is known: a dozen sizes estimate their own error poorly.
    const double factor = 6 * (1 + 2 / freedom + 6 / (freedom * freedom));
    const Eigen::Matrix2d covariance = variance * normal.inverse();
    const double alphaError = factor * std::sqrt(std::max(0.0, covariance(0, 0))) + 1e-9 * alpha;
    const double betaError = factor * std::sqrt(std::max(0.0, covariance(1, 1))) / unit + 1e-9 * beta;
    line.fit.alphaInterval = {std::max(0.0, alpha - alphaError), alpha + alphaError};
    line.fit.betaInterval = {std::max(0.0, beta - betaError), beta + betaError};
    return line;
}

Result<std::vector<Size>> medians(std::span<const SizedTime> samples) {
    std::map<double, std::vector<double>> bySize;
    for (const SizedTime& sample : samples) {
        if (!(sample.bytes > 0) || !std::isfinite(sample.bytes) || !(sample.seconds > 0) || !std::isfinite(sample.seconds))
            return badInput("samples", fmt::format("{} bytes in {} s; both must be finite and above 0", sample.bytes, sample.seconds));
        bySize[sample.bytes].push_back(sample.seconds);
    }
    if (bySize.size() < 2) return badInput("samples", fmt::format("{} different sizes; a line needs two", bySize.size()));
    std::vector<Size> sizes;
    for (const auto& [bytes, times] : bySize) {
        const Estimate estimate = robustEstimate(times);
        sizes.push_back({bytes, estimate.value, times.size() > 2 ? 1.2533 * estimate.relativeSpread / std::sqrt(static_cast<double>(times.size())) : 0.0});
    }
    return sizes;
}

}  // namespace

double AlphaBetaFit::seconds(double bytes) const {
    CHECK(!regimes.empty());
    for (std::size_t i = 0; i + 1 < regimes.size(); ++i)
        if (bytes < std::sqrt(regimes[i].toBytes * regimes[i + 1].fromBytes)) return regimes[i].seconds(bytes);
    return regimes.back().seconds(bytes);
}

Result<AlphaBetaFit> fitAlphaBeta(std::span<const SizedTime> samples, const AlphaBetaOptions& options) {
    TRY(const std::vector<Size> sizes, medians(samples));
    const double noise = std::max(options.noise, typicalError(sizes));

    // best[r][i]: the first i sizes in r regimes. A few dozen sizes, so that every cut can be tried.
    const std::size_t n = sizes.size();
    const auto most = static_cast<std::size_t>(std::clamp<std::int64_t>(options.maxRegimes, 1, std::max<std::int64_t>(1, static_cast<std::int64_t>(n / kLeastSizes))));
    constexpr double kNever = std::numeric_limits<double>::infinity();
    struct Cut {
        double loss = kNever;
        std::size_t from = 0;
        AlphaBeta fit;
    };
    std::vector<std::vector<Cut>> best(most + 1, std::vector<Cut>(n + 1));
    best[0][0].loss = 0;
    for (std::size_t from = 0; from < n; ++from)
        for (std::size_t to = from + 2; to <= n; ++to) {
            const bool whole = from == 0 && to == n;
            if (!whole && to - from < kLeastSizes) continue;
            if (!whole && most == 1) continue;
            const Line line = fitLine(std::span(sizes).subspan(from, to - from), noise);
            for (std::size_t r = 1; r <= most; ++r) {
                const double loss = best[r - 1][from].loss + line.loss + kPenalty;
                if (loss < best[r][to].loss) best[r][to] = {loss, from, line.fit};
            }
        }
    std::size_t regimes = 1;
    for (std::size_t r = 2; r <= most; ++r)
        if (best[r][n].loss < best[regimes][n].loss) regimes = r;
    AlphaBetaFit fit;
    for (std::size_t r = regimes, end = n; r > 0; --r) {
        fit.regimes.push_back(best[r][end].fit);
        end = best[r][end].from;
    }
    std::reverse(fit.regimes.begin(), fit.regimes.end());
    return fit;
}

}  // namespace ringside
