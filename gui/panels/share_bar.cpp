#include "gui/panels/share_bar.h"

#include <QPainter>

namespace ringside::gui {
namespace {
constexpr int kBar = 18, kLine = 20;
}

ShareBar::ShareBar(Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

void ShareBar::setShares(const QString& title, std::vector<Share> shares, const QString& note) {
    title_ = title;
    note_ = note;
    shares_ = std::move(shares);
    updateGeometry();
    update();
}

QSize ShareBar::sizeHint() const { return {360, heightForWidth(360)}; }

int ShareBar::heightForWidth(int) const { return kLine + kBar + 8 + kLine * static_cast<int>(shares_.size()); }

void ShareBar::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const ThemeColors& colors = theme_.colors();
    QFont bold = font();
    bold.setBold(true);
    painter.setFont(bold);
    painter.setPen(colors.text);
    painter.drawText(QRect(0, 0, width(), kLine), Qt::AlignLeft | Qt::AlignVCenter, title_);
    painter.setFont(font());
    painter.setPen(colors.muted);
    painter.drawText(QRect(0, 0, width(), kLine), Qt::AlignRight | Qt::AlignVCenter, note_);
    double whole = 0;
    for (const Share& share : shares_) whole += share.time.seconds();
    double x = 0;
    for (const Share& share : shares_) {
        const double wide = whole > 0 ? share.time.seconds() / whole * width() : 0;
        painter.fillRect(QRectF(x, kLine + 2, wide, kBar), share.color);
        x += wide;
    }
    int y = kLine + kBar + 6;
    for (const Share& share : shares_) {
        painter.fillRect(QRect(0, y + 5, 10, 10), share.color);
        painter.setPen(colors.text);
        painter.drawText(QRect(18, y, width() - 150, kLine), Qt::AlignLeft | Qt::AlignVCenter, share.name);
        painter.drawText(QRect(0, y, width() - 62, kLine), Qt::AlignRight | Qt::AlignVCenter, QString::fromStdString(formatTime(share.time)));
        painter.setPen(colors.muted);
        painter.drawText(QRect(0, y, width(), kLine), Qt::AlignRight | Qt::AlignVCenter, whole > 0 ? QString::number(100 * share.time.seconds() / whole, 'f', 1) + " %" : QString());
        y += kLine;
    }
}

}  // namespace ringside::gui
