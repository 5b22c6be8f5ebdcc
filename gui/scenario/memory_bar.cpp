#include "gui/scenario/memory_bar.h"

#include <algorithm>

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

namespace ringside::gui {
namespace {

constexpr int kBar = 18, kGap = 6, kSwatch = 9;

}  // namespace

MemoryBar::MemoryBar(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void MemoryBar::show(const ResultSummary& summary) {
    summary_ = summary;
    updateGeometry();
    update();
}

std::vector<MemoryBar::Piece> MemoryBar::pieces() const {
    // What does not fit runs beyond the capacity's line, so the bar is as long as the larger of both.
    const double whole = static_cast<double>(std::max(summary_.memoryCapacity, summary_.memoryUsed));
    std::vector<Piece> pieces;
    double x = 0;
    for (const MemoryPart& part : summary_.memory) {
        if (!(whole > 0)) break;
        const double width = this->width() * static_cast<double>(part.bytes) / whole;
        pieces.push_back({QRectF(x, 0, width, kBar), QString::fromStdString(part.name + " " + formatBytes(part.bytes)), part.category ? theme_.colors().seriesColor(static_cast<std::size_t>(*part.category)) : theme_.colors().border});
        x += width;
    }
    return pieces;
}

int MemoryBar::legend(int width, QPainter* painter) const {
    const QFontMetrics metrics(font());
    int x = 0, y = 0;
    for (const Piece& piece : pieces()) {
        const int needed = kSwatch + 5 + metrics.horizontalAdvance(piece.text) + 14;
        if (x > 0 && x + needed - 14 > width) {
            x = 0;
            y += metrics.height() + 2;
        }
        if (painter) {
            const int top = kBar + kGap + y;
            painter->fillRect(QRect(x, top + (metrics.height() - kSwatch) / 2, kSwatch, kSwatch), piece.color);
            painter->setPen(theme_.colors().muted);
            painter->drawText(QRect(x + kSwatch + 5, top, width, metrics.height()), Qt::AlignLeft | Qt::AlignVCenter, piece.text);
        }
        x += needed;
    }
    return y + metrics.height() + 2;
}

int MemoryBar::heightForWidth(int width) const { return kBar + kGap + legend(width, nullptr); }
QSize MemoryBar::sizeHint() const { return {320, heightForWidth(320)}; }
QSize MemoryBar::minimumSizeHint() const { return {160, kBar + kGap + QFontMetrics(font()).height()}; }

void MemoryBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const ThemeColors& colors = theme_.colors();
    painter.fillRect(QRect(0, 0, width(), kBar), colors.raised);
    for (const Piece& piece : pieces()) painter.fillRect(piece.bar.adjusted(0, 0, -0.5, 0), piece.color);
    if (summary_.memoryUsed > summary_.memoryCapacity && summary_.memoryCapacity > 0) {
        const double x = width() * static_cast<double>(summary_.memoryCapacity) / static_cast<double>(summary_.memoryUsed);
        painter.fillRect(QRectF(x - 1, -1, 2.5, kBar + 2), colors.bad);
    }
    painter.setPen(colors.border);
    painter.drawRect(QRectF(0.5, 0.5, width() - 1, kBar - 1));
    legend(width(), &painter);
}

bool MemoryBar::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        for (const Piece& piece : pieces())
            if (piece.bar.contains(help->pos())) QToolTip::showText(help->globalPos(), piece.text, this);
        return true;
    }
    return QWidget::event(event);
}

}  // namespace ringside::gui
