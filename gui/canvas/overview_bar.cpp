#include "gui/canvas/overview_bar.h"

#include <algorithm>
#include <cmath>

#include <QMouseEvent>
#include <QPainter>

#include "gui/timeline/track_layout.h"
#include "gui/timeline/visible_slices.h"

namespace ringside::gui {
namespace {
constexpr int kHeight = 40;
}

OverviewBar::OverviewBar(Session& session, Theme& theme, int header, QWidget* parent) : QWidget(parent), session_(session), theme_(theme), header_(header) {
    setFixedHeight(kHeight);
    setToolTip("The whole trace: drag the frame, or drag elsewhere to frame a part");
    connect(&session_, &Session::documentChanged, this, &OverviewBar::outdated);
    connect(&theme_, &Theme::changed, this, &OverviewBar::outdated);
    for (const auto signal : {&ViewState::windowChanged, &ViewState::selectionChanged, &ViewState::hitsChanged}) connect(&session_.view(), signal, this, [this] { update(); });
}

void OverviewBar::outdated() {
    strip_ = QImage();
    update();
}

void OverviewBar::resizeEvent(QResizeEvent*) { outdated(); }

/// The device's tracks of up to eight ranks, spread over all.
void OverviewBar::paintStrip() {
    const Document& document = session_.document();
    const ThemeColors& colors = theme_.colors();
    strip_ = QImage(std::max(1, width() - header_), kHeight - 4, QImage::Format_RGB32);
    strip_.fill(colors.base);
    QPainter painter(&strip_);
    const TimeAxis axis(wholeTrace(document.range), strip_.width());
    std::vector<std::uint32_t> tracks;
    const std::vector<std::int64_t> ranks = ranksOf(document.trace);
    const std::size_t stride = std::max<std::size_t>(1, ranks.size() / 8);
    for (std::uint32_t t = 0; t < document.trace.tracks.size(); ++t) {
        const Track& track = document.trace.tracks[t];
        const auto position = static_cast<std::size_t>(std::lower_bound(ranks.begin(), ranks.end(), track.rank) - ranks.begin());
        if (position % stride != 0 || position / stride >= 8 || document.index.rows(t)[0].size() == 0) continue;
        if (track.kind == TrackKind::Compute || track.kind == TrackKind::Communication) tracks.push_back(t);
    }
    if (tracks.empty())
        for (std::uint32_t t = 0; t < std::min<std::size_t>(4, document.trace.tracks.size()); ++t) tracks.push_back(t);
    if (tracks.size() > 16) tracks.resize(16);
    const double height = tracks.empty() ? 1 : static_cast<double>(strip_.height()) / static_cast<double>(tracks.size());
    std::vector<SliceRect> rects;
    for (std::size_t i = 0; i < tracks.size(); ++i) {
        for (const SliceRow& line : outermost(document.index.rows(tracks[i]))) {
            visibleSlices(document.trace, line, axis, rects);
            for (const SliceRect& rect : rects) {
                QColor color = colors.of(rect.category);
                color.setAlpha(rect.coverage);
                painter.fillRect(QRectF(rect.x0, static_cast<double>(i) * height + 0.5, rect.x1 - rect.x0, std::max(1.0, height - 1)), color);
            }
        }
    }
}

void OverviewBar::paintEvent(QPaintEvent*) {
    const ThemeColors& colors = theme_.colors();
    if (strip_.isNull()) paintStrip();
    QPainter painter(this);
    painter.fillRect(rect(), colors.window);
    painter.drawImage(header_, 2, strip_);
    const Trace& trace = session_.document().trace;
    const TimeAxis axis(wholeTrace(session_.view().trace()), strip_.width());
    const TimeRange window = session_.view().window();
    const double x0 = header_ + axis.toX(window.begin), x1 = header_ + std::max(axis.toX(window.end), axis.toX(window.begin) + 3);
    QColor shade = colors.window;
    shade.setAlpha(165);
    painter.fillRect(QRectF(header_, 2, x0 - header_, kHeight - 4), shade);
    painter.fillRect(QRectF(x1, 2, width() - x1, kHeight - 4), shade);
    if (const std::optional<TimeRange>& selection = session_.view().selection()) {
        QColor color = colors.selection;
        color.setAlpha(90);
        painter.fillRect(QRectF(header_ + axis.toX(selection->begin), 2, std::max(1.0, axis.widthOf(selection->length())), kHeight - 4), color);
    }
    // Hits: one tick per pixel that has any.
    int last = -1;
    std::vector<bool> marked(static_cast<std::size_t>(strip_.width()), false);
    for (const std::uint32_t hit : session_.view().hits()) {
        const int x = static_cast<int>(axis.toX(trace.start[hit]));
        if (x == last || x < 0 || x >= strip_.width()) continue;
        marked[static_cast<std::size_t>(x)] = true;
        last = x;
    }
    for (int x = 0; x < strip_.width(); ++x)
        if (marked[static_cast<std::size_t>(x)]) painter.fillRect(header_ + x, kHeight - 9, 1, 7, colors.searchHit);
    painter.setPen(QPen(colors.accent, 1.5));
    painter.drawRect(QRectF(std::max<double>(header_, x0), 1.5, std::min<double>(width() - 1, x1) - std::max<double>(header_, x0), kHeight - 4));
    painter.setPen(colors.border);
    painter.drawLine(0, kHeight - 1, width(), kHeight - 1);
    painter.setPen(colors.muted);
    painter.drawText(QRect(10, 0, header_ - 16, kHeight), Qt::AlignVCenter | Qt::AlignLeft, fontMetrics().elidedText("Overview", Qt::ElideRight, header_ - 16));
}

void OverviewBar::mousePressEvent(QMouseEvent* event) {
    const TimeAxis axis(wholeTrace(session_.view().trace()), std::max(1, width() - header_));
    const Time at = axis.toTime(event->position().x() - header_);
    const TimeRange window = session_.view().window();
    const bool all = window.length() >= session_.view().trace().length();
    resizing_ = all || !window.contains(at);
    grabbed_ = resizing_ ? at : at - window.begin;
}

void OverviewBar::mouseMoveEvent(QMouseEvent* event) {
    if (event->buttons() & Qt::LeftButton) moveWindow(event->position().x(), resizing_);
}

void OverviewBar::moveWindow(double x, bool resizing) {
    ViewState& view = session_.view();
    const TimeAxis axis(wholeTrace(view.trace()), std::max(1, width() - header_));
    const Time at = axis.toTime(x - header_);
    if (resizing) view.setWindow(between(grabbed_, at), ViewState::Move::Continuous);
    else view.setWindow({at - grabbed_, at - grabbed_ + view.window().length()}, ViewState::Move::Continuous);
}

}  // namespace ringside::gui
