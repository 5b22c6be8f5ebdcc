#include "gui/canvas/timeline_widget.h"

#include <algorithm>
#include <cmath>

#include <QMenu>
#include <QMouseEvent>
#include <QPaintEngine>
#include <QPainter>
#include <QToolTip>

#include "gui/canvas/timeline_decorations.h"
#include "gui/canvas/track_menu.h"

namespace ringside::gui {

TimelineWidget::TimelineWidget(Session& session, Theme& theme, QWidget* parent) : QWidget(parent), session_(session), theme_(theme) {
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setMinimumSize(320, 120);
    QFont small = font();
    small.setPointSizeF(std::max(7.5, small.pointSizeF() * 0.9));
    painter_ = std::make_unique<TimelinePainter>(small);
    scrollBar_ = new QScrollBar(Qt::Vertical, this);
    connect(scrollBar_, &QScrollBar::valueChanged, this, [this] { update(); });
    connect(&session_, &Session::documentChanged, this, &TimelineWidget::documentChanged);
    ViewState& view = session_.view();
    for (const auto signal : {&ViewState::windowChanged, &ViewState::selectionChanged, &ViewState::sliceChanged, &ViewState::instantChanged, &ViewState::markersChanged,
                              &ViewState::hitsChanged, &ViewState::pathChanged})
        connect(&view, signal, this, [this] { update(); });
    connect(&view, &ViewState::trackOptionsChanged, this, &TimelineWidget::relayout);
    connect(&view, &ViewState::revealRequested, this, &TimelineWidget::reveal);
    connect(&theme_, &Theme::changed, this, [this] {
        painter_->forgetColors();
        update();
    });
    relayout();
}

TimelineWidget::~TimelineWidget() = default;

TimelineMetrics TimelineWidget::metrics() const {
    TimelineMetrics metrics;
    for (const Phase& phase : session_.document().phases) (phase.step ? metrics.steps : metrics.phases) = 17;
    return metrics;
}

TimelineScene TimelineWidget::scene(const QSize& size) const {
    TimelineScene scene{session_.document(), session_.view(), layout_, theme_.colors(), metrics(), size, scroll()};
    if (cursor_ && cursor_->x() >= scene.metrics.header) scene.cursor = cursor_->x() - scene.metrics.header;
    scene.hovered = hovered_;
    scene.measuring = measuring_;
    scene.flows = flows_;
    if (drag_ == Drag::Row && cursor_)
        if (const LayoutRow* onto = rowAtPoint(*cursor_)) scene.landing = scene.yOf(*onto) + (cursor_->y() > pressed_.y() ? onto->height : 0);
    return scene;
}

void TimelineWidget::documentChanged() {
    hovered_.reset();
    measuring_.reset();
    relayout();
}

void TimelineWidget::relayout() {
    layout_ = layoutTracks(session_.document().trace, session_.document().index, session_.view().trackOptions());
    const double visible = height() - metrics().top() - layout_.pinnedHeight;
    scrollBar_->setPageStep(std::max(1, static_cast<int>(visible)));
    scrollBar_->setSingleStep(20);
    scrollBar_->setRange(0, std::max(0, static_cast<int>(std::ceil(layout_.height + 40 - visible))));
    scrollBar_->setVisible(scrollBar_->maximum() > 0);
    update();
}

void TimelineWidget::paintInto(QPainter& painter, const QSize& size, bool vector) { painter_->paint(painter, scene(size), devicePixelRatioF(), vector); }

void TimelineWidget::paintEvent(QPaintEvent*) {
    QElapsedTimer clock;
    clock.start();
    {
        QPainter painter(this);
        const bool shapes = painter.paintEngine()->type() == QPaintEngine::SVG;  // rendered into a file, with all around it
        paintInto(painter, QSize(width() - (scrollBar_->isVisible() ? scrollBar_->width() : 0), height()), shapes);
        if (scrollBar_->isVisible()) painter.fillRect(QRect(scrollBar_->x(), 0, scrollBar_->width(), metrics().top()), theme_.colors().window);
    }
    emit frameTime(static_cast<double>(clock.nsecsElapsed()) / 1e6);
}

void TimelineWidget::resizeEvent(QResizeEvent*) {
    const int width = scrollBar_->sizeHint().width();
    scrollBar_->setGeometry(this->width() - width, metrics().top(), width, height() - metrics().top());
    relayout();
}

void TimelineWidget::setFlowsShown(bool shown) {
    flows_ = shown;
    update();
}

const LayoutRow* TimelineWidget::rowAtPoint(const QPointF& point) const {
    const double y = point.y() - metrics().top();
    if (y < 0) return nullptr;
    return y < layout_.pinnedHeight ? layout_.pinnedAt(y) : layout_.rowAt(y - layout_.pinnedHeight + scroll());
}

std::optional<std::uint32_t> TimelineWidget::sliceAtPoint(const QPointF& point) const {
    const TimelineScene now = scene(size());
    const LayoutRow* row = rowAtPoint(point);
    if (!row || point.x() < now.metrics.header) return std::nullopt;
    const double x = point.x() - now.metrics.header;
    const Document& document = session_.document();
    if (row->kind == RowKind::Track) {
        const auto line = static_cast<std::size_t>(std::max(0.0, (point.y() - now.yOf(*row)) / RowHeights().line));
        if (line >= row->lines) return std::nullopt;
        return gui::sliceAt(document.trace, document.index.rows(row->track)[line], now.axis(), x);
    }
    if (row->kind == RowKind::Density && !row->bands.empty()) {
        const double height = (row->height - 2) / static_cast<double>(row->bands.size());
        const auto band = static_cast<std::size_t>(std::clamp((point.y() - now.yOf(*row) - 1) / height, 0.0, static_cast<double>(row->bands.size() - 1)));
        return gui::sliceAt(document.trace, document.index.rows(row->bands[band])[0], now.axis(), x);
    }
    return std::nullopt;
}

std::optional<QRectF> TimelineWidget::rectOfSlice(std::uint32_t slice) const {
    const std::optional<QRectF> rect = rectOf(scene(size()), slice);
    return rect ? std::optional<QRectF>(rect->translated(metrics().header, 0)) : std::nullopt;
}

bool TimelineWidget::scrollToTrack(std::uint32_t track) {
    const LayoutRow* row = layout_.rowOfTrack(track);
    if (!row) return false;
    const bool pinned = !layout_.pinned.empty() && row >= layout_.pinned.data() && row < layout_.pinned.data() + layout_.pinned.size();
    const double visible = height() - metrics().top() - layout_.pinnedHeight;
    if (!pinned && (row->y < scroll() || row->bottom() > scroll() + visible)) scrollBar_->setValue(static_cast<int>(row->y - visible / 3));
    return true;
}

void TimelineWidget::reveal(std::uint32_t slice) {
    const Trace& trace = session_.document().trace;
    if (slice >= trace.size()) return;
    ViewState& view = session_.view();
    const std::int64_t rank = trace.tracks[trace.track[slice]].rank;
    if (const LayoutRow* row = layout_.rowOfTrack(trace.track[slice]); !row || row->kind == RowKind::Density) {
        TrackOptions options = view.trackOptions();
        options.collapsed.erase(rank);
        options.expanded.insert(rank);
        if (!row) options.filter.clear();
        view.setTrackOptions(options);
    }
    scrollToTrack(trace.track[slice]);
    const TimeRange range = {trace.start[slice], trace.start[slice] + trace.duration[slice]};
    const TimeAxis axis = scene(size()).axis();
    if (!view.window().overlaps(range) || axis.toX(range.begin) < 0 || axis.toX(range.begin) > axis.width() - 20) view.setWindow(centreOn(view.window(), range, view.trace()));
    if (axis.widthOf(range.length()) < 3) {
        const TimeRange around = {range.middle() - range.length() * 20, range.middle() + range.length() * 20};
        if (!range.length().picoseconds()) return;
        view.setWindow(fitTo(around, view.trace()));
    }
}

Time TimelineWidget::cursorTime() const {
    if (!cursor_ || cursor_->x() < metrics().header) return session_.view().window().middle();
    return scene(size()).axis().toTime(cursor_->x() - metrics().header);
}

void TimelineWidget::wheelEvent(QWheelEvent* event) {
    ViewState& view = session_.view();
    const QPointF delta = event->pixelDelta().isNull() ? QPointF(event->angleDelta()) / 2 : QPointF(event->pixelDelta());
    if (event->modifiers() & Qt::ControlModifier) {
        const TimeAxis axis = scene(size()).axis();
        const double x = std::clamp(event->position().x() - metrics().header, 0.0, axis.width());
        view.setWindow(zoomAt(view.window(), axis.toTime(x), std::pow(0.985, delta.y() / 3), view.trace()), ViewState::Move::Continuous);
    } else if (event->modifiers() & Qt::ShiftModifier || std::abs(delta.x()) > std::abs(delta.y())) {
        const double by = std::abs(delta.x()) > std::abs(delta.y()) ? delta.x() : delta.y();
        view.setWindow(panBy(view.window(), -by / std::max(1, width()), view.trace()), ViewState::Move::Continuous);
    } else {
        scrollBar_->setValue(scrollBar_->value() - static_cast<int>(delta.y()));
    }
    event->accept();
}

void TimelineWidget::mousePressEvent(QMouseEvent* event) {
    setFocus();
    pressed_ = event->position();
    const TimelineScene now = scene(size());
    if (pressed_.x() < now.metrics.header) {
        if (event->button() == Qt::LeftButton && rowAtPoint(pressed_)) drag_ = Drag::MaybeRow;
        return;
    }
    pressedAt_ = now.axis().toTime(pressed_.x() - now.metrics.header);
    pressedWindow_ = session_.view().window();
    pressedScroll_ = scroll();
    if (event->button() == Qt::MiddleButton || (event->button() == Qt::LeftButton && event->modifiers() & Qt::ShiftModifier)) {
        drag_ = Drag::Pan;
        setCursor(Qt::ClosedHandCursor);
    } else if (event->button() == Qt::LeftButton) {
        drag_ = Drag::MaybeRange;
    }
}

void TimelineWidget::mouseMoveEvent(QMouseEvent* event) {
    cursor_ = event->position();
    const TimelineScene now = scene(size());
    const QPointF moved = event->position() - pressed_;
    if (drag_ == Drag::MaybeRange && std::abs(moved.x()) > 4) drag_ = Drag::Range;
    if (drag_ == Drag::Range) {
        const double x = std::clamp(event->position().x() - now.metrics.header, 0.0, static_cast<double>(now.bodyWidth()));
        measuring_ = clamp(between(pressedAt_, now.axis().toTime(x)), session_.view().trace());
    } else if (drag_ == Drag::Pan) {
        session_.view().setWindow(panBy(pressedWindow_, -moved.x() / now.bodyWidth(), session_.view().trace()), ViewState::Move::Continuous);
        scrollBar_->setValue(static_cast<int>(pressedScroll_ - moved.y()));
    } else if (drag_ == Drag::MaybeRow && std::abs(moved.y()) > 6) {
        drag_ = Drag::Row;
        setCursor(Qt::SizeVerCursor);
    } else if (drag_ == Drag::None) {
        const std::optional<std::uint32_t> slice = sliceAtPoint(event->position());
        if (slice != hovered_) {
            hovered_ = slice;
            emit hovered(slice ? tipOf(*slice).section('\n', 0, 0) : QString());
            if (slice) showTip(event->globalPosition().toPoint());
            else QToolTip::hideText();
        }
        if (!slice) {
            const LayoutRow* row = rowAtPoint(event->position());
            if (row && row->kind == RowKind::Counter && event->position().x() >= now.metrics.header) {
                const CounterSeries& counter = session_.document().trace.counters[row->track];
                const std::int64_t sample = sampleAt(counter, cursorTime());
                QStringList lines(QString::fromStdString(counter.name + " at " + formatInstant(cursorTime())));
                for (std::size_t s = counter.series.size(); sample >= 0 && s-- > 0;) {
                    const Bytes value = counter.values[static_cast<std::size_t>(sample) * counter.series.size() + s];
                    if (value != 0) lines << QString::fromStdString(counter.series[s]) + ": " + counterValue(counter, value);
                }
                QToolTip::showText(event->globalPosition().toPoint(), lines.join('\n'), this);
            }
        }
    }
    update();
}

std::vector<std::uint32_t> TimelineWidget::tracksBetween(double y0, double y1) const {
    // A drag that stays within a row is about all tracks; one across rows is about those.
    if (std::abs(y1 - y0) < 30) return {};
    std::vector<std::uint32_t> tracks;
    const TimelineScene now = scene(size());
    const double top = std::min(y0, y1), bottom = std::max(y0, y1);
    const auto take = [&](const LayoutRow& row) {
        if (now.yOf(row) >= bottom || now.yOf(row) + row.height <= top) return;
        if (row.kind == RowKind::Track) tracks.push_back(row.track);
        if (row.kind == RowKind::Density) tracks.insert(tracks.end(), row.bands.begin(), row.bands.end());
    };
    for (const LayoutRow& row : layout_.pinned) take(row);
    for (const LayoutRow& row : layout_.rows) take(row);
    return tracks;
}

void TimelineWidget::mouseReleaseEvent(QMouseEvent* event) {
    ViewState& view = session_.view();
    if (drag_ == Drag::MaybeRow || drag_ == Drag::Row) {
        const LayoutRow* row = rowAtPoint(pressed_);
        const LayoutRow* onto = rowAtPoint(event->position());
        if (row && drag_ == Drag::MaybeRow) view.setTrackOptions(toggled(view.trackOptions(), session_.document().index, *row));
        else if (row && onto) view.setTrackOptions(withMoved(view.trackOptions(), layout_, *row, *onto));
    } else if (drag_ == Drag::Range && measuring_) {
        view.select(*measuring_, tracksBetween(pressed_.y(), event->position().y()));
        emit picked(Picked::Range);
    } else if (drag_ == Drag::MaybeRange) {
        const std::optional<std::uint32_t> slice = sliceAtPoint(event->position());
        const LayoutRow* row = rowAtPoint(event->position());
        if (slice || !row || row->kind != RowKind::Counter) view.selectSlice(slice);
        if (row && row->kind == RowKind::Counter) view.setInstant(cursorTime());
        else if (slice) view.setInstant(session_.document().trace.start[*slice]);
        else view.clearSelection();
        if (slice) emit picked(Picked::Slice);
    }
    drag_ = Drag::None;
    measuring_.reset();
    unsetCursor();
    update();
}

void TimelineWidget::mouseDoubleClickEvent(QMouseEvent* event) {
    if (const std::optional<std::uint32_t> slice = sliceAtPoint(event->position())) {
        const Trace& trace = session_.document().trace;
        session_.view().selectSlice(slice);
        session_.view().setWindow(fitTo({trace.start[*slice], trace.start[*slice] + trace.duration[*slice]}, session_.view().trace()));
    }
}

void TimelineWidget::contextMenuEvent(QContextMenuEvent* event) {
    const LayoutRow* row = rowAtPoint(event->pos());
    if (!row) return;
    QMenu menu(this);
    fillTrackMenu(menu, session_, *row);
    menu.exec(event->globalPos());
}

QString TimelineWidget::tipOf(std::uint32_t slice) const {
    const Trace& trace = session_.document().trace;
    const Track& track = trace.tracks[trace.track[slice]];
    QString name = QString::fromStdString(trace.names[trace.name[slice]]);
    if (name.size() > 160) name = name.left(157) + "…";
    QString tip = QString("%1\n%2 from %3\nrank %4 · %5").arg(name, QString::fromStdString(formatTime(trace.duration[slice])), QString::fromStdString(formatInstant(trace.start[slice] - session_.view().trace().begin)))
                      .arg(track.rank).arg(QString::fromStdString(track.name));
    if (trace.collective[slice] >= 0) {
        const CollectiveDetails& details = trace.collectives[static_cast<std::size_t>(trace.collective[slice])];
        tip += QString("\n%1 over %2 ranks").arg(QString::fromStdString(formatBytes(details.bytes))).arg(details.groupSize);
    }
    return tip;
}

void TimelineWidget::showTip(const QPoint& at) {
    if (hovered_) QToolTip::showText(at + QPoint(12, 12), tipOf(*hovered_), this);
}

void TimelineWidget::leaveEvent(QEvent*) {
    cursor_.reset();
    hovered_.reset();
    emit hovered({});
    update();
}

void TimelineWidget::keyPressEvent(QKeyEvent* event) {
    const NavigationKey key = event->modifiers() & (Qt::ControlModifier | Qt::AltModifier) ? NavigationKey::None : navigationKey(event->nativeScanCode(), event->key());
    if (event->key() == Qt::Key_Up || event->key() == Qt::Key_Down) {
        scrollBar_->setValue(scrollBar_->value() + (event->key() == Qt::Key_Down ? 40 : -40));
        return;
    }
    if (event->key() == Qt::Key_PageUp || event->key() == Qt::Key_PageDown) {
        scrollBar_->setValue(scrollBar_->value() + (event->key() == Qt::Key_PageDown ? 1 : -1) * scrollBar_->pageStep());
        return;
    }
    if (key == NavigationKey::None) return QWidget::keyPressEvent(event);
    QElapsedTimer& held = held_[static_cast<std::size_t>(key)];
    if (event->isAutoRepeat() || held.isValid()) return;
    // A tap moves at once; what is held goes on with the timer.
    ViewState& view = session_.view();
    switch (key) {
        case NavigationKey::None: break;
        case NavigationKey::ZoomIn: view.setWindow(zoomAt(view.window(), cursorTime(), 0.85, view.trace()), ViewState::Move::Continuous); break;
        case NavigationKey::ZoomOut: view.setWindow(zoomAt(view.window(), cursorTime(), 1 / 0.85, view.trace()), ViewState::Move::Continuous); break;
        case NavigationKey::Left: view.setWindow(panBy(view.window(), -0.06, view.trace()), ViewState::Move::Continuous); break;
        case NavigationKey::Right: view.setWindow(panBy(view.window(), 0.06, view.trace()), ViewState::Move::Continuous); break;
    }
    held.start();
    if (!tick_.isActive()) {
        sinceTick_.start();
        tick_.start(16, Qt::PreciseTimer, this);
    }
}

void TimelineWidget::keyReleaseEvent(QKeyEvent* event) {
    const NavigationKey key = navigationKey(event->nativeScanCode(), event->key());
    if (key == NavigationKey::None) return QWidget::keyReleaseEvent(event);
    if (event->isAutoRepeat()) return;
    held_[static_cast<std::size_t>(key)].invalidate();
    if (std::none_of(held_.begin(), held_.end(), [](const QElapsedTimer& held) { return held.isValid(); })) tick_.stop();
}

void TimelineWidget::focusOutEvent(QFocusEvent*) {
    for (QElapsedTimer& held : held_) held.invalidate();
    tick_.stop();
}

void TimelineWidget::timerEvent(QTimerEvent* event) {
    if (event->timerId() != tick_.timerId()) return QWidget::timerEvent(event);
    const double elapsed = std::min(0.1, static_cast<double>(sinceTick_.restart()) / 1000);
    ViewState& view = session_.view();
    for (std::size_t i = 0; i < held_.size(); ++i) {
        const QElapsedTimer& since = held_[i];
        if (!since.isValid() || since.elapsed() < 120) continue;  // so that a tap is one step
        const double by = heldKeySpeed(static_cast<double>(since.elapsed()) / 1000) * elapsed;
        switch (static_cast<NavigationKey>(i)) {
            case NavigationKey::None: break;
            case NavigationKey::ZoomIn: view.setWindow(zoomAt(view.window(), cursorTime(), std::exp(-by), view.trace()), ViewState::Move::Continuous); break;
            case NavigationKey::ZoomOut: view.setWindow(zoomAt(view.window(), cursorTime(), std::exp(by), view.trace()), ViewState::Move::Continuous); break;
            case NavigationKey::Left: view.setWindow(panBy(view.window(), -by, view.trace()), ViewState::Move::Continuous); break;
            case NavigationKey::Right: view.setWindow(panBy(view.window(), by, view.trace()), ViewState::Move::Continuous); break;
        }
    }
}

}  // namespace ringside::gui
