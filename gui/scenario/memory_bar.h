// MemoryBar: what a device's memory holds at its fullest, by category, against what it has.
#pragma once

#include <QWidget>

#include "gui/core/theme.h"
#include "gui/scenario/result_summary.h"

namespace ringside::gui {

class MemoryBar : public QWidget {
    Q_OBJECT
public:
    explicit MemoryBar(const Theme& theme, QWidget* parent = nullptr);

    void show(const ResultSummary& summary);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;

private:
    struct Piece {
        QRectF bar;
        QString text;
        QColor color;
    };
    std::vector<Piece> pieces() const;
    /// Lays the legend out in lines; returns the height it takes. Paints with a painter.
    int legend(int width, QPainter* painter) const;

    const Theme& theme_;
    ResultSummary summary_;
};

}  // namespace ringside::gui
