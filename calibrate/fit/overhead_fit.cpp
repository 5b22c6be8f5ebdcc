#include "calibrate/fit/overhead_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "calibrate/fit/robust.h"
#include "model/base/random.h"

namespace ringside {
namespace {

constexpr double kApart = 10;  // tasks: between steps that differ by less, a slope says nothing
constexpr std::uint64_t kDraws = 200;

/// The median of the slopes between any two, each weighing as much as the two are apart; then the median of what is left.
std::pair<double, double> lineThrough(std::span<const StepOverhead> steps) {
    std::vector<Weighted> slopes;
    for (std::size_t i = 0; i < steps.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (const double apart = steps[i].tasks - steps[j].tasks; std::abs(apart) > kApart) slopes.push_back({(steps[i].seconds - steps[j].seconds) / apart, std::abs(apart)});
    const double perTask = slopes.empty() ? 0 : std::max(0.0, weightedMedian(std::move(slopes)));
    std::vector<double> rest;
    for (const StepOverhead& step : steps) rest.push_back(step.seconds - perTask * step.tasks);
    return {std::max(0.0, median(std::move(rest))), perTask};
}

}  // namespace

OverheadFit fitOverhead(std::span<const StepOverhead> steps) {
    OverheadFit fit;
    if (steps.empty()) return fit;
    std::tie(fit.perStep, fit.perTask) = lineThrough(steps);
    const CounterRandom random(1);
    std::vector<double> perStep, perTask;
    std::vector<StepOverhead> drawn(steps.size());
    for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
        for (std::size_t i = 0; i < drawn.size(); ++i) drawn[i] = steps[random.bits(draw * drawn.size() + i) % steps.size()];
        const auto [fixed, slope] = lineThrough(drawn);
        perStep.push_back(fixed);
        perTask.push_back(slope);
    }
    fit.perStepSpread = scaledMad(perStep);
    fit.perTaskSpread = scaledMad(perTask);
    return fit;
}

}  // namespace ringside
