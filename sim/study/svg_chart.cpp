#include "sim/study/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "model/base/check.h"
#include "model/base/units.h"

namespace ringside {
namespace {

// Okabe and Ito's palette, told apart with every kind of colour blindness; the darkest first, yellow left out (pale on white).
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#3b3b3b"};
constexpr double kWidth = 760, kLeft = 78, kRight = 30, kBottom = 62, kPlotHeight = 320;
constexpr double kLegendRow = 22, kCharacter = 7.1;  // of 13 px text, on average

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '"')
            out += "&quot;";
        else
            out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out;
}

std::size_t columns(const std::string& text) {  // UTF-8: continuation bytes take no room
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// "64", "1,024", "0.25", "1.5".
std::string numberText(double value) {
    return value == std::floor(value) && std::fabs(value) < 1e15 ? formatCount(static_cast<std::int64_t>(value)) : fmt::format("{:.4g}", value);
}

/// Maps a range of values to a range of pixels.
class Axis {
public:
    Axis(bool log2, double low, double high, double from, double to) : log2_(log2), low_(scaled(low)), high_(scaled(high)), from_(from), to_(to) {}
    double at(double value) const { return from_ + (scaled(value) - low_) / (high_ - low_) * (to_ - from_); }

private:
    double scaled(double value) const { return log2_ ? std::log2(value) : value; }
    bool log2_;
    double low_, high_, from_, to_;
};

struct Range {
    double low = 0, high = 0;
    std::vector<double> ticks;
};

/// Powers of two around [low, high], thinned to at most ten; half a step of air on both sides for a single value.
Range powersOfTwo(double low, double high) {
    Range range;
    int first = static_cast<int>(std::floor(std::log2(low) + 1e-9)), last = static_cast<int>(std::ceil(std::log2(high) - 1e-9));
    if (first == last) {
        --first;
        ++last;
    }
    const int every = std::max(1, (last - first + 9) / 10);
    for (int power = first; power <= last; ++power)
        if ((power - first) % every == 0) range.ticks.push_back(std::exp2(power));
    range.low = std::exp2(first);
    range.high = std::exp2(last);
    return range;
}

Range rangeOf(bool log2, double low, double high, int most) {
    if (log2) return powersOfTwo(low, high);
    Range range;
    range.ticks = roundTicks(high > 0 ? high : 1, most);
    range.high = range.ticks.back();
    return range;
}

/// Circle, square, triangle, diamond: series that share a colour still differ in shape.
std::string marker(std::size_t series, double x, double y, const char* colour, bool hollow, double size) {
    const std::string style =
        fmt::format("fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"", hollow ? "#ffffff" : colour, hollow ? colour : "#ffffff", hollow ? 2 : size < 4 ? 0.5 : 1.2);
    switch (series % 4) {
        case 0:
            return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" {}/>", x, y, size, style);
        case 1:
            return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}/>", x - size * 0.9, y - size * 0.9, size * 1.8,
                               size * 1.8, style);
        case 2:
            return fmt::format("<path d=\"M{:.1f} {:.1f}l{:.1f} {:.1f}h{:.1f}z\" {}/>", x, y - size * 1.15, size * 1.1, size * 2, -size * 2.2, style);
        default:
            return fmt::format("<path d=\"M{:.1f} {:.1f}l{:.1f} {:.1f}l{:.1f} {:.1f}l{:.1f} {:.1f}z\" {}/>", x, y - size * 1.25, size * 1.25,
                               size * 1.25, -size * 1.25, size * 1.25, -size * 1.25, -size * 1.25, style);
    }
}

struct LegendEntry {
    std::string name;
    std::size_t series = 0;
    bool hollow = false, line = true;
    double x = 0, row = 0;
};

/// Left to right, wrapped; returns the rows taken.
int placeLegend(std::vector<LegendEntry>& entries) {
    double x = kLeft;
    int row = 0;
    for (LegendEntry& entry : entries) {
        const double width = 40 + kCharacter * static_cast<double>(columns(entry.name)) + 18;
        if (x + width > kWidth - kRight + 18 && x > kLeft) {
            x = kLeft;
            ++row;
        }
        entry.x = x;
        entry.row = row;
        x += width;
    }
    return entries.empty() ? 0 : row + 1;
}

}  // namespace

std::vector<double> roundTicks(double max, int most) {
    CHECK(max > 0 && most >= 1);
    const double power = std::pow(10.0, std::floor(std::log10(max / most)));
    double step = power * 10;
    for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0})
        if (std::ceil(max / (factor * power) - 1e-9) <= most) {
            step = factor * power;
            break;
        }
    std::vector<double> ticks;
    const int count = std::max(1, static_cast<int>(std::ceil(max / step - 1e-9)));
    for (int i = 0; i <= count; ++i) ticks.push_back(step * i);
    return ticks;
}

