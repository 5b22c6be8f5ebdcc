#include "gui/canvas/timeline_decorations.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>

#include <fmt/format.h>

namespace ringside::gui {
namespace {

constexpr double kTickSpacing = 110;

QString text(const std::string& utf8) { return QString::fromStdString(utf8); }

QColor faded(QColor color, int alpha) {
    color.setAlpha(alpha);
    return color;
}

void paintRuler(QPainter& painter, const TimelineScene& scene, const QFont& font) {
    const int left = scene.metrics.header;
    const TimeAxis axis = scene.axis();
    painter.fillRect(QRect(0, 0, scene.size.width(), scene.metrics.top()), scene.colors.window);
    painter.setFont(font);
    const QFontMetricsF metrics(font);
    painter.save();
    painter.setClipRect(QRect(left, 0, scene.bodyWidth(), scene.metrics.top()));
    for (const RulerTick& tick : rulerTicks(axis, kTickSpacing)) {
        const double x = left + std::round(axis.toX(tick.at)) + 0.5;
        painter.setPen(scene.colors.border);
        painter.drawLine(QPointF(x, scene.metrics.ruler - 6), QPointF(x, scene.metrics.ruler));
        const QString label = text(tick.label);
        if (x + 4 + metrics.horizontalAdvance(label) > scene.size.width()) continue;  // half a number would be another number
        painter.setPen(scene.colors.muted);
        painter.drawText(QPointF(x + 4, scene.metrics.ruler - 8), label);
    }
    // Steps and phases: bands with their names. Where they overlap (annotations may), a name ends where the next band begins.
    for (std::size_t p = 0; p < scene.document.phases.size(); ++p) {
        const Phase& phase = scene.document.phases[p];
        const double x0 = std::clamp(axis.toX(phase.range.begin), -10.0, axis.width() + 10), x1 = std::clamp(axis.toX(phase.range.end), -10.0, axis.width() + 10);
        if (x1 < 0 || x0 > axis.width()) continue;
        const QRectF band(left + x0, scene.metrics.ruler + (phase.step ? 0 : scene.metrics.steps), std::max(1.0, x1 - x0), 15);
        painter.fillRect(band, faded(phase.step ? scene.colors.accent : scene.colors.muted, phase.step ? 50 : 36));
        painter.fillRect(QRectF(band.left(), band.top(), 1, band.height()), faded(scene.colors.muted, 160));
        QRectF inside = band.intersected(QRectF(left, 0, scene.bodyWidth(), scene.metrics.top())).adjusted(5, 0, -3, 0);
        for (std::size_t next = p + 1; next < scene.document.phases.size(); ++next)
            if (scene.document.phases[next].step == phase.step) {
                inside.setRight(std::min(inside.right(), left + axis.toX(scene.document.phases[next].range.begin) - 3));
                break;
            }
        if (inside.width() > 24) {
            painter.setPen(scene.colors.text);
            painter.drawText(inside, Qt::AlignVCenter | Qt::AlignLeft, metrics.elidedText(text(phase.name), Qt::ElideRight, inside.width()));
        }
    }
    painter.restore();
    painter.setPen(scene.colors.border);
    painter.drawLine(0, scene.metrics.top() - 1, scene.size.width(), scene.metrics.top() - 1);
    // What one looks at, at the left of the ruler.
    painter.setPen(scene.colors.muted);
    const TimeRange shown = clamp(scene.view.window(), scene.view.trace());
    painter.drawText(QRectF(10, 0, left - 16, scene.metrics.ruler), Qt::AlignVCenter | Qt::AlignLeft,
                     metrics.elidedText(text(formatTime(shown.length()) + " of " + formatTime(scene.view.trace().length())), Qt::ElideRight, left - 16));
}

void paintHeader(QPainter& painter, const TimelineScene& scene, const LayoutRow& row, const QFont& font) {
    const Trace& trace = scene.document.trace;
    const double y = scene.yOf(row);
    const int width = scene.metrics.header;
    const QFontMetricsF metrics(font);
    QFont used = font;
    QString name, detail;
    double indent = 24;
    const auto rankName = [&] {
        const auto named = trace.rankNames.find(row.rank);
        return named != trace.rankNames.end() ? text(named->second) : QString("Rank %1").arg(row.rank);
    };
    switch (row.kind) {
        case RowKind::Rank:
            used.setBold(true);
            name = "▾ " + rankName();
            indent = 10;
            painter.fillRect(QRectF(0, y, width, row.height - 1), scene.colors.raised);
            break;
        case RowKind::Density:
            name = row.height >= metrics.height() - 2 ? "▸ " + rankName() : QString();
            indent = 10;
            break;
        case RowKind::Track: {
            const Track& track = trace.tracks[row.track];
            name = text(track.name);
            if (name.isEmpty()) name = QString("stream %1").arg(track.stream);
            if (row.folded) name = "▸ " + name;
            const QColor color = track.kind == TrackKind::Compute         ? scene.colors.of(SliceCategory::Compute)
                                 : track.kind == TrackKind::Communication ? scene.colors.of(SliceCategory::Communication)
                                 : track.kind == TrackKind::Copy          ? scene.colors.of(SliceCategory::Copy)
                                                                          : scene.colors.of(SliceCategory::Host);
            painter.fillRect(QRectF(12, y + 2, 3, row.height - 6), color);
            if (&row >= scene.layout.pinned.data() && &row < scene.layout.pinned.data() + scene.layout.pinned.size()) detail = QString("rank %1, pinned").arg(row.rank);
            break;
        }
        case RowKind::Counter: {
            const CounterSeries& counter = trace.counters[row.track];
            name = text(counter.name);
            detail = counterValue(counter, counterTop(scene, row.track)) + " at the top";
            break;
        }
    }
    if (std::binary_search(scene.view.tracks().begin(), scene.view.tracks().end(), row.track) && row.kind == RowKind::Track)
        painter.fillRect(QRectF(0, y, width, row.height - 1), faded(scene.colors.selection, 40));
    painter.setFont(used);
    painter.setPen(scene.colors.text);
    const double line = row.kind == RowKind::Rank || row.kind == RowKind::Density ? row.height : std::min(row.height, RowHeights().line);
    painter.drawText(QRectF(indent, y, width - indent - 6, line), Qt::AlignVCenter | Qt::AlignLeft, QFontMetricsF(used).elidedText(name, Qt::ElideRight, width - indent - 6));
    if (!detail.isEmpty() && row.height > 30) {
        painter.setPen(scene.colors.muted);
        painter.drawText(QRectF(indent, y + RowHeights().line - 2, width - indent - 6, RowHeights().line), Qt::AlignVCenter | Qt::AlignLeft, metrics.elidedText(detail, Qt::ElideRight, width - indent - 6));
    } else if (!detail.isEmpty()) {
        painter.setPen(scene.colors.muted);
        const double used2 = indent + metrics.horizontalAdvance(name) + 10;
        painter.drawText(QRectF(used2, y, width - used2 - 6, line), Qt::AlignVCenter | Qt::AlignRight, metrics.elidedText(detail, Qt::ElideRight, width - used2 - 6));
    }
    painter.fillRect(QRectF(0, y + row.height - 1, scene.size.width(), 1), scene.colors.grid);
}

void paintCounterLines(QPainter& painter, const TimelineScene& scene, const LayoutRow& row, const QFont& font) {
    const Trace& trace = scene.document.trace;
    const CounterSeries& counter = trace.counters[row.track];
    const double y = scene.yOf(row), room = row.height - 6, bottom = y + row.height - 2, most = static_cast<double>(counterTop(scene, row.track));
    if (most <= 0) return;
    const int left = scene.metrics.header;
    const auto at = [&](Bytes value) { return bottom - static_cast<double>(value) / most * room; };
    if (const std::optional<std::uint32_t> reserved = reservedBeside(trace, row.track)) {
        std::vector<std::int64_t> columns;
        counterColumns(trace.counters[*reserved], scene.document.counters[*reserved], scene.axis(), columns);
        QPainterPath path;
        bool begun = false;
        for (std::size_t x = 0; x < columns.size(); ++x) {
            if (columns[x] < 0) continue;
            const QPointF point(left + static_cast<double>(x), at(scene.document.counters[*reserved].sumAt(static_cast<std::size_t>(columns[x]))));
            if (begun) path.lineTo(point);
            else path.moveTo(point);
            begun = true;
        }
        painter.setPen(QPen(scene.colors.text, 1.2));
        painter.setBrush(Qt::NoBrush);
        painter.drawPath(path);
    }
    const Bytes limit = counter.limit > 0 ? counter.limit : counter.name.starts_with("memory") ? scene.document.capacity : 0;
    if (limit > 0 && static_cast<double>(limit) <= most) {
        painter.setPen(QPen(scene.colors.bad, 1, Qt::DashLine));
        painter.drawLine(QPointF(left, at(limit)), QPointF(scene.size.width(), at(limit)));
        painter.setFont(font);
        painter.drawText(QPointF(left + 6, at(limit) + 12), "capacity " + counterValue(counter, limit));
    }
}

void paintFlows(QPainter& painter, const TimelineScene& scene) {
    if (!scene.flows || !scene.view.slice() || *scene.view.slice() >= scene.document.trace.size()) return;
    const std::uint32_t chosen = *scene.view.slice();
    const Trace& trace = scene.document.trace;
    painter.setRenderHint(QPainter::Antialiasing);
    const auto arrow = [&](std::uint32_t f) {
        const Flow& flow = trace.flows[f];
        const std::optional<QRectF> from = rectOf(scene, flow.from), to = rectOf(scene, flow.to);
        if (!from || !to) return;
        const QPointF a(from->right(), from->center().y()), b(to->left(), to->center().y());
        const double reach = std::clamp(std::abs(b.x() - a.x()) / 2, 14.0, 120.0);
        QPainterPath path(a);
        path.cubicTo(a + QPointF(reach, 0), b - QPointF(reach, 0), b);
        QColor color = flow.kind == Flow::Kind::Launch ? scene.colors.muted : flow.kind == Flow::Kind::Collective ? scene.colors.of(SliceCategory::Communication) : scene.colors.flow;
        painter.setPen(QPen(color, 1.6, flow.kind == Flow::Kind::Launch ? Qt::DashLine : Qt::SolidLine));
        painter.setBrush(Qt::NoBrush);
        painter.drawPath(path);
        painter.setPen(Qt::NoPen);
        painter.setBrush(color);
        painter.drawPolygon(QPolygonF({b, b + QPointF(-7, -4), b + QPointF(-7, 4)}));
    };
    // A slice with hundreds of arrows would hide what it shows.
    constexpr std::size_t kMost = 64;
    std::size_t drawn = 0;
    for (const std::uint32_t f : scene.document.flows.into(chosen))
        if (++drawn <= kMost) arrow(f);
    for (const std::uint32_t f : scene.document.flows.outOf(chosen))
        if (++drawn <= 2 * kMost) arrow(f);
    painter.setRenderHint(QPainter::Antialiasing, false);
}

void paintPath(QPainter& painter, const TimelineScene& scene) {
    const TimeAxis axis = scene.axis();
    const std::vector<PathPiece>& path = scene.view.path();
    if (path.empty()) return;
    // What is not on the path steps back.
    painter.fillRect(QRectF(0, scene.metrics.top(), scene.bodyWidth(), scene.size.height()), faded(scene.colors.base, 120));
    const auto begin = std::partition_point(path.begin(), path.end(), [&](const PathPiece& piece) { return piece.range.end < axis.window().begin; });
    std::optional<QPointF> last;
    double lastX = -10, lastY = -10;
    for (auto it = begin; it != path.end() && it->range.begin < axis.window().end; ++it) {
        const std::optional<QRectF> rect = rectOf(scene, it->slice);
        if (!rect) continue;
        const double x0 = std::max(axis.toX(it->range.begin), -4.0), x1 = std::min(axis.toX(it->range.end), axis.width() + 4);
        // Pieces of less than a pixel on one row are one stroke.
        if (x1 - lastX < 0.5 && rect->top() == lastY) continue;
        lastX = x1, lastY = rect->top();
        if (last && std::abs(last->y() - rect->center().y()) > 1) {
            painter.setPen(QPen(scene.colors.criticalPath, 1.2));
            painter.drawLine(*last, QPointF(x0, rect->center().y()));
        }
        const SliceCategory category = scene.document.trace.category[it->slice];
        const QRectF piece(x0, rect->top(), std::max(1.0, x1 - x0), rect->height());
        painter.fillRect(piece, scene.colors.of(category));
        painter.fillRect(QRectF(piece.left(), piece.bottom() - 3, piece.width(), 3), scene.colors.criticalPath);
        last = QPointF(x1, rect->center().y());
    }
}

void paintRange(QPainter& painter, const TimelineScene& scene, const TimeRange& range, const QFont& font, bool measuring) {
    const TimeAxis axis = scene.axis();
    const double x0 = std::clamp(axis.toX(range.begin), -2.0, axis.width() + 2), x1 = std::clamp(axis.toX(range.end), -2.0, axis.width() + 2);
    if (x1 < 0 || x0 > axis.width()) return;
    const int left = scene.metrics.header;
    painter.fillRect(QRectF(left + x0, scene.metrics.top(), x1 - x0, scene.size.height()), faded(scene.colors.selection, measuring ? 46 : 30));
    painter.setPen(QPen(scene.colors.selection, 1));
    painter.drawLine(QPointF(left + x0, scene.metrics.ruler), QPointF(left + x0, scene.size.height()));
    painter.drawLine(QPointF(left + x1, scene.metrics.ruler), QPointF(left + x1, scene.size.height()));
    painter.fillRect(QRectF(left + x0, scene.metrics.ruler - 4, x1 - x0, 4), scene.colors.selection);
    const QString label = text(formatTime(range.length()));
    QFont bold = font;
    bold.setBold(true);
    const double width = QFontMetricsF(bold).horizontalAdvance(label) + 14;
    const double x = std::clamp(left + (x0 + x1) / 2 - width / 2, static_cast<double>(left), std::max<double>(left, scene.size.width() - width));
    painter.setFont(bold);
    painter.fillRect(QRectF(x, 2, width, scene.metrics.ruler - 8), scene.colors.selection);
    painter.setPen(ThemeColors::textOn(scene.colors.selection));
    painter.drawText(QRectF(x, 2, width, scene.metrics.ruler - 8), Qt::AlignCenter, label);
}

}  // namespace

Bytes counterTop(const TimelineScene& scene, std::uint32_t counter) {
    const Trace& trace = scene.document.trace;
    Bytes top = scene.document.counters[counter].largest();
    if (const std::optional<std::uint32_t> reserved = reservedBeside(trace, counter)) top = std::max(top, scene.document.counters[*reserved].largest());
    const Bytes limit = trace.counters[counter].limit > 0 ? trace.counters[counter].limit : trace.counters[counter].name.starts_with("memory") ? scene.document.capacity : 0;
    return limit > top && limit < 3 * top ? limit + limit / 20 : top;
}

std::optional<QRectF> rectOf(const TimelineScene& scene, std::uint32_t slice) {
    const Trace& trace = scene.document.trace;
    const LayoutRow* row = scene.layout.rowOfTrack(trace.track[slice]);
    if (!row) return std::nullopt;
    const TimeAxis axis = scene.axis();
    const double x0 = std::clamp(axis.toX(trace.start[slice]), -axis.width(), 2 * axis.width());
    const double x1 = std::clamp(axis.toX(trace.start[slice] + trace.duration[slice]), -axis.width(), 2 * axis.width());
    double y = scene.yOf(*row), height = RowHeights().line - 1;
    if (row->kind == RowKind::Track) {
        y += static_cast<double>(std::min(scene.document.index.rowOf(trace, slice), row->lines - 1)) * RowHeights().line;
    } else {
        height = (row->height - 2) / static_cast<double>(row->bands.size());
        y += 1 + static_cast<double>(std::find(row->bands.begin(), row->bands.end(), trace.track[slice]) - row->bands.begin()) * height;
    }
    return QRectF(x0, y, std::max(1.0, x1 - x0), height);
}

QString counterValue(const CounterSeries& counter, Bytes value) {
    if (counter.name.find("load") != std::string::npos || counter.name.find("bandwidth") != std::string::npos) return text(formatBytes(value)) + "/s";
    const bool bytes = counter.name.find("emory") != std::string::npos || counter.name.find("ytes") != std::string::npos || counter.limit > 0;
    return text(bytes ? formatBytes(value) : formatShortCount(static_cast<double>(value)));
}

void paintGrid(QPainter& painter, const TimelineScene& scene) {
    const TimeAxis axis = scene.axis();
    painter.setPen(scene.colors.grid);
    for (const RulerTick& tick : rulerTicks(axis, kTickSpacing)) {
        const double x = std::round(axis.toX(tick.at)) + 0.5;
        painter.drawLine(QPointF(x, scene.metrics.top()), QPointF(x, scene.size.height()));
    }
}

void paintDecorations(QPainter& painter, const TimelineScene& scene, const QFont& font) {
    const int left = scene.metrics.header;
    const TimeAxis axis = scene.axis();
    painter.save();
    painter.setClipRect(QRect(left, scene.metrics.top(), scene.bodyWidth(), scene.size.height()));
    painter.translate(left, 0);
    paintPath(painter, scene);
    // Steps: lines through all rows.
    for (const Phase& phase : scene.document.phases)
        if (phase.step) {
            const double x = axis.toX(phase.range.begin);
            if (x < 0 || x > axis.width()) continue;
            painter.setPen(QPen(faded(scene.colors.accent, 150), 1));
            painter.drawLine(QPointF(x, scene.metrics.top()), QPointF(x, scene.size.height()));
        }
    for (const std::optional<std::uint32_t>& slice : {scene.hovered, scene.view.slice()}) {
        if (!slice || *slice >= scene.document.trace.size()) continue;
        if (const std::optional<QRectF> rect = rectOf(scene, *slice)) {
            const bool chosen = slice == scene.view.slice();
            painter.setPen(QPen(scene.colors.text, chosen ? 2 : 1));
            painter.setBrush(Qt::NoBrush);
            painter.drawRect(chosen ? rect->adjusted(0, 0, -1, 0) : rect->adjusted(0.5, 0.5, -1, -0.5));
        }
    }
    paintFlows(painter, scene);
    painter.restore();

    painter.fillRect(QRect(0, scene.metrics.top(), left, scene.size.height()), scene.colors.window);
    painter.save();
    painter.setClipRect(QRectF(0, scene.bodyTop(), scene.size.width(), scene.size.height()));
    const auto [first, last] = scene.layout.visible(scene.scroll, scene.scroll + scene.size.height() - scene.bodyTop());
    for (std::size_t i = first; i < last; ++i) {
        paintHeader(painter, scene, scene.layout.rows[i], font);
        if (scene.layout.rows[i].kind == RowKind::Counter) paintCounterLines(painter, scene, scene.layout.rows[i], font);
    }
    painter.restore();
    for (const LayoutRow& row : scene.layout.pinned) paintHeader(painter, scene, row, font);
    if (!scene.layout.pinned.empty()) painter.fillRect(QRectF(0, scene.bodyTop() - 2, scene.size.width(), 2), scene.colors.border);
    painter.fillRect(QRect(left - 1, 0, 1, scene.size.height()), scene.colors.border);
    if (scene.landing) painter.fillRect(QRectF(0, *scene.landing - 1, scene.size.width(), 2), scene.colors.accent);

    paintRuler(painter, scene, font);
    painter.save();
    painter.setClipRect(QRect(left, 0, scene.bodyWidth(), scene.size.height()));
    if (scene.view.selection()) paintRange(painter, scene, *scene.view.selection(), font, false);
    if (scene.measuring) paintRange(painter, scene, *scene.measuring, font, true);
    if (scene.view.instant()) {
        const double x = left + axis.toX(*scene.view.instant());
        painter.setPen(QPen(scene.colors.accent, 1, Qt::DashLine));
        painter.drawLine(QPointF(x, scene.metrics.ruler), QPointF(x, scene.size.height()));
    }
    for (const TimeMarker& marker : scene.view.markers()) {
        const double x = left + axis.toX(marker.at);
        if (x < left || x > scene.size.width()) continue;
        painter.setPen(QPen(scene.colors.warning, 1));
        painter.drawLine(QPointF(x, 0), QPointF(x, scene.size.height()));
        painter.setFont(font);
        const double width = QFontMetricsF(font).horizontalAdvance(marker.label) + 8;
        painter.fillRect(QRectF(x, 0, width, 16), scene.colors.warning);
        painter.setPen(ThemeColors::textOn(scene.colors.warning));
        painter.drawText(QRectF(x, 0, width, 16), Qt::AlignCenter, marker.label);
    }
    if (scene.cursor && !scene.measuring) {
        painter.setPen(QPen(faded(scene.colors.text, 70), 1));
        painter.drawLine(QPointF(left + *scene.cursor, scene.metrics.ruler), QPointF(left + *scene.cursor, scene.size.height()));
    }
    painter.restore();
}

}  // namespace ringside::gui
