// OverviewBar: the whole trace in a strip, with the window as a frame to drag, the selection, and where a search hit.
#pragma once

#include <QImage>
#include <QWidget>

#include "gui/core/session.h"
#include "gui/core/theme.h"

namespace ringside::gui {

class OverviewBar : public QWidget {
    Q_OBJECT
public:
    /// `header`: pixels at the left that belong to the names of tracks below.
    OverviewBar(Session& session, Theme& theme, int header, QWidget* parent = nullptr);

protected:
    void paintEvent(QPaintEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void outdated();
    void paintStrip();
    void moveWindow(double x, bool resizing);

    Session& session_;
    Theme& theme_;
    int header_;
    QImage strip_;
    Time grabbed_;
    bool resizing_ = false;
};

}  // namespace ringside::gui