std::string svgOf(const Chart& chart) {
    double lowX = 0, highX = 0, lowY = 0, highY = 0;
    bool first = true, anyHollow = false;
    std::vector<LegendEntry> legend;
    std::size_t drawn = 0;
    for (const ChartSeries& series : chart.series) {
        for (const ChartPoint& point : series.points) {
            CHECK(std::isfinite(point.x) && std::isfinite(point.y) && (!chart.log2X || point.x > 0) && (!chart.log2Y || point.y > 0));
            lowX = first ? point.x : std::min(lowX, point.x);
            highX = first ? point.x : std::max(highX, point.x);
            lowY = first ? point.y : std::min(lowY, point.y);
            highY = first ? point.y : std::max(highY, point.y);
            first = false;
            anyHollow = anyHollow || point.hollow;
        }
        if (!series.reference) legend.push_back({series.name, drawn++, false, series.line, 0, 0});
    }
    if (first) lowX = highX = lowY = highY = 1;
    if (anyHollow && !chart.hollowMeans.empty()) legend.push_back({chart.hollowMeans, 0, true, false, 0, 0});
    const int legendRows = placeLegend(legend);

    const double top = 96 + kLegendRow * legendRows, bottom = top + kPlotHeight, height = bottom + kBottom, right = kWidth - kRight;
    const Range xs = rangeOf(chart.log2X, lowX, highX, 8), ys = rangeOf(chart.log2Y, lowY, highY, 6);
    const Axis x(chart.log2X, xs.low, xs.high, kLeft + (chart.log2X ? 14 : 0), right - 14), y(chart.log2Y, ys.low, ys.high, bottom, top);

    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" "
        "font-family=\"Inter, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"13\" fill=\"#1f2328\">\n<title>{2}</title>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        kWidth, height, escaped(chart.title));
    svg += fmt::format("<text x=\"{}\" y=\"32\" font-size=\"18\" font-weight=\"600\">{}</text>\n", kLeft, escaped(chart.title));
    svg += fmt::format("<text x=\"{}\" y=\"53\" fill=\"#57606a\">{}</text>\n", kLeft, escaped(chart.subtitle));

    for (const LegendEntry& entry : legend) {
        const double row = 76 + kLegendRow * entry.row;
        const char* colour = entry.hollow ? "#57606a" : kColours[entry.series % kColours.size()];
        if (entry.line && !entry.hollow)
            svg += fmt::format("<path d=\"M{:.1f} {:.1f}h26\" stroke=\"{}\" stroke-width=\"2.2\"/>", entry.x, row, colour);
        svg += marker(entry.series, entry.x + 13, row, colour, entry.hollow, 4.6);
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", entry.x + 34, row + 4.5, escaped(entry.name));
    }

    for (const double tick : ys.ticks) {
        const double at = y.at(tick);
        svg += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"{}\"/>", kLeft, at, right, tick == ys.ticks.front() ? "#8c959f" : "#e4e7eb");
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#57606a\">{}{}</text>\n", kLeft - 10, at + 4.5,
                           chart.percentY ? numberText(std::round(tick * 1000) / 10) : numberText(tick), chart.percentY ? " %" : "");
    }
    for (const double tick : xs.ticks) {
        const double at = x.at(tick);
        svg += fmt::format(
            "<path d=\"M{0:.1f} {1:.1f}v5\" stroke=\"#8c959f\"/><text x=\"{0:.1f}\" y=\"{2:.1f}\" text-anchor=\"middle\" "
            "fill=\"#57606a\">{3}</text>\n",
            at, bottom, bottom + 21, numberText(tick));
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", (kLeft + right) / 2, bottom + 46, escaped(chart.xLabel));
    svg += fmt::format("<text transform=\"translate(22 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n", (top + bottom) / 2,
                       escaped(chart.yLabel));

    for (const ChartSeries& series : chart.series) {  // references first: what was found lies over what would be ideal
        if (!series.reference || series.points.empty()) continue;
        std::string path;
        for (const ChartPoint& point : series.points) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.at(point.x), y.at(point.y));
        const ChartPoint& last = series.points.back();
        svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#8c959f\" stroke-width=\"1.4\" stroke-dasharray=\"5 4\"/>", path);
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" font-size=\"12\" fill=\"#6e7781\">{}</text>\n", x.at(last.x) - 6,
                           y.at(last.y) - 8, escaped(series.name));
    }
    std::size_t index = 0, points = 0;
    for (const ChartSeries& series : chart.series) points += series.points.size();
    const double size = points > 200 ? 2.6 : 4.8;  // many points would cover each other
    for (const ChartSeries& series : chart.series) {
        if (series.reference) continue;
        const char* colour = kColours[index % kColours.size()];
        std::string path;
        for (const ChartPoint& point : series.points) path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.at(point.x), y.at(point.y));
        if (series.line && series.points.size() > 1)
            svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2.2\" stroke-linejoin=\"round\"/>\n", path, colour);
        for (const ChartPoint& point : series.points)
            svg += fmt::format("<g>{}<title>{}</title></g>\n", marker(index, x.at(point.x), y.at(point.y), colour, point.hollow, size),
                               escaped(point.note.empty() ? series.name : point.note));
        ++index;
    }
    return svg + "</svg>\n";
}

}  // namespace ringside
