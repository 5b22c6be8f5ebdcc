// TimelineWidget: turns keys, wheel and mouse into calls of the view state, and paints what it says. No logic of its own.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include <QBasicTimer>
#include <QElapsedTimer>
#include <QScrollBar>
#include <QWidget>

#include "gui/canvas/navigation_keys.h"
#include "gui/canvas/timeline_painter.h"
#include "gui/core/panel.h"

namespace ringside::gui {

class TimelineWidget : public QWidget {
    Q_OBJECT
public:
    TimelineWidget(Session& session, Theme& theme, QWidget* parent = nullptr);
    ~TimelineWidget() override;

    const TrackLayout& layout() const { return layout_; }
    TimelineMetrics metrics() const;
    double scroll() const { return scrollBar_->value(); }
    void scrollTo(int y) { scrollBar_->setValue(y); }
    /// The slice at a point of the widget.
    std::optional<std::uint32_t> sliceAtPoint(const QPointF& point) const;
    /// Where a slice is in the widget, if its row is shown.
    std::optional<QRectF> rectOfSlice(std::uint32_t slice) const;
    /// Brings a slice into view: opens its rank, scrolls to its row and moves the window if it is outside or a sliver.
    void reveal(std::uint32_t slice);
    /// Scrolls to a track's row; false if it is filtered away.
    bool scrollToTrack(std::uint32_t track);
    /// The picture at the painter's origin; `vector`: as shapes.
    void paintInto(QPainter& painter, const QSize& size, bool vector);
    void setFlowsShown(bool shown);
    bool flowsShown() const { return flows_; }
    /// Where the mouse is, in time; the middle of the window where it is elsewhere.
    Time cursorTime() const;

    enum class Picked { Slice, Range };

signals:
    void picked(ringside::gui::TimelineWidget::Picked what);  ///< by the mouse, here: whoever wants to say more of it may come to the front
    void frameTime(double milliseconds);  ///< of each picture
    void hovered(const QString& text);    ///< for the status bar; empty: nothing

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void keyReleaseEvent(QKeyEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void timerEvent(QTimerEvent* event) override;

private:
    enum class Drag { None, Range, Pan, MaybeRange, MaybeRow, Row };

    TimelineScene scene(const QSize& size) const;
    void relayout();
    void documentChanged();
    const LayoutRow* rowAtPoint(const QPointF& point) const;
    void showTip(const QPoint& at);
    std::vector<std::uint32_t> tracksBetween(double y0, double y1) const;
    QString tipOf(std::uint32_t slice) const;

    Session& session_;
    Theme& theme_;
    TrackLayout layout_;
    std::unique_ptr<TimelinePainter> painter_;
    QScrollBar* scrollBar_;
    bool flows_ = true;
    std::optional<QPointF> cursor_;
    std::optional<std::uint32_t> hovered_;
    Drag drag_ = Drag::None;
    QPointF pressed_;
    Time pressedAt_;
    TimeRange pressedWindow_;
    double pressedScroll_ = 0;
    std::optional<TimeRange> measuring_;
    std::array<QElapsedTimer, 5> held_;  ///< by NavigationKey; invalid: not held
    QBasicTimer tick_;
    QElapsedTimer sinceTick_;
};

}  // namespace ringside::gui
