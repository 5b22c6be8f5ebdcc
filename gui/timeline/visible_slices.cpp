#include "gui/timeline/visible_slices.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace ringside::gui {
namespace {

/// A lone sliver stays visible.
constexpr std::uint8_t kLeastCoverage = 72;

/// Sums what falls into one pixel until the next one begins.
class PixelMerger {
public:
    PixelMerger(const TimeAxis& axis, std::vector<SliceRect>& out) : psPerPixel_(axis.psPerPixel()), out_(out) {}

    void add(double x, Time covered, SliceCategory category, std::uint32_t name, std::uint32_t slice) {
        const auto pixel = static_cast<std::int64_t>(std::floor(x));
        if (pixel != pixel_ || pieces_ == 0) {
            flush();
            pixel_ = pixel;
        }
        const auto c = static_cast<std::size_t>(category);
        const double ps = static_cast<double>(covered.picoseconds()) + 1;
        covered_[c] += ps;
        if (ps >= longest_[c]) longest_[c] = ps, name_[c] = name;
        used_ |= 1U << c;
        slice_ = pieces_++ == 0 ? slice : kNoSlice;
    }

    /// A group that reaches over a pixel's border counts in both: else the picture would flicker with the groups' borders.
    void addGroup(double x0, double x1, const SliceGroup& group) {
        x0 = std::max(0.0, x0);
        const double border = std::floor(x0) + 1;
        if (x1 <= border) return add(x0, group.covered, group.category, group.name, kNoSlice);
        const Time before = Time::fromPicoseconds(std::llround(static_cast<double>(group.covered.picoseconds()) * (border - x0) / (x1 - x0)));
        add(x0, before, group.category, group.name, kNoSlice);
        add(border, group.covered - before, group.category, group.name, kNoSlice);
    }

    void flush() {
        if (pieces_ == 0) return;
        std::size_t most = 0;
        double sum = 0;
        for (unsigned rest = used_; rest; rest &= rest - 1) {
            const auto c = static_cast<std::size_t>(std::countr_zero(rest));
            sum += covered_[c];
            if (covered_[c] > covered_[most]) most = c;
        }
        SliceRect rect;
        rect.x0 = static_cast<float>(pixel_);
        rect.x1 = rect.x0 + 1;
        rect.slice = slice_;
        rect.name = name_[most];
        rect.category = static_cast<SliceCategory>(most);
        // Thirty-two steps: enough for the eye, and neighbours that look alike become one.
        const double share = std::min(1.0, sum / psPerPixel_);
        rect.coverage = std::max<std::uint8_t>(kLeastCoverage, static_cast<std::uint8_t>(static_cast<int>(share * 31.999) * 8 + 7));
        if (!out_.empty()) {
            // A wide slice may end in this pixel; the pixel's rest is what is left.
            rect.x0 = std::max(rect.x0, out_.back().x1);
            SliceRect& before = out_.back();
            if (before.slice == kNoSlice && rect.slice == kNoSlice && before.x1 == rect.x0 && before.category == rect.category && before.coverage == rect.coverage) {
                before.x1 = rect.x1;
                clear();
                return;
            }
        }
        if (rect.x1 > rect.x0) out_.push_back(rect);
        clear();
    }

private:
    void clear() {
        for (unsigned rest = used_; rest; rest &= rest - 1) {
            const auto c = static_cast<std::size_t>(std::countr_zero(rest));
            covered_[c] = longest_[c] = 0;
        }
        used_ = 0;
        pieces_ = 0;
    }

    double psPerPixel_;
    std::vector<SliceRect>& out_;
    std::array<double, 7> covered_{}, longest_{};
    std::array<std::uint32_t, 7> name_{};
    unsigned used_ = 0;  ///< categories with anything in covered_
    std::int64_t pixel_ = 0;
    std::int64_t pieces_ = 0;
    std::uint32_t slice_ = kNoSlice;
};

}  // namespace

void visibleSlices(const Trace& trace, const SliceRow& row, const TimeAxis& axis, std::vector<SliceRect>& out) {
    out.clear();
    const std::size_t last = row.firstStartingFrom(trace, axis.window().end);
    // A slice that ended where the window begins still touches it; an instant on the border counts as visible.
    std::size_t i = row.firstEndingAfter(trace, axis.window().begin - Time::fromPicoseconds(1));
    const double pixel = axis.psPerPixel();
    PixelMerger merger(axis, out);
    const auto& levels = row.levels();
    while (i < last) {
        // The largest group that begins here and is narrower than a pixel.
        if (i % SliceRow::kFan == 0 && !levels.empty()) {
            std::size_t span = SliceRow::kFan, taken = 0;
            const SliceGroup* best = nullptr;
            for (std::size_t level = 0; level < levels.size() && i % span == 0; ++level, span *= SliceRow::kFan) {
                const SliceGroup& group = levels[level][i / span];
                if (static_cast<double>((group.end - group.begin).picoseconds()) > pixel || i + span > last + SliceRow::kFan) break;
                best = &group;
                taken = span;
            }
            if (best) {
                merger.addGroup(axis.toX(best->begin), axis.toX(best->end), *best);
                i += taken;
                continue;
            }
        }
        const std::uint32_t s = row.slice(i);
        const double x0 = axis.toX(trace.start[s]), width = axis.widthOf(trace.duration[s]);
        if (width < 1) {
            merger.add(std::max(0.0, x0), trace.duration[s], trace.category[s], trace.name[s], s);
        } else {
            merger.flush();
            SliceRect rect;
            rect.x0 = static_cast<float>(std::max(0.0, x0));
            if (!out.empty()) rect.x0 = std::max(rect.x0, out.back().x1);
            rect.x1 = static_cast<float>(std::min(axis.width(), x0 + width));
            rect.slice = s;
            rect.name = trace.name[s];
            rect.category = trace.category[s];
            if (rect.x1 > rect.x0) out.push_back(rect);
        }
        ++i;
    }
    merger.flush();
}

std::optional<std::uint32_t> sliceAt(const Trace& trace, const SliceRow& row, const TimeAxis& axis, double x, double reach) {
    const Time t = axis.toTime(x);
    const std::size_t at = row.firstEndingAfter(trace, t);
    std::optional<std::uint32_t> nearest;
    double best = reach;
    for (const std::size_t i : {at, at - 1}) {
        if (i >= row.size()) continue;
        const std::uint32_t s = row.slice(i);
        const double x0 = axis.toX(trace.start[s]), x1 = x0 + axis.widthOf(trace.duration[s]);
        const double distance = x < x0 ? x0 - x : x > x1 ? x - x1 : 0;
        if (distance == 0 && x1 > x0) return s;
        if (distance <= best) best = distance, nearest = s;
    }
    return nearest;
}

}  // namespace ringside::gui
