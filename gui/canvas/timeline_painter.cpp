#include "gui/canvas/timeline_painter.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QPainter>

#include "gui/canvas/timeline_decorations.h"

namespace ringside::gui {
namespace {

QRgb mix(const QColor& a, const QColor& b, double share) {
    const auto channel = [&](int x, int y) { return static_cast<int>(std::lround(x + (y - x) * share)); };
    return qRgb(channel(a.red(), b.red()), channel(a.green(), b.green()), channel(a.blue(), b.blue()));
}

constexpr double kLineGap = 1;  // between lines of slices

}  // namespace

double TimelineScene::yOf(const LayoutRow& row) const {
    const bool pinned = !layout.pinned.empty() && &row >= layout.pinned.data() && &row < layout.pinned.data() + layout.pinned.size();
    return pinned ? metrics.top() + row.y : bodyTop() + row.y - scroll;
}

TimelinePainter::TimelinePainter(const QFont& font) : font_(font), charWidth_(QFontMetricsF(font).horizontalAdvance("abcdefghijklmnopqrstuvwxyz") / 26) {}

void TimelinePainter::prepareColors(const TimelineScene& scene) {
    if (colorsOf_ == &scene.colors) return;
    colorsOf_ = &scene.colors;
    for (std::size_t c = 0; c < kSliceCategories; ++c) {
        for (std::size_t s = 0; s < kShades; ++s) {
            const QColor color = scene.colors.shadeOf(static_cast<SliceCategory>(c), static_cast<int>(s));
            for (std::size_t level = 0; level < 32; ++level) palette_[c][s][level] = mix(scene.colors.base, color, static_cast<double>(level + 1) / 32);
        }
        dimmed_[c] = mix(scene.colors.base, scene.colors.of(static_cast<SliceCategory>(c)), 0.28);
    }
}

QRgb TimelinePainter::colorOf(const SliceRect& rect) const {
    return palette_[static_cast<std::size_t>(rect.category)][rect.slice == kNoSlice ? 0 : shadeOfName(rect.name, kShades)][rect.coverage / 8];
}

/// Straight into memory where there is an image: a hundred thousand rectangles a picture are too many for a general painter.
void TimelinePainter::fill(double x0, double x1, double y, double height, QRgb color) {
    ++rectangles_;
    if (vector_) {
        vector_->fillRect(QRectF(x0, y, x1 - x0, height), QColor(color));
        return;
    }
    const auto whole = [this](double x) { return static_cast<int>(x * ratio_ + 0.5); };  // below zero is cut off anyway
    const int left = std::clamp(whole(x0), 0, imageSize_.width()), right = std::clamp(whole(x1), std::min(left + 1, imageSize_.width()), imageSize_.width());
    const int top = std::clamp(whole(y), 0, imageSize_.height()), bottom = std::clamp(whole(y + height), 0, imageSize_.height());
    color |= 0xff000000;
    QRgb* line = pixels_ + static_cast<std::ptrdiff_t>(top) * stride_;
    for (int row = top; row < bottom; ++row, line += stride_) std::fill(line + left, line + right, color);
}

void TimelinePainter::paintTrack(const TimelineScene& scene, const LayoutRow& row, double y, double clipTop) {
    const Trace& trace = scene.document.trace;
    const TimeAxis axis = scene.axis();
    const std::span<const SliceRow> rows = scene.document.index.rows(row.track);
    const double lineHeight = RowHeights().line;
    const std::vector<std::uint32_t>& hits = scene.view.hits();
    for (std::size_t line = 0; line < row.lines; ++line) {
        const double top = y + static_cast<double>(line) * lineHeight;
        if (top + lineHeight <= clipTop || top >= scene.size.height()) continue;
        visibleSlices(trace, rows[line], axis, rects_);
        for (const SliceRect& rect : rects_) {
            // A gap of a pixel keeps neighbours apart where there is room for it.
            const double gap = rect.slice != kNoSlice && rect.x1 - rect.x0 >= 4 ? 1 : 0;
            const bool dim = !hits.empty() && rect.slice != kNoSlice && !std::binary_search(hits.begin(), hits.end(), rect.slice);
            fill(rect.x0, rect.x1 - gap, top, lineHeight - kLineGap, dim ? dimmed_[static_cast<std::size_t>(rect.category)] : colorOf(rect));
            if (rect.slice != kNoSlice && rect.x1 - rect.x0 >= 26 && top >= clipTop - lineHeight / 2) labels_.push_back({rect.x0, rect.x1, top, rect.name, rect.category, dim});
        }
    }
}

void TimelinePainter::paintDensity(const TimelineScene& scene, const LayoutRow& row, double y) {
    const TimeAxis axis = scene.axis();
    if (row.bands.empty()) return;
    const double height = (row.height - 2) / static_cast<double>(row.bands.size());
    for (std::size_t band = 0; band < row.bands.size(); ++band) {
        for (const SliceRow& line : outermost(scene.document.index.rows(row.bands[band]))) {
            visibleSlices(scene.document.trace, line, axis, rects_);
            for (const SliceRect& rect : rects_) fill(rect.x0, rect.x1, y + 1 + static_cast<double>(band) * height, height, colorOf(rect));
        }
    }
}

void TimelinePainter::paintCounter(const TimelineScene& scene, const LayoutRow& row, double y) {
    const CounterSeries& counter = scene.document.trace.counters[row.track];
    const CounterIndex& index = scene.document.counters[row.track];
    const double room = row.height - 6, bottom = y + row.height - 2, most = static_cast<double>(counterTop(scene, row.track));
    if (most <= 0) return;
    counterColumns(counter, index, scene.axis(), columns_);
    const std::size_t series = counter.series.size();
    for (std::size_t x = 0; x < columns_.size();) {
        // Equal columns are one rectangle.
        std::size_t end = x + 1;
        while (end < columns_.size() && columns_[end] == columns_[x]) ++end;
        if (columns_[x] >= 0) {
            double from = bottom;
            for (std::size_t s = 0; s < series; ++s) {
                const double value = static_cast<double>(counter.values[static_cast<std::size_t>(columns_[x]) * series + s]);
                const double height = value / most * room;
                if (height <= 0) continue;
                fill(static_cast<double>(x), static_cast<double>(end), from - height, height, mix(scene.colors.base, scene.colors.seriesColor(s), 0.85));
                from -= height;
            }
        }
        x = end;
    }
}

void TimelinePainter::paintRows(const TimelineScene& scene) {
    labels_.clear();
    const auto one = [&](const LayoutRow& row, double clipTop) {
        const double y = scene.yOf(row);
        switch (row.kind) {
            case RowKind::Rank: fill(0, scene.bodyWidth(), y, row.height - 1, scene.colors.window.rgb()); break;
            case RowKind::Track: paintTrack(scene, row, y, clipTop); break;
            case RowKind::Density: paintDensity(scene, row, y); break;
            case RowKind::Counter: paintCounter(scene, row, y); break;
        }
    };
    const auto [first, last] = scene.layout.visible(scene.scroll, scene.scroll + scene.size.height() - scene.bodyTop());
    for (std::size_t i = first; i < last; ++i) one(scene.layout.rows[i], scene.bodyTop());
    if (!scene.layout.pinned.empty()) {
        std::erase_if(labels_, [&](const Label& label) { return label.y < scene.bodyTop(); });
        fill(0, scene.bodyWidth(), scene.metrics.top(), scene.layout.pinnedHeight, scene.colors.base.rgb());
        for (const LayoutRow& row : scene.layout.pinned) one(row, scene.metrics.top());
    }
}

const QStaticText& TimelinePainter::textFor(const Trace& trace, std::uint32_t name, int width) {
    if (textsOf_ != &trace || texts_.size() > 50'000) {
        texts_.clear();
        textsOf_ = &trace;
    }
    const int room = std::min(static_cast<int>(width / charWidth_), 255);
    const quint64 key = static_cast<quint64>(name) << 8 | static_cast<quint64>(room);
    auto it = texts_.find(key);
    if (it == texts_.end()) {
        const std::string& full = trace.names[name];
        // No more than fits: names of kernels can have thousands of characters.
        const QString text = QString::fromUtf8(full.data(), static_cast<qsizetype>(std::min<std::size_t>(full.size(), 512)));
        QStaticText drawn(QFontMetricsF(font_).elidedText(text, Qt::ElideRight, room * charWidth_));
        drawn.setTextFormat(Qt::PlainText);
        drawn.setPerformanceHint(QStaticText::AggressiveCaching);
        drawn.prepare({}, font_);
        it = texts_.insert(key, drawn);
    }
    return *it;
}

void TimelinePainter::paintLabels(QPainter& painter, const TimelineScene& scene) {
    painter.setFont(font_);
    const double offset = (RowHeights().line - kLineGap - QFontMetricsF(font_).height()) / 2;
    std::array<QColor, kSliceCategories> on;
    for (std::size_t c = 0; c < kSliceCategories; ++c) on[c] = ThemeColors::textOn(scene.colors.categories[c]);
    int category = -1;
    for (const Label& label : labels_) {
        const int wanted = label.dim ? 100 : static_cast<int>(label.category);
        if (wanted != category) {
            category = wanted;
            painter.setPen(label.dim ? scene.colors.muted : on[static_cast<std::size_t>(wanted)]);
        }
        painter.drawStaticText(QPointF(label.x0 + 4, label.y + offset), textFor(scene.document.trace, label.name, static_cast<int>(label.x1 - label.x0 - 8)));
    }
}

void TimelinePainter::paint(QPainter& painter, const TimelineScene& scene, double ratio, bool vector) {
    prepareColors(scene);
    rectangles_ = 0;
    const int left = scene.metrics.header;
    painter.save();
    painter.setClipRect(QRect(QPoint(0, 0), scene.size));
    painter.translate(left, 0);
    if (vector) {
        vector_ = &painter;
        painter.fillRect(QRect(0, 0, scene.bodyWidth(), scene.size.height()), scene.colors.base);
        paintGrid(painter, scene);
        painter.setClipRect(QRect(0, scene.metrics.top(), scene.bodyWidth(), scene.size.height()));
        paintRows(scene);
        paintLabels(painter, scene);
        vector_ = nullptr;
    } else {
        ratio_ = ratio;
        const QSize wanted(static_cast<int>(std::ceil(scene.bodyWidth() * ratio)), static_cast<int>(std::ceil(scene.size.height() * ratio)));
        if (image_.size() != wanted) image_ = QImage(wanted, QImage::Format_RGB32);
        image_.setDevicePixelRatio(1);
        image_.fill(scene.colors.base.rgb());
        {
            QPainter grid(&image_);
            grid.scale(ratio, ratio);
            paintGrid(grid, scene);
        }
        pixels_ = reinterpret_cast<QRgb*>(image_.bits());
        stride_ = image_.bytesPerLine() / static_cast<qsizetype>(sizeof(QRgb));
        imageSize_ = image_.size();
        paintRows(scene);
        {
            QPainter text(&image_);
            text.setRenderHint(QPainter::TextAntialiasing);
            text.scale(ratio, ratio);
            paintLabels(text, scene);
        }
        image_.setDevicePixelRatio(ratio);
        painter.drawImage(0, 0, image_);
    }
    painter.restore();
    painter.save();
    painter.setClipRect(QRect(QPoint(0, 0), scene.size));
    paintDecorations(painter, scene, font_);
    painter.restore();
}

}  // namespace ringside::gui
