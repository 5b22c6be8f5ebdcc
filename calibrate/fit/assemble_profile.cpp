#include "calibrate/fit/assemble_profile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "calibrate/fit/curve_fit.h"
#include "calibrate/fit/efficiency_fit.h"
#include "calibrate/fit/interference_fit.h"

namespace ringside {
namespace {

/// The same error, saying whose samples they are.
template <class T>
Result<T> of(Result<T> result, const std::string& what) {
    if (!result) result.error().place = what;
    return result;
}

double flopsPerSecond(const KernelPoint& point) { return point.flops / point.seconds; }

/// Collects the spreads of what one figure stands for.
class Spreads {
public:
    void add(double spread) { values_.push_back(spread); }
    double typical() const { return values_.empty() ? 0 : median(values_); }
    bool empty() const { return values_.empty(); }

private:
    std::vector<double> values_;
};

Figure measured(double value, double spread, const std::string& source) { return {value, spread, Provenance::Measured, source}; }

}  // namespace

Result<void> addKernelTimings(Profile& profile, std::span<const KernelTimings> timings) {
    std::map<std::string, std::vector<const KernelTimings*>> byName;
    for (const KernelTimings& one : timings) byName[one.name].push_back(&one);
    for (const auto& [name, list] : byName) {
        if (name.empty()) {
            std::map<DType, std::vector<GemmTimings>> byType;
            for (const KernelTimings* one : list) byType[one->work.math].push_back({one->work.shape, one->seconds});
            for (const auto& [type, products] : byType) {
                TRY(EfficiencyFit fit, of(fitEfficiency(products), fmt::format("matmul {}", nameOf(type))));
                profile.gemmTable[type] = std::move(fit.samples);
            }
            continue;
        }
        std::vector<KernelPoint> points;
        std::vector<SizeSeries> memory;
        for (const KernelTimings* one : list) {
            const KernelWork& work = one->work;
            if (work.cls == KernelClass::Memory) {
                memory.push_back({work.bytes, one->seconds});
                continue;
            }
            const SizeSeries single[] = {{work.flops, one->seconds}};
            TRY(const std::vector<CurvePoint> fitted, of(fitCurve(single), name));
            if (!(work.flops > 0)) return badInput(name, "arithmetic without FLOPs");
            points.push_back({work.flops, work.bytes, work.shape, work.math, work.causal, fitted.front().estimate.value, fitted.front().estimate.relativeSpread});
        }
        if (!memory.empty() && !points.empty()) return badInput(name, "is both a memory kernel and an arithmetic one");
        if (!memory.empty()) {
            TRY(const std::vector<CurvePoint> curve, of(fitCurve(memory), name));
            for (const CurvePoint& p : curve) points.push_back({0, p.size, {1, 0, 0, 0}, DType::Fp32, false, p.estimate.value, p.estimate.relativeSpread});
        }
        profile.kernels[name] = std::move(points);
    }
    return {};
}

namespace {

/// Of a curve's sizes that were timed beside kernels: the median. 0: none was.
Result<double> slowdownBesideKernels(const std::vector<const CollectiveTimings*>& sizes) {
    std::vector<double> factors;
    for (const CollectiveTimings* size : sizes) {
        if (size->besideSeconds.empty()) continue;
        TRY(const Estimate factor, fitSlowdown(size->seconds, size->besideSeconds));
        factors.push_back(factor.value);
    }
    return factors.empty() ? 0 : median(factors);
}

}  // namespace

Result<void> addCollectiveTimings(Profile& profile, std::span<const CollectiveTimings> timings) {
    using Key = std::tuple<CollectiveBackend, CollectiveOp, std::int64_t, std::string>;
    std::map<Key, std::vector<const CollectiveTimings*>> byCurve;
    for (const CollectiveTimings& one : timings) byCurve[{one.backend, one.op, one.ranks, one.link}].push_back(&one);
    for (const auto& [key, list] : byCurve) {
        CollectiveCurve curve;
        std::tie(curve.backend, curve.op, curve.ranks, curve.link) = key;
        const std::string what = fmt::format("{} of {} ranks over {}", nameOf(curve.op), curve.ranks, curve.link.empty() ? "any link" : curve.link);
        std::vector<SizeSeries> series;
        std::vector<SizedTime> cpu;
        for (const CollectiveTimings* one : list) {
            series.push_back({static_cast<double>(one->bytes), one->seconds});
            for (const double seconds : one->cpuSeconds) cpu.push_back({static_cast<double>(one->bytes), seconds});
        }
        TRY(const std::vector<CurvePoint> fitted, of(fitCurve(series), what));
        for (const CurvePoint& point : fitted) {
            if (point.size < 1) return badInput(what, "was timed with no bytes");
            curve.points.push_back({static_cast<Bytes>(point.size), point.estimate.value, point.estimate.relativeSpread});
        }
        TRY(const CpuTimeFit cpuTime, of(fitCpuTime(cpu), what));
        curve.cpuSecondsPerCall = cpuTime.secondsPerCall;
        curve.cpuSecondsPerByte = cpuTime.secondsPerByte;
        TRY(curve.slowdownByCompute, of(slowdownBesideKernels(list), what));
        const auto same = std::find_if(profile.collectives.begin(), profile.collectives.end(), [&](const CollectiveCurve& c) {
            return Key{c.backend, c.op, c.ranks, c.link} == key;
        });
        if (same == profile.collectives.end()) {
            profile.collectives.push_back(std::move(curve));
        } else {
            *same = std::move(curve);
        }
    }
    return {};
}

void deriveFigures(Profile& profile, const std::string& source) {
    for (const auto& [type, samples] : profile.gemmTable) {
        if (samples.empty()) continue;
        Spreads spreads;
        double best = 0;
        for (const GemmSample& sample : samples) {
            spreads.add(sample.relativeSpread);
            best = std::max(best, sample.tflops);
        }
        profile.deviceFigures[fmt::format("peak_dense_tflops.{}", nameOf(type))] = best;
        profile.gemmEfficiency[type] = measured(1, spreads.typical(), source);
        profile.sustainedClock = measured(1, spreads.typical(), source);
    }
    const auto peak = [&](DType type) {
        const auto found = profile.deviceFigures.find(fmt::format("peak_dense_tflops.{}", nameOf(type)));
        return found == profile.deviceFigures.end() ? 0.0 : found->second * 1e12;
    };
    Spreads memory, forward, backward, convolution;
    double bandwidth = 0, bestForward = 0, bestBackward = 0, bestConvolution = 0;
    for (const auto& [name, points] : profile.kernels)
        for (const KernelPoint& point : points) {
            if (point.flops <= 0) {
                memory.add(point.relativeSpread);
                bandwidth = std::max(bandwidth, point.bytes / point.seconds);
                continue;
            }
            const double ofPeak = peak(point.math) > 0 ? flopsPerSecond(point) / peak(point.math) : 0;
            if (ofPeak <= 0) continue;
            const bool isAttention = name.starts_with("flash attention");
            Spreads& spreads = !isAttention ? convolution : name.ends_with("gradient") ? backward : forward;
            double& best = !isAttention ? bestConvolution : name.ends_with("gradient") ? bestBackward : bestForward;
            if (!isAttention && !name.starts_with("convolution")) continue;
            spreads.add(point.relativeSpread);
            best = std::max(best, ofPeak);
        }
    // Efficiencies above what the format allows can only be of a kernel that does less than its FLOPs say.
    const auto set = [&](Figure& figure, double value, const Spreads& spreads) {
        if (!spreads.empty()) figure = measured(std::clamp(value, 0.001, 1.5), spreads.typical(), source);
    };
    if (bandwidth > 0) {
        profile.deviceFigures["memory_bandwidth_gb_per_s"] = bandwidth / 1e9;
        // A copy "to the device" of a host is one from memory to memory, whose curve counts bytes read and written.
        profile.deviceFigures.try_emplace("pcie_gb_per_s", bandwidth / 2e9);
        set(profile.memoryEfficiency, 1, memory);
    }
    set(profile.attentionForwardEfficiency, bestForward, forward);
    set(profile.attentionBackwardEfficiency, bestBackward, backward);
    set(profile.convolutionEfficiency, bestConvolution, convolution);
    Spreads collectives;
    for (const CollectiveCurve& curve : profile.collectives)
        for (const CollectivePoint& point : curve.points) collectives.add(point.relativeSpread);
    if (!collectives.empty()) {
        profile.collectiveBandwidth = measured(1, collectives.typical(), source);
        profile.collectiveLatency = measured(1, collectives.typical(), source);
    }
}

}  // namespace ringside
