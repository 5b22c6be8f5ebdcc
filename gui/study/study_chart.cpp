#include "gui/study/study_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <QMouseEvent>
#include <QToolTip>
#include <QtCharts/QCategoryAxis>
#include <QtCharts/QChart>
#include <QtCharts/QLegendMarker>
#include <QtCharts/QLineSeries>
#include <QtCharts/QScatterSeries>
#include <QtCharts/QValueAxis>

namespace ringside::gui {
namespace {

constexpr double kReach = 12;

}  // namespace

StudyChart::StudyChart(const Theme& theme, QWidget* parent) : QChartView(parent), theme_(theme) {
    setRenderHint(QPainter::Antialiasing);
    setMouseTracking(true);
    setMinimumSize(320, 220);
    setFrameShape(QFrame::NoFrame);
    connect(&theme, &Theme::changed, this, [this] { rebuild(); });
    rebuild();
}

void StudyChart::show(ChartContent content) {
    content_ = std::move(content);
    rebuild();
}

QColor StudyChart::colorOf(const ChartLine& line) const {
    const ThemeColors& colors = theme_.colors();
    return line.color == -1 ? colors.text : line.color == -2 ? colors.muted : colors.seriesColor(static_cast<std::size_t>(line.color));
}

void StudyChart::rebuild() {
    const ThemeColors& colors = theme_.colors();
    auto* made = new QChart;
    made->setBackgroundBrush(colors.base);
    made->setBackgroundRoundness(0);
    made->setMargins(QMargins(8, 4, 12, 4));
    made->setTitle(content_.title);
    made->setTitleBrush(colors.text);
    made->legend()->setLabelColor(colors.text);
    made->legend()->setAlignment(Qt::AlignTop);

    double lowX = std::numeric_limits<double>::infinity(), highX = -lowX, lowY = lowX, highY = -lowX;
    for (const ChartLine& line : content_.lines)
        for (const ChartPoint& point : line.points) {
            lowX = std::min(lowX, point.x), highX = std::max(highX, point.x);
            lowY = std::min(lowY, point.y), highY = std::max(highY, point.y);
        }
    const bool empty = lowX > highX;
    if (empty) lowX = content_.doublingX ? 1 : 0, highX = content_.doublingX ? 8 : 1, lowY = 0, highY = 1;
    // Device counts stand at even distances: the axis is drawn in log₂, its marks say the counts.
    const auto xOf = [this](double x) { return content_.doublingX ? std::log2(std::max(x, 1e-9)) : x; };
    QAbstractAxis* axisX = nullptr;
    if (content_.doublingX) {
        auto* axis = new QCategoryAxis;
        axis->setLabelsPosition(QCategoryAxis::AxisLabelsPositionOnValue);
        const int first = static_cast<int>(std::floor(std::log2(lowX))), last = static_cast<int>(std::ceil(std::log2(highX)));
        const int step = std::max(1, (last - first) / 12);
        for (int power = first; power <= last; power += step) axis->append(QString::number(std::exp2(power)), power);
        axis->setRange(first - 0.15, last + 0.15);
        axisX = axis;
    } else {
        auto* axis = new QValueAxis;
        const double room = highX > lowX ? (highX - lowX) * 0.06 : std::max(std::abs(highX), 1.0) * 0.1;
        axis->setRange(lowX >= 0 ? std::max(0.0, lowX - room) : lowX - room, highX + room);
        axis->applyNiceNumbers();
        axis->setLabelFormat("%.4g");
        axisX = axis;
    }
    auto* axisY = new QValueAxis;
    const double roomY = highY > lowY ? (highY - lowY) * 0.08 : std::max(std::abs(highY), 1.0) * 0.1;
    axisY->setRange(content_.yFromZero && lowY >= 0 ? 0 : lowY - roomY, highY + roomY);
    axisY->applyNiceNumbers();
    axisY->setLabelFormat("%.4g");
    for (QAbstractAxis* axis : {axisX, static_cast<QAbstractAxis*>(axisY)}) {
        axis->setTitleText(axis == axisX ? content_.x : content_.y);
        axis->setTitleBrush(colors.muted);
        axis->setLabelsColor(colors.muted);
        axis->setGridLineColor(colors.grid);
        axis->setLinePenColor(colors.border);
    }
    made->addAxis(axisX, Qt::AlignBottom);
    made->addAxis(axisY, Qt::AlignLeft);

    for (const ChartLine& line : content_.lines) {
        const QColor color = colorOf(line);
        const auto add = [&](QXYSeries* series, bool inLegend) {
            series->setName(line.name);
            made->addSeries(series);
            series->attachAxis(axisX);
            series->attachAxis(axisY);
            for (QLegendMarker* marker : made->legend()->markers(series)) marker->setVisible(inLegend);
        };
        if (line.joined) {
            auto* series = new QLineSeries;
            series->setPen(QPen(color, line.dashed ? 1.5 : 2.2, line.dashed ? Qt::DashLine : Qt::SolidLine));
            for (const ChartPoint& point : line.points) series->append(xOf(point.x), point.y);
            add(series, true);
        }
        if (!line.marks) continue;
        bool named = false;  // in the legend once, also where nothing fits
        for (const bool hollow : {false, true}) {
            auto* series = new QScatterSeries;
            series->setMarkerSize(9);
            series->setColor(hollow ? colors.base : color);
            series->setBorderColor(color);
            for (const ChartPoint& point : line.points)
                if (point.hollow == hollow) series->append(xOf(point.x), point.y);
            if (series->count() == 0) {
                delete series;
                continue;
            }
            add(series, !line.joined && !named);
            named = true;
        }
    }
    QChart* old = chart();
    setChart(made);
    delete old;
    setBackgroundBrush(colors.base);
}

QPointF StudyChart::placeOf(const ChartPoint& point) const {
    const QPointF value(content_.doublingX ? std::log2(std::max(point.x, 1e-9)) : point.x, point.y);
    const QPointF inChart = chart()->series().isEmpty() ? QPointF() : chart()->mapToPosition(value, chart()->series().front());
    return mapFromScene(chart()->mapToScene(inChart));
}

int StudyChart::rowAt(const QPointF& place) const {
    int nearest = -1;
    double least = kReach;
    for (const ChartLine& line : content_.lines) {
        if (!line.marks) continue;
        for (const ChartPoint& point : line.points) {
            const QPointF away = placeOf(point) - place;
            const double distance = std::hypot(away.x(), away.y());
            if (distance >= least) continue;
            least = distance;
            nearest = static_cast<int>(point.row);
        }
    }
    return nearest;
}

void StudyChart::mouseMoveEvent(QMouseEvent* event) {
    QChartView::mouseMoveEvent(event);
    const int row = rowAt(event->position());
    setCursor(row >= 0 && open ? Qt::PointingHandCursor : Qt::ArrowCursor);
    if (row >= 0 && describe) QToolTip::showText(event->globalPosition().toPoint(), describe(static_cast<std::size_t>(row)), this);
    else QToolTip::hideText();
}

void StudyChart::mouseReleaseEvent(QMouseEvent* event) {
    QChartView::mouseReleaseEvent(event);
    const int row = event->button() == Qt::LeftButton ? rowAt(event->position()) : -1;
    if (row >= 0 && open) open(static_cast<std::size_t>(row));
}

}  // namespace ringside::gui
