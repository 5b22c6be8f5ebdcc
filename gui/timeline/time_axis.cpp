#include "gui/timeline/time_axis.h"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace ringside::gui {
namespace {

struct Unit {
    std::int64_t ps;
    const char* name;
};
constexpr Unit kUnits[] = {{1'000'000'000'000, "s"}, {1'000'000'000, "ms"}, {1'000'000, "µs"}, {1'000, "ns"}, {1, "ps"}};

/// A count of units with thousands separated and as many decimals as asked for, exactly.
std::string formatIn(std::int64_t ps, const Unit& unit, int decimals) {
    const bool negative = ps < 0;
    const std::int64_t positive = negative ? -ps : ps, whole = positive / unit.ps;
    std::string text = formatCount(whole);
    if (decimals > 0) {
        std::int64_t rest = positive % unit.ps, scale = unit.ps;
        text += '.';
        for (int i = 0; i < decimals; ++i) {
            scale /= 10;
            text += scale > 0 ? static_cast<char>('0' + rest / scale) : '0';
            if (scale > 0) rest %= scale;
        }
    }
    return fmt::format("{}{} {}", negative ? "−" : "", text, unit.name);
}

/// 1, 2 or 5 times a power of ten picoseconds, not less than `ps`.
std::int64_t roundStep(double ps) {
    std::int64_t power = 1;
    while (static_cast<double>(power) * 10 <= ps) power *= 10;
    for (const std::int64_t factor : {1, 2, 5})
        if (static_cast<double>(power * factor) >= ps) return power * factor;
    return power * 10;
}

}  // namespace

Time TimeAxis::toTime(double x) const { return window_.begin + Time::fromPicoseconds(std::llround(x / pixelsPerPs_)); }

std::vector<RulerTick> rulerTicks(const TimeAxis& axis, double spacing) {
    const std::int64_t step = roundStep(std::max(1.0, spacing * axis.psPerPixel()));
    // The unit is that of the largest time in sight, unless the step would need more than three decimals of it.
    const std::int64_t largest = std::max(std::llabs(axis.window().begin.picoseconds()), std::llabs(axis.window().end.picoseconds()));
    const Unit* unit = &kUnits[4];
    for (const Unit& candidate : kUnits)
        if (candidate.ps <= std::max(largest, step) && step >= candidate.ps / 1000) {
            unit = &candidate;
            break;
        }
    int decimals = 0;
    for (std::int64_t scale = unit->ps; scale > step; scale /= 10) ++decimals;
    std::vector<RulerTick> ticks;
    std::int64_t at = axis.window().begin.picoseconds() / step * step;
    if (at < axis.window().begin.picoseconds()) at += step;
    for (; at <= axis.window().end.picoseconds(); at += step) ticks.push_back({Time::fromPicoseconds(at), formatIn(at, *unit, decimals)});
    return ticks;
}

std::string formatInstant(Time t) {
    const std::int64_t ps = t.picoseconds(), size = std::llabs(ps);
    for (const Unit& unit : kUnits) {
        if (size < unit.ps) continue;
        int decimals = 0;
        for (std::int64_t scale = unit.ps; scale > 1000 && decimals < 6; scale /= 10) ++decimals;
        return formatIn(ps, unit, decimals);
    }
    return "0 s";
}

}  // namespace ringside::gui
