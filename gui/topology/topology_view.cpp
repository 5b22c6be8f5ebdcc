#include <algorithm>
#include <cmath>

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <QWheelEvent>

#include <fmt/format.h>

#include "gui/topology/topology_panel.h"

namespace ringside::gui {
namespace {

constexpr double kMargin = 24, kLegendHeight = 44;

QRectF rectOf(const Box& box) { return {box.x, box.y, box.width, box.height}; }

QColor mix(const QColor& a, const QColor& b, double t) {
    const auto part = [t](int from, int to) { return static_cast<int>(std::lround(from + (to - from) * t)); };
    return {part(a.red(), b.red()), part(a.green(), b.green()), part(a.blue(), b.blue())};
}

QColor partColor(const ThemeColors& colors, VertexKind kind) {
    switch (kind) {
        case VertexKind::Device: return colors.of(SliceCategory::Compute);
        case VertexKind::Nic: return colors.of(SliceCategory::Communication);
        case VertexKind::NvSwitch: return colors.of(SliceCategory::Copy);
        case VertexKind::LeafSwitch: case VertexKind::SpineSwitch: return colors.of(SliceCategory::Optimizer);
        case VertexKind::PcieSwitch: case VertexKind::Cpu: return colors.of(SliceCategory::Host);
    }
    return colors.border;
}

std::string percent(double share) { return fmt::format("{:.3g} %", share * 100); }

}  // namespace

QColor loadColor(const ThemeColors& colors, double share) {
    // Lightness and width change with the hue, so that it reads without colour too.
    const double t = std::clamp(share, 0.0, 1.0);
    return t < 0.5 ? mix(colors.good, colors.warning, t * 2) : mix(colors.warning, colors.bad, t * 2 - 1);
}

TopologyView::TopologyView(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setMouseTracking(true);
    setMinimumHeight(140);
}

void TopologyView::show(std::shared_ptr<const Topology> topology, const QString& why) {
    why_ = why;
    if (topology != topology_) {
        topology_ = std::move(topology);
        layout_ = topology_ ? layOut(*topology_) : TopologyLayout{};
        bytes_.clear();
        fit();
    }
    update();
}

void TopologyView::setLoad(std::vector<double> bytes, Time length) {
    bytes_ = std::move(bytes);
    length_ = length;
    busiest_ = 0;
    for (const Cable& cable : layout_.cables) busiest_ = std::max(busiest_, loadOfCable(cable));
    update();
}

double TopologyView::loadOfCable(const Cable& cable) const {
    if (bytes_.empty() || !topology_) return 0;
    return std::max(loadOf(bytes_[cable.there], topology_->link(cable.there), length_), loadOf(bytes_[cable.back], topology_->link(cable.back), length_));
}

void TopologyView::fit() {
    fitted_ = true;
    if (layout_.width <= 0) return;
    const double scale = std::min((width() - 2 * kMargin) / layout_.width, (height() - kLegendHeight - 2 * kMargin) / layout_.height);
    const double used = std::clamp(scale, 0.02, 1.6);
    transform_ = QTransform::fromTranslate((width() - layout_.width * used) / 2, kMargin + std::max(0.0, (height() - kLegendHeight - 2 * kMargin - layout_.height * used) / 2));
    transform_.scale(used, used);
    update();
}

void TopologyView::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    const ThemeColors& colors = theme_.colors();
    painter.fillRect(rect(), colors.base);
    if (!topology_) {
        painter.setPen(colors.muted);
        painter.drawText(rect().adjusted(20, 20, -20, -20), Qt::AlignCenter | Qt::TextWordWrap, why_);
        return;
    }
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setTransform(transform_);
    for (const NodeFrame& node : layout_.nodes) {
        painter.setPen(QPen(colors.border, 1));
        painter.setBrush(colors.window);
        painter.drawRoundedRect(rectOf(node.box), 8, 8);
    }
    // Busy cables last, so that they lie on top.
    std::vector<std::pair<double, const Cable*>> cables;
    for (const Cable& cable : layout_.cables) cables.emplace_back(loadOfCable(cable), &cable);
    std::stable_sort(cables.begin(), cables.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [load, cable] : cables) {
        const auto [x1, y1, x2, y2] = lineOf(layout_, *cable);
        painter.setPen(load > 0 ? QPen(loadColor(colors, load), 1.6 + 3.2 * std::min(load, 1.0), Qt::SolidLine, Qt::RoundCap) : QPen(colors.border, 1));
        painter.drawLine(QPointF(x1, y1), QPointF(x2, y2));
    }
    paintParts(painter);
    painter.resetTransform();
    paintLegend(painter);
}

