#include "gui/canvas/legend.h"

#include <set>

#include <QPainter>

namespace ringside::gui {
namespace {
constexpr int kFirstLine = 24, kFurtherLine = 17;
}

Legend::Legend(Session& session, Theme& theme, QWidget* parent) : QWidget(parent), session_(session), theme_(theme) {
    setFixedHeight(kFirstLine);
    connect(&session_, &Session::documentChanged, this, [this] {
        fitHeight();
        update();
    });
    connect(&theme_, &Theme::changed, this, [this] { update(); });
}

QSize Legend::sizeHint() const { return {400, kFirstLine}; }

std::vector<std::pair<QColor, QString>> Legend::entries() const {
    const Trace& trace = session_.document().trace;
    std::set<SliceCategory> used;
    for (std::size_t i = 0; i < trace.size() && used.size() < kSliceCategories; i += 1 + trace.size() / 200'000) used.insert(trace.category[i]);
    std::vector<std::pair<QColor, QString>> list;
    for (const SliceCategory category : used) list.emplace_back(theme_.colors().of(category), QString::fromUtf8(nameOf(category).data(), static_cast<qsizetype>(nameOf(category).size())));
    for (const CounterSeries& counter : trace.counters) {
        if (counter.series.size() < 2) continue;
        list.emplace_back(QColor(), QString::fromStdString(counter.name) + ":");
        for (std::size_t s = 0; s < counter.series.size(); ++s) {
            bool any = false;
            for (std::size_t i = s; i < counter.values.size() && !any; i += counter.series.size()) any = counter.values[i] != 0;
            if (any) list.emplace_back(theme_.colors().seriesColor(s), QString::fromStdString(counter.series[s]).replace('_', ' '));
        }
        break;  // the others have the same series
    }
    return list;
}

QFont Legend::small() const {
    QFont small = font();
    small.setPointSizeF(small.pointSizeF() * 0.9);
    return small;
}

std::vector<Legend::Entry> Legend::placed() const {
    const QFontMetricsF metrics(small());
    std::vector<Entry> list;
    double x = 12;
    int line = 0;
    for (const auto& [color, name] : entries()) {
        const double wide = metrics.horizontalAdvance(name), before = color.isValid() ? 15 : 10;
        if (x + before + wide > width() && x > 12) x = 12, ++line;
        list.push_back({color, name, x, wide, line});
        x += before + wide + (color.isValid() ? 19 : 16);
    }
    return list;
}

void Legend::fitHeight() {
    const std::vector<Entry> list = placed();
    setFixedHeight(kFirstLine + (list.empty() ? 0 : list.back().line) * kFurtherLine);
}

void Legend::resizeEvent(QResizeEvent*) { fitHeight(); }

void Legend::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const ThemeColors& colors = theme_.colors();
    painter.fillRect(rect(), colors.window);
    painter.setPen(colors.border);
    painter.drawLine(0, 0, width(), 0);
    painter.setFont(small());
    for (const Entry& entry : placed()) {
        const double y = entry.line * kFurtherLine;
        if (entry.color.isValid()) painter.fillRect(QRectF(entry.x, y + kFirstLine / 2.0 - 4, 10, 10), entry.color);
        painter.setPen(entry.color.isValid() ? colors.muted : colors.text);
        painter.drawText(QRectF(entry.x + (entry.color.isValid() ? 15 : 10), y + 1, entry.width + 4, kFirstLine), Qt::AlignVCenter | Qt::AlignLeft, entry.name);
    }
}

}  // namespace ringside::gui
