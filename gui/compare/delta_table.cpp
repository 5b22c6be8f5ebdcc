#include "gui/compare/delta_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <QPainter>
#include <QSplitter>
#include <QVBoxLayout>

#include <fmt/format.h>

namespace ringside::gui {
namespace {

constexpr std::size_t kBins = 40;

QString text(const std::string& utf8) { return QString::fromStdString(utf8); }

QString signedTime(Time t) {
    if (t == Time()) return "0 s";
    return (t > Time() ? "+" : "−") + text(formatTime(t > Time() ? t : Time() - t));
}

QString percentText(const DeltaRow& row) {
    if (row.before == Time()) return "new";
    if (row.after == Time()) return "gone";
    const double percent = (row.after.seconds() / row.before.seconds() - 1) * 100;
    return text(fmt::format("{}{:.1f} %", percent < -0.05 ? "−" : percent > 0.05 ? "+" : "", std::abs(percent)));
}

}  // namespace

HistogramPair::HistogramPair(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) { setMinimumSize(220, 110); }

void HistogramPair::show(const DeltaRow* row) {
    name_ = row ? text(row->name) : QString();
    histogram_ = row ? pairedHistogram(*row, kBins) : PairedHistogram{};
    update();
}

void HistogramPair::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const ThemeColors& colors = theme_.colors();
    painter.fillRect(rect(), colors.base);
    painter.setPen(colors.muted);
    if (name_.isEmpty()) {
        painter.drawText(rect(), Qt::AlignCenter, "Choose a name to see how long its slices take");
        return;
    }
    const int line = fontMetrics().height();
    const QRectF area = QRectF(rect()).adjusted(12, line + 12, -12, -2 * line - 12);
    std::int64_t most = 1;
    for (const auto* side : {&histogram_.upper, &histogram_.lower}) most = std::max(most, *std::max_element(side->begin(), side->end()));
    painter.setPen(colors.text);
    painter.drawText(QRectF(12, 6, width() - 24, line), Qt::AlignLeft, fontMetrics().elidedText(name_, Qt::ElideMiddle, width() - 24));
    const auto bars = [&](const std::vector<std::int64_t>& counts, QColor color) {
        color.setAlpha(150);
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const double height = area.height() * static_cast<double>(counts[i]) / static_cast<double>(most), wide = area.width() / static_cast<double>(counts.size());
            painter.fillRect(QRectF(area.left() + wide * static_cast<double>(i), area.bottom() - height, wide - 0.5, height), color);
        }
    };
    bars(histogram_.upper, colors.seriesColor(0));
    bars(histogram_.lower, colors.seriesColor(1));
    painter.setPen(colors.border);
    painter.drawLine(area.bottomLeft(), area.bottomRight());
    painter.setPen(colors.muted);
    const QRectF foot(area.left(), area.bottom() + 3, area.width(), line);
    painter.drawText(foot, Qt::AlignLeft, text(formatTime(histogram_.least)));
    painter.drawText(foot, Qt::AlignRight, text(formatTime(histogram_.most)));
    painter.drawText(foot, Qt::AlignHCenter, QString("at most %1 in a bin").arg(most));
    const double top = area.bottom() + 5 + line;
    double x = area.left();
    for (const auto& [name, color] : {std::pair{"above", colors.seriesColor(0)}, std::pair{"below", colors.seriesColor(1)}}) {
        painter.fillRect(QRectF(x, top + 4, 9, 9), color);
        painter.drawText(QRectF(x + 14, top, 80, line), Qt::AlignLeft, name);
        x += 70;
    }
}

DeltaTable::DeltaTable(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    table_ = new TableView;
    histogram_ = new HistogramPair(theme);
    auto* split = new QSplitter(Qt::Horizontal);
    split->addWidget(table_);
    split->addWidget(histogram_);
    split->setStretchFactor(0, 3);
    split->setStretchFactor(1, 1);
    split->setSizes({900, 240});
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(split);
    connect(table_, &TableView::chosenTag, this, [this](std::uint32_t row) { histogram_->show(&deltas_.rows[row]); });
}

void DeltaTable::show(Deltas deltas) {
    histogram_->show(nullptr);
    deltas_ = std::move(deltas);
    const double largest = deltas_.rows.empty() ? 1 : std::max(1e-15, std::abs(deltas_.rows.front().change().seconds()));
    std::vector<TableRow> rows;
    for (std::size_t i = 0; i < deltas_.rows.size(); ++i) {
        const DeltaRow& row = deltas_.rows[i];
        // Deeper colour for a greater change; the sign says the direction too.
        QColor color;
        if (row.change() != Time()) {
            color = row.change() > Time() ? theme_.colors().bad : theme_.colors().good;
            color.setAlphaF(static_cast<float>(0.08 + 0.42 * std::sqrt(std::min(1.0, std::abs(row.change().seconds()) / largest))));
        }
        const double relative = row.before > Time() ? row.change().seconds() / row.before.seconds() : row.after > Time() ? std::numeric_limits<double>::infinity() : 0;
        rows.push_back({{TableCell::ofText(row.name), TableCell::ofCount(std::ssize(row.upper)), TableCell::ofCount(std::ssize(row.lower)), TableCell::of(row.before), TableCell::of(row.after),
                         TableCell{signedTime(row.change()), row.change().seconds(), {}, color}, TableCell{percentText(row), relative, {}, color}},
                        static_cast<std::uint32_t>(i)});
    }
    table_->setTable({{"Name"}, {"Slices above", {}, true, "slices_above"}, {"below", {}, true, "slices_below"}, {"Time above", {}, true, "above_s"}, {"below", {}, true, "below_s"},
                      {"Change", "below − above", true, "change_s"}, {"Change in %", "of the time above", true, "relative_change"}},
                     std::move(rows));
    if (!deltas_.rows.empty()) table_->selectRow(0);
}

}  // namespace ringside::gui