void TopologyView::paintParts(QPainter& painter) const {
    const ThemeColors& colors = theme_.colors();
    const double scale = transform_.m11();
    QFont font = painter.font();
    font.setPixelSize(11);
    for (const NodeFrame& node : layout_.nodes) {
        if (scale < 0.25) break;  // too small to read
        font.setBold(true);
        painter.setFont(font);
        // Cables to the leaf switches pass here; the name stays readable in front of them.
        const QString label = QString::fromStdString(node.label);
        const QRectF box(node.box.x + 10, node.box.y + 6, QFontMetricsF(font).horizontalAdvance(label) + 8, 18);
        painter.fillRect(box, colors.window);
        painter.setPen(colors.text);
        painter.drawText(box, Qt::AlignCenter, label);
    }
    font.setBold(false);
    painter.setFont(font);
    for (const PartBox& part : layout_.parts) {
        const QColor color = partColor(colors, part.kind);
        const QColor fill = mix(colors.base, color, 0.28);
        painter.setPen(QPen(color, 1.2));
        painter.setBrush(fill);
        painter.drawRoundedRect(rectOf(part.box), 4, 4);
        if (scale < 0.45) continue;
        painter.setPen(ThemeColors::textOn(fill));
        painter.drawText(rectOf(part.box), Qt::AlignCenter, QFontMetrics(font).elidedText(QString::fromStdString(part.label), Qt::ElideRight, static_cast<int>(part.box.width)));
    }
}

void TopologyView::paintLegend(QPainter& painter) const {
    const ThemeColors& colors = theme_.colors();
    const QRectF box(0, height() - kLegendHeight, width(), kLegendHeight);
    painter.fillRect(box, colors.base);
    painter.setPen(colors.border);
    painter.drawLine(box.topLeft(), box.topRight());
    constexpr int kWide = 160;
    const double left = 16, top = box.top() + 12;
    for (int i = 0; i < kWide; ++i) painter.fillRect(QRectF(left + i, top, 1.5, 10), loadColor(colors, static_cast<double>(i) / kWide));
    painter.setPen(colors.muted);
    painter.drawText(QRectF(left, top + 11, kWide, 18), Qt::AlignLeft | Qt::AlignVCenter, "0 %");
    painter.drawText(QRectF(left, top + 11, kWide, 18), Qt::AlignRight | Qt::AlignVCenter, "100 %");
    QString text = "Load of a link over the range, the busier direction. ";
    if (!bytes_.empty()) text += QString::fromStdString("Busiest: " + percent(busiest_) + ".");
    painter.setPen(colors.text);
    painter.drawText(QRectF(left + kWide + 20, box.top(), width() - kWide - 50, kLegendHeight), Qt::AlignLeft | Qt::AlignVCenter | Qt::TextWordWrap, text);
}

QString TopologyView::textAt(const QPointF& point) const {
    if (!topology_) return {};
    const QPointF at = transform_.inverted().map(point);
    if (const int part = partAt(layout_, at.x(), at.y()); part >= 0) {
        const PartBox& box = layout_.parts[static_cast<std::size_t>(part)];
        QString text = QString::fromStdString(box.label);
        if (box.node >= 0) text += QString(" of node %1").arg(box.node);
        if (box.kind == VertexKind::Device) {
            const Cluster& cluster = topology_->cluster();
            text += "\n" + QString::fromStdString(cluster.nodes[cluster.groupOf(topology_->graph()[box.vertex].index)].kind.device.fullName);
        }
        return text;
    }
    const int index = cableAt(layout_, at.x(), at.y(), 5 / transform_.m11());
    if (index < 0) return {};
    const Cable& cable = layout_.cables[static_cast<std::size_t>(index)];
    std::string text = describe(layout_, *topology_, cable);
    if (!bytes_.empty() && length_ > Time())
        for (const auto& [id, from, to] : {std::tuple{cable.there, cable.from, cable.to}, std::tuple{cable.back, cable.to, cable.from}})
            text += fmt::format("\n{} → {}: {:.3g} GB/s, {} of it ({})", layout_.parts[from].label, layout_.parts[to].label, bytes_[id] / length_.seconds() / 1e9,
                                percent(loadOf(bytes_[id], topology_->link(id), length_)), formatBytes(static_cast<Bytes>(bytes_[id])));
    return QString::fromStdString(text);
}

void TopologyView::resizeEvent(QResizeEvent*) {
    if (fitted_) fit();
}

void TopologyView::wheelEvent(QWheelEvent* event) {
    const double factor = std::exp(event->angleDelta().y() / 600.0);
    const QPointF at = transform_.inverted().map(event->position());
    if (transform_.m11() * factor < 0.02 || transform_.m11() * factor > 8) return;
    transform_.translate(at.x(), at.y());
    transform_.scale(factor, factor);
    transform_.translate(-at.x(), -at.y());
    fitted_ = false;
    update();
}

void TopologyView::mousePressEvent(QMouseEvent* event) { grabbed_ = event->position(); }

void TopologyView::mouseMoveEvent(QMouseEvent* event) {
    if (!(event->buttons() & (Qt::LeftButton | Qt::MiddleButton))) return;
    const QPointF moved = event->position() - grabbed_;
    grabbed_ = event->position();
    transform_ = transform_ * QTransform::fromTranslate(moved.x(), moved.y());
    fitted_ = false;
    update();
}

void TopologyView::mouseDoubleClickEvent(QMouseEvent*) { fit(); }

bool TopologyView::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const QString text = textAt(help->pos());
        if (text.isEmpty()) QToolTip::hideText();
        else QToolTip::showText(help->globalPos(), text, this);
        return true;
    }
    return QWidget::event(event);
}

}  // namespace ringside::gui
