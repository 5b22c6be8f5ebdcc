#include "gui/scenario/slider_scale.h"

#include <algorithm>
#include <cmath>

namespace ringside::gui {
namespace {

constexpr double kReach = 64;
constexpr int kStepsPerDoubling = 8;

}  // namespace

SliderScale::SliderScale(const ValueSpec& spec, double usual) : whole_(spec.kind == ValueKind::Whole) {
    if (spec.max <= 1 && spec.min >= 0 && !whole_) {  // a share: even steps of a hundredth
        low_ = spec.min;
        high_ = spec.max;
        steps_ = static_cast<int>(std::lround((high_ - low_) * 100));
        zero_ = false;
        return;
    }
    zero_ = spec.min <= 0;
    const double centre = std::max(usual, zero_ ? (whole_ ? 1.0 : 1.0) : spec.min);
    low_ = std::max(zero_ ? centre / kReach : spec.min, centre / kReach);
    high_ = std::min(spec.max, centre * kReach);
    if (whole_) low_ = std::exp2(std::floor(std::log2(std::max(low_, 1.0)))), high_ = std::exp2(std::floor(std::log2(std::max(high_, 1.0))));
    if (high_ <= low_) return;
    const double doublings = std::log2(high_ / low_);
    steps_ = static_cast<int>(std::lround(doublings * (whole_ ? 1 : kStepsPerDoubling))) + (zero_ ? 1 : 0);
}

double SliderScale::valueAt(int position) const {
    if (steps_ == 0) return low_;
    if (low_ == 0 || (!zero_ && high_ <= 1)) return low_ + (high_ - low_) * position / steps_;
    if (zero_ && position == 0) return 0;
    const int first = zero_ ? 1 : 0;
    const double value = low_ * std::pow(high_ / low_, static_cast<double>(position - first) / (steps_ - first));
    if (whole_) return std::round(value);
    const double unit = std::pow(10, std::floor(std::log10(value)) - 1);  // two digits are enough for a hand
    return std::round(value / unit) * unit;
}

int SliderScale::positionOf(double value) const {
    int nearest = 0;
    double least = INFINITY;
    for (int position = 0; position <= steps_; ++position) {
        const double at = valueAt(position);
        const double distance = at > 0 && value > 0 ? std::abs(std::log(value / at)) : std::abs(value - at);
        if (distance >= least) continue;
        least = distance;
        nearest = position;
    }
    return nearest;
}

}  // namespace ringside::gui
