// A small chart as SVG: lines or points over one x axis, readable in print, in the dark and by the colour-blind.
#pragma once

#include <string>
#include <vector>

namespace ringside {

struct ChartPoint {
    double x = 0, y = 0;
    bool hollow = false;  ///< stands apart: out of memory, rejected
    std::string note;     ///< shown when the pointer rests on it
};

struct ChartSeries {
    std::string name;
    std::vector<ChartPoint> points;  ///< in the order in which the line runs
    bool line = true;                ///< false: points only
    bool reference = false;          ///< a dashed grey line without points, named at its end: the ideal
};

struct Chart {
    std::string title, subtitle;
    std::string xLabel, yLabel;
    std::string hollowMeans;  ///< in the legend, if any point is hollow: "does not fit in memory"
    bool log2X = false;       ///< REQUIRES, if set: every x > 0; ticks at powers of two
    bool log2Y = false;       ///< the same for y
    bool percentY = false;    ///< y = 0.8 reads "80 %"
    std::vector<ChartSeries> series;
};

/// A complete SVG document. The y axis starts at 0 unless it is logarithmic. REQUIRES: every number is finite. The same chart
/// gives the same bytes.
std::string svgOf(const Chart& chart);

/// Round steps (1, 2, 2.5 or 5 times a power of ten) that cover [0, max] in at most `most` intervals; the last is ≥ max.
/// REQUIRES: max > 0, most ≥ 1.
std::vector<double> roundTicks(double max, int most);

}  // namespace ringside
