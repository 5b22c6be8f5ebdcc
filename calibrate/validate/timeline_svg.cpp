#include "calibrate/validate/timeline_svg.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace ringside {

std::string escapeHtml(const std::string& text) {
    std::string out;
    for (const char c : text) switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            default: out += c;
        }
    return out;
}

namespace {

constexpr double kLeft = 150, kWidth = 1000, kRight = 20, kLane = 18, kLaneGap = 3, kTitle = 22, kAxis = 24;
constexpr std::size_t kMostRanks = 2;

/// What is drawn as one rectangle.
struct Mark {
    Time begin, end;
    SliceCategory category = SliceCategory::Compute;
    std::size_t slice = 0, count = 1;
};

std::vector<Mark> marksOf(const Trace& trace, std::size_t track, double pixelsPerSecond) {
    std::vector<Mark> marks;
    const double halfPixel = 0.5 / pixelsPerSecond;
    for (std::size_t s = trace.firstSlice(track); s < trace.firstSlice(track + 1); ++s) {
        const SliceCategory category = trace.category[s];
        if (category == SliceCategory::Host || category == SliceCategory::Wait || category == SliceCategory::Marker) continue;
        const Time begin = trace.start[s], end = begin + trace.duration[s];
        if (!marks.empty()) {
            Mark& last = marks.back();
            const bool narrow = (end - begin).seconds() < halfPixel || (last.end - last.begin).seconds() < halfPixel;
            if (narrow && last.category == category && (begin - last.end).seconds() < halfPixel) {
                last.end = std::max(last.end, end);
                ++last.count;
                continue;
            }
        }
        marks.push_back({begin, end, category, s, 1});
    }
    return marks;
}

std::string duration(double seconds) { return seconds >= 1e-3 ? fmt::format("{:.3f} ms", seconds * 1e3) : fmt::format("{:.1f} µs", seconds * 1e6); }

void drawTrace(std::string& out, double& y, const Trace& trace, const char* title, const std::set<std::int64_t>& ranks, double pixelsPerSecond) {
    out += fmt::format("<text class=\"strong\" x=\"0\" y=\"{:.0f}\">{} — {}</text>\n", y + 15, title, duration(trace.end().seconds()));
    y += kTitle;
    for (std::size_t t = 0; t < trace.tracks.size(); ++t) {
        const Track& track = trace.tracks[t];
        if (!ranks.contains(track.rank) || track.kind == TrackKind::Host) continue;
        const std::vector<Mark> marks = marksOf(trace, t, pixelsPerSecond);
        if (marks.empty()) continue;
        out += fmt::format("<text class=\"lane\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n<rect class=\"back\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", kLeft - 8, y + 13,
                           escapeHtml(fmt::format("rank {} {}", track.rank, track.name)), kLeft, y, kWidth, kLane);
        for (const Mark& mark : marks) {
            const std::string name = mark.count > 1 ? fmt::format("{} tasks, the first: {}", mark.count, trace.names[trace.name[mark.slice]]) : trace.names[trace.name[mark.slice]];
            out += fmt::format("<rect class=\"c-{}\" x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{:.0f}\"><title>{}\nstart {}, duration {}{}</title></rect>\n", nameOf(mark.category),
                               kLeft + mark.begin.seconds() * pixelsPerSecond, y, std::max(0.4, (mark.end - mark.begin).seconds() * pixelsPerSecond), kLane, escapeHtml(name), duration(mark.begin.seconds()),
                               duration((mark.end - mark.begin).seconds()), trace.task[mark.slice] >= 0 ? fmt::format(", task {}", trace.task[mark.slice]) : "");
        }
        y += kLane + kLaneGap;
    }
    y += 6;
}

/// A round step of 1, 2 or 5 times a power of ten.
double tickOf(double seconds) {
    const double power = std::pow(10, std::floor(std::log10(seconds / 5)));
    for (const double step : {1.0, 2.0, 5.0})
        if (seconds / (step * power) <= 10) return step * power;
    return 10 * power;
}

}  // namespace

std::string timelinesSvg(const Trace& predicted, const Trace& measured) {
    std::set<std::int64_t> ranks;
    for (const Track& track : predicted.tracks)
        if (ranks.size() < kMostRanks && track.rank < predicted.worldSize) ranks.insert(track.rank);
    const double seconds = std::max({predicted.end().seconds(), measured.end().seconds(), 1e-9});
    const double pixelsPerSecond = kWidth / seconds;
    std::string body;
    double y = 0;
    drawTrace(body, y, predicted, "predicted", ranks, pixelsPerSecond);
    drawTrace(body, y, measured, "measured", ranks, pixelsPerSecond);
    const double tick = tickOf(seconds);
    for (int i = 0; i * tick <= seconds; ++i) {
        const double x = kLeft + i * tick * pixelsPerSecond;
        body += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\"/>\n<text class=\"tick\" x=\"{0:.1f}\" y=\"{3:.0f}\">{4:g} ms</text>\n", x, kTitle, y, y + 15, i * tick * 1e3);
    }
    const double height = y + kAxis;
    return fmt::format("<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n{2}</svg>\n", kLeft + kWidth + kRight, height, body);
}

}  // namespace ringside
