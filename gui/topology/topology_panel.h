// TopologyPanel: the cluster drawn, its links coloured by what they carried in the selected range.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QTransform>

#include "gui/core/panel.h"
#include "gui/topology/topology_layout.h"
#include "gui/topology/traffic.h"

class QLabel;

namespace ringside::gui {

/// The drawing itself: zoom with the wheel, drag to move, double-click to fit.
class TopologyView : public QWidget {
    Q_OBJECT
public:
    explicit TopologyView(const Theme& theme, QWidget* parent = nullptr);

    /// Null: nothing to draw, and `why` says what to do.
    void show(std::shared_ptr<const Topology> topology, const QString& why);
    /// By LinkId, over a stretch of that length.
    void setLoad(std::vector<double> bytes, Time length);
    void fit();
    /// What a tooltip at the widget's point says; empty over nothing.
    QString textAt(const QPointF& point) const;
    const TopologyLayout& layout() const { return layout_; }
    QPointF toWidget(double x, double y) const { return transform_.map(QPointF(x, y)); }
    double busiest() const { return busiest_; }  ///< share of the fullest link

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    bool event(QEvent* event) override;

private:
    double loadOfCable(const Cable& cable) const;
    void paintLegend(QPainter& painter) const;
    void paintParts(QPainter& painter) const;

    const Theme& theme_;
    std::shared_ptr<const Topology> topology_;
    TopologyLayout layout_;
    std::vector<double> bytes_;
    Time length_;
    double busiest_ = 0;
    QString why_;
    QTransform transform_;
    bool fitted_ = true;
    QPointF grabbed_;
};

/// From nothing (0) over some to full (1): a colour of the theme. Pure.
QColor loadColor(const ThemeColors& colors, double share);

class TopologyPanel : public Panel {
    Q_OBJECT
public:
    explicit TopologyPanel(const GuiContext& context, QWidget* parent = nullptr);

    TopologyView& view() { return *view_; }
    QString note() const;
    QSize sizeHint() const override { return {900, 340}; }

protected:
    void refresh() override;

private:
    TopologyView* view_;
    QLabel* note_;
    std::shared_ptr<const Topology> topology_;
    std::optional<Cluster> cluster_;  ///< of topology_
};

}  // namespace ringside::gui
