// StudyChart: lines and points of a study, in the theme's colours. A point knows its row: hover says what it is, a click opens it.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <QtCharts/QChartView>

#include "gui/core/theme.h"

namespace ringside::gui {

struct ChartPoint {
    double x = 0, y = 0;
    std::size_t row = 0;
    bool hollow = false;  ///< does not fit in memory
};

struct ChartLine {
    QString name;
    std::vector<ChartPoint> points;
    int color = 0;         ///< into the theme's series; −1: the accent, −2: muted
    bool joined = true;    ///< false: points only
    bool dashed = false, marks = true;
};

struct ChartContent {
    QString title, x, y;
    bool doublingX = false;  ///< x doubles from mark to mark (device counts)
    bool yFromZero = true;
    std::vector<ChartLine> lines;
};

class StudyChart : public QChartView {
    Q_OBJECT
public:
    explicit StudyChart(const Theme& theme, QWidget* parent = nullptr);

    void show(ChartContent content);
    const ChartContent& content() const { return content_; }
    /// The row of the point nearest to a place of the widget, within a few pixels; −1: none.
    int rowAt(const QPointF& place) const;
    /// Where a point stands in the widget.
    QPointF placeOf(const ChartPoint& point) const;

    std::function<QString(std::size_t row)> describe;
    std::function<void(std::size_t row)> open;

protected:
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;

private:
    void rebuild();
    QColor colorOf(const ChartLine& line) const;

    const Theme& theme_;
    ChartContent content_;
};

}  // namespace ringside::gui
