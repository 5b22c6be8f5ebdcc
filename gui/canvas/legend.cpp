#include "gui/canvas/legend.h"

#include <set>

#include <QPainter>

namespace ringside::gui {

Legend::Legend(Session& session, Theme& theme, QWidget* parent) : QWidget(parent), session_(session), theme_(theme) {
    setFixedHeight(24);
    connect(&session_, &Session::documentChanged, this, [this] { update(); });
    connect(&theme_, &Theme::changed, this, [this] { update(); });
}

QSize Legend::sizeHint() const { return {400, 24}; }

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

void Legend::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const ThemeColors& colors = theme_.colors();
    painter.fillRect(rect(), colors.window);
    painter.setPen(colors.border);
    painter.drawLine(0, 0, width(), 0);
    QFont small = font();
    small.setPointSizeF(small.pointSizeF() * 0.9);
    painter.setFont(small);
    double x = 12;
    for (const auto& [color, name] : entries()) {
        const double wide = QFontMetricsF(small).horizontalAdvance(name);
        if (!color.isValid()) {
            painter.setPen(colors.text);
            painter.drawText(QRectF(x + 10, 1, wide + 4, height()), Qt::AlignVCenter | Qt::AlignLeft, name);
            x += wide + 26;
            continue;
        }
        if (x + wide + 20 > width()) break;
        painter.fillRect(QRectF(x, height() / 2.0 - 4, 10, 10), color);
        painter.setPen(colors.muted);
        painter.drawText(QRectF(x + 15, 1, wide + 4, height()), Qt::AlignVCenter | Qt::AlignLeft, name);
        x += wide + 34;
    }
}

}  // namespace ringside::gui
