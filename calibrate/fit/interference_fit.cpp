#include "calibrate/fit/interference_fit.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace ringside {
namespace {

Result<Estimate> checkedEstimate(std::span<const double> seconds, const char* what) {
    if (seconds.empty()) return badInput("samples", fmt::format("no timings of the {}", what));
    for (const double s : seconds)
        if (!(s > 0) || !std::isfinite(s)) return badInput("samples", fmt::format("a time of {} s for the {}; expected a finite one above 0", s, what));
    return robustEstimate(seconds);
}

Estimate quotient(const Estimate& beside, const Estimate& alone) {
    Estimate factor;
    factor.samples = std::min(beside.samples, alone.samples);
    factor.value = std::max(1.0, beside.value / alone.value);
    factor.relativeSpread = std::hypot(beside.relativeSpread, alone.relativeSpread);
    factor.interval = {std::max(1.0, beside.interval.low / alone.interval.high), std::max(1.0, beside.interval.high / alone.interval.low)};
    return factor;
}

}  // namespace

Result<Estimate> fitSlowdown(std::span<const double> alone, std::span<const double> beside) {
    TRY(const Estimate without, checkedEstimate(alone, "work alone"));
    TRY(const Estimate with, checkedEstimate(beside, "work beside other work"));
    return quotient(with, without);
}

Result<CpuTimeFit> fitCpuTime(std::span<const SizedTime> samples) {
    std::vector<SizedTime> used;
    for (const SizedTime& sample : samples) {
        if (!std::isfinite(sample.seconds) || sample.seconds < 0) return badInput("samples", fmt::format("a processor time of {} s", sample.seconds));
        if (sample.seconds > 0) used.push_back(sample);
    }
    CpuTimeFit fit;
    if (used.empty()) return fit;
    const bool oneSize = std::all_of(used.begin(), used.end(), [&](const SizedTime& s) { return s.bytes == used.front().bytes; });
    if (oneSize) {
        std::vector<double> times;
        for (const SizedTime& sample : used) times.push_back(sample.seconds);
        const Estimate estimate = robustEstimate(times);
        if (!(used.front().bytes > 0)) return badInput("samples", "a collective of no bytes");
        fit.secondsPerByte = estimate.value / used.front().bytes;
        fit.byteInterval = {estimate.interval.low / used.front().bytes, estimate.interval.high / used.front().bytes};
        return fit;
    }
    AlphaBetaOptions options;
    options.maxRegimes = 1;
    options.noise = 0.1;  // scheduler ticks are coarse
    TRY(const AlphaBetaFit line, fitAlphaBeta(used, options));
    const AlphaBeta& regime = line.regimes.front();
    fit.secondsPerCall = regime.alpha;
    fit.secondsPerByte = regime.beta;
    fit.callInterval = regime.alphaInterval;
    fit.byteInterval = regime.betaInterval;
    return fit;
}

}  // namespace ringside
